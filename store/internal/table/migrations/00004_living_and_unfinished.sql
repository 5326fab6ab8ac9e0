-- What tells that a process lives whose lock file somebody removed, and which session a job that is not over belongs to.

-- +goose Up
ALTER TABLE holders ADD COLUMN process TEXT NOT NULL DEFAULT ''; -- when the system started it, in the system's words
ALTER TABLE holders ADD COLUMN path TEXT NOT NULL DEFAULT '';    -- of the database: a copy's is another

ALTER TABLE job_keys ADD COLUMN session TEXT NOT NULL DEFAULT ''; -- '' for none
CREATE INDEX job_keys_unfinished ON job_keys (session) WHERE NOT done;
-- Of the jobs that wait already, the records know what they know.
UPDATE job_keys SET session = COALESCE((SELECT max(runs.session) FROM runs WHERE runs.idempotency_key = job_keys.id), '') WHERE NOT done;

-- +goose Down
DROP INDEX job_keys_unfinished;
ALTER TABLE job_keys DROP COLUMN session;
ALTER TABLE holders DROP COLUMN path;
ALTER TABLE holders DROP COLUMN process;
