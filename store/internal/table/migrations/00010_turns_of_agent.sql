-- The turns that wait, by agent and model. A worker excludes agents and models that it does not serve. It looks only at the
-- first turn of each agent and model, however many there are. Only an index changes, so that older programs keep working.

-- +goose Up
DROP INDEX due_turns_waiting;
CREATE INDEX due_turns_of_agent ON due_turns (agent, model, due, session) WHERE holder = '' AND NOT parked;

-- +goose Down
DROP INDEX due_turns_of_agent;
CREATE INDEX due_turns_waiting ON due_turns (due, session) WHERE holder = '' AND NOT parked;
