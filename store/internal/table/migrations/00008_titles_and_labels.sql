-- Titles and labels of sessions. People write them, so they are part of what was said. Columns and a table are added and
-- none is changed, so that older programs keep working.

-- +goose Up
ALTER TABLE sessions ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN labels TEXT NOT NULL DEFAULT ''; -- a JSON object, '' for none

-- The labels once more, to find sessions by them.
CREATE TABLE session_labels (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    name    TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (session, name)
);
CREATE INDEX session_labels_value ON session_labels (name, value, session);

-- +goose Down
DROP TABLE session_labels;
ALTER TABLE sessions DROP COLUMN labels;
ALTER TABLE sessions DROP COLUMN title;
