-- Who asked to abort a turn, for the worker that runs it. A column is added and none is changed, so that older programs keep
-- working.

-- +goose Up
ALTER TABLE due_turns ADD COLUMN abort TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE due_turns DROP COLUMN abort;
