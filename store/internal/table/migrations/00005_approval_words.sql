-- What is put in words about approvals. Any of it may quote the call, so it is part of what was said, and apart from the
-- approvals; it goes with them. Decisions of before keep their reasons: no SQL that all databases read takes them out of JSON.

-- +goose Up
CREATE TABLE approval_words (
    id      TEXT NOT NULL PRIMARY KEY REFERENCES approvals (id) ON DELETE CASCADE,
    reason  TEXT NOT NULL, -- why a person is asked
    answer  TEXT NOT NULL, -- why it was decided so
    pattern TEXT NOT NULL  -- which calls a yes is for
);
INSERT INTO approval_words (id, reason, answer, pattern) SELECT id, reason, '', '' FROM approvals;
ALTER TABLE approvals DROP COLUMN reason;
ALTER TABLE approvals ADD COLUMN floor BOOLEAN NOT NULL DEFAULT FALSE; -- whether the floor asked, and not a hook

-- +goose Down
ALTER TABLE approvals DROP COLUMN floor;
ALTER TABLE approvals ADD COLUMN reason TEXT NOT NULL DEFAULT '';
UPDATE approvals SET reason = (SELECT w.reason FROM approval_words w WHERE w.id = approvals.id);
DROP TABLE approval_words;
