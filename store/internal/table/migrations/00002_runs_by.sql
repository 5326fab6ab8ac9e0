-- What listings of runs select by. Most runs have completed and have no job: those are found by their start.

-- +goose Up
CREATE INDEX runs_subscription ON runs (subscription, started);
CREATE INDEX runs_phase ON runs (phase, started);
CREATE INDEX runs_state ON runs (state, started) WHERE state <> 'completed';
CREATE INDEX runs_job ON runs (job, started) WHERE job <> '';

-- +goose Down
DROP INDEX runs_job;
DROP INDEX runs_state;
DROP INDEX runs_phase;
DROP INDEX runs_subscription;
