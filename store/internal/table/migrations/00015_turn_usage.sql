-- What turns have used, by day and model, so that usage can be added up without reading transcripts. A row belongs to a turn.
-- A commit with a response adds to it. Nothing here holds what was said. Each store fills the table from its old messages,
-- because no SQL that all databases read takes them out of JSON. A table is added and none is changed, so that older programs
-- keep working, but what they use is not counted.

-- +goose Up
CREATE TABLE turn_usage (
    session     TEXT             NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    turn        TEXT             NOT NULL,
    day         BIGINT           NOT NULL, -- of the response, in days since 1970, in UTC
    model       TEXT             NOT NULL,
    agent       TEXT             NOT NULL,
    root        TEXT             NOT NULL, -- the session, or the one whose subagent it belongs to
    tokens_in   BIGINT           NOT NULL,
    tokens_out  BIGINT           NOT NULL,
    cache_read  BIGINT           NOT NULL,
    cache_write BIGINT           NOT NULL,
    cost        DOUBLE PRECISION NOT NULL, -- in US dollars
    PRIMARY KEY (session, turn, day, model)
);
CREATE INDEX turn_usage_day ON turn_usage (day);

-- 0 until the old messages are counted.
INSERT INTO counters (name, value) VALUES ('usage', 0);

-- +goose Down
DELETE FROM counters WHERE name = 'usage';
DROP TABLE turn_usage;
