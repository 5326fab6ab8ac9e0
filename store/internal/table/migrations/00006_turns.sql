-- Turns that wait for somebody to take them, in whatever process. Tables and columns are added and none is changed, so
-- that programs of before go on.

-- +goose Up

-- The messages of turns that nobody has begun. They are part of what was said; each goes when a commit takes it up.
CREATE TABLE queued_turns (
    id      TEXT   NOT NULL PRIMARY KEY,
    session TEXT   NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    number  BIGINT NOT NULL, -- their order in the session
    agent   TEXT   NOT NULL,
    model   TEXT   NOT NULL, -- '' for the agent's own
    body    TEXT   NOT NULL  -- belay.QueuedTurn as JSON
);
CREATE UNIQUE INDEX queued_turns_session ON queued_turns (session, number);

-- The sessions whose turn is to be taken, goes on or is parked. Nothing here holds what was said.
CREATE TABLE due_turns (
    session TEXT    NOT NULL PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    agent   TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    parked  BOOLEAN NOT NULL, -- it is not due before its time
    due     BIGINT  NOT NULL, -- since when, or from when on
    holder  TEXT    NOT NULL, -- who has claimed it, '' for nobody
    claimed BIGINT  NOT NULL, -- when
    mark    BIGINT  NOT NULL  -- counts what has made it due
);
CREATE INDEX due_turns_waiting ON due_turns (due, session) WHERE holder = '' AND NOT parked;
CREATE INDEX due_turns_parked ON due_turns (due) WHERE holder = '' AND parked;
CREATE INDEX due_turns_claimed ON due_turns (holder) WHERE holder <> '';

-- Until when somebody wants to hear of changes.
ALTER TABLE sessions ADD COLUMN watched BIGINT NOT NULL DEFAULT 0;

-- Programs that know the migrations up to here, or more, can use the tables. A migration that takes something away raises
-- it, a version after nobody needs that any more.
INSERT INTO counters (name, value) VALUES ('oldest', 6);

-- +goose Down
DELETE FROM counters WHERE name = 'oldest';
ALTER TABLE sessions DROP COLUMN watched;
DROP TABLE due_turns;
DROP TABLE queued_turns;
