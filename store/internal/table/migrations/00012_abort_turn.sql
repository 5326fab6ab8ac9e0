-- Which turn a request to abort means, so that it cannot hit the next one. The other indexes list sessions without reading
-- all of them: by the time of the last change, those with an open turn, and approvals by time. A column and indexes are
-- added and none is changed, so that older programs keep working. The index of sessions with an open turn has no time:
-- every commit changes the time, and there are few such sessions, so a listing sorts them.

-- +goose Up
ALTER TABLE due_turns ADD COLUMN abort_turn TEXT NOT NULL DEFAULT ''; -- '' for whatever turn is open
CREATE INDEX sessions_changed ON sessions (changed, id);
CREATE INDEX sessions_open ON sessions (id) WHERE turn_state <> '';

-- +goose Down
DROP INDEX sessions_open;
DROP INDEX sessions_changed;
ALTER TABLE due_turns DROP COLUMN abort_turn;
