-- A chain of hashes over the records of hooks, the approvals and the grants: see docs/design/audit.md. Each transaction that
-- writes such rows adds an entry with their hashes, and the entry has a hash over itself and the entry before. So a later
-- change is visible. Nothing here holds what was said.
--
-- Only programs that know the table add entries, so older programs must not write any more.

-- +goose Up
CREATE TABLE audit_chain (
    seq  INTEGER NOT NULL PRIMARY KEY, -- the order of all entries
    lane TEXT    NOT NULL, -- the chain of one writer, '' for the main chain
    idx  BIGINT  NOT NULL, -- the place in the lane, from 1
    time BIGINT  NOT NULL,
    body TEXT    NOT NULL, -- the hashes of rows
    hash TEXT    NOT NULL  -- of this entry and of the entry before it in the lane
);

-- The number of entries in the main chain of PostgreSQL. 0 until the rows that are older than the chain have an entry.
INSERT INTO counters (name, value) VALUES ('chain', 0);
UPDATE counters SET value = 16 WHERE name = 'oldest' AND value < 16;

-- +goose Down
UPDATE counters SET value = 13 WHERE name = 'oldest';
DELETE FROM counters WHERE name = 'chain';
DROP TABLE audit_chain;
