-- The keys of turns that a client may submit twice, because it does not know whether the first request arrived. The index
-- lists approvals page by page. A table and an index are added and nothing is changed, so that older programs keep working.

-- +goose Up
CREATE TABLE turn_keys (
    id       TEXT   NOT NULL PRIMARY KEY, -- belay.SubmitKey.ID
    session  TEXT   NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    turn     TEXT   NOT NULL, -- the id of the queued turn
    hash     TEXT   NOT NULL, -- of the request
    position TEXT   NOT NULL, -- of the session before the turn
    created  BIGINT NOT NULL
);
CREATE INDEX turn_keys_session ON turn_keys (session);
CREATE INDEX approvals_asked ON approvals (asked, id);

-- +goose Down
DROP INDEX approvals_asked;
DROP TABLE turn_keys;
