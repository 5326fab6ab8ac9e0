-- The first tables. The files here are read by SQLite and, with INTEGER PRIMARY KEY read as a BIGINT identity, by
-- PostgreSQL: no function or type that only one of them has. Times are nanoseconds since 1970, 0 for none. JSON is TEXT
-- and comes back byte for byte.

-- +goose Up

-- Numbers that only grow: the epoch of the last hold, the place of the last run.
CREATE TABLE counters (
    name  TEXT   NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO counters (name, value) VALUES ('epoch', 0);
INSERT INTO counters (name, value) VALUES ('run', 0);

-- Processes that have the database open. Each has locked a file named like its id.
CREATE TABLE holders (
    id    TEXT   NOT NULL PRIMARY KEY,
    pid   BIGINT NOT NULL,
    host  TEXT   NOT NULL,
    since BIGINT NOT NULL
);

-- The transcript: sessions, messages and calls hold what was said.

CREATE TABLE sessions (
    id         TEXT   NOT NULL PRIMARY KEY,
    epoch      BIGINT NOT NULL, -- of the newest hold
    holder     TEXT   NOT NULL, -- who holds it, '' for nobody
    created    BIGINT NOT NULL,
    changed    BIGINT NOT NULL,
    last       BIGINT NOT NULL, -- the number of the last message, 0 for none
    response   BIGINT NOT NULL, -- the last one that is the model's
    compaction BIGINT NOT NULL, -- the last one that sums up
    keep       BIGINT NOT NULL, -- the first one that it keeps
    turn_state TEXT   NOT NULL, -- '', 'open' or 'parked'
    state      TEXT   NOT NULL  -- belay.SessionState as JSON
);
CREATE INDEX sessions_held ON sessions (holder) WHERE holder <> '';

CREATE TABLE messages (
    session TEXT   NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq     BIGINT NOT NULL,
    body    TEXT   NOT NULL, -- belay.Message as JSON
    PRIMARY KEY (session, seq)
);

CREATE TABLE calls (
    session TEXT   NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    message BIGINT NOT NULL,
    idx     BIGINT NOT NULL,
    id      TEXT   NOT NULL,
    tool    TEXT   NOT NULL,
    state   TEXT   NOT NULL,
    input   TEXT   NOT NULL, -- JSON, '' for none
    wait    TEXT   NOT NULL,
    resumes TEXT   NOT NULL,
    result  TEXT   NOT NULL, -- belay.Result as JSON, '' for none
    PRIMARY KEY (session, message, idx)
);

-- From here on nothing holds a prompt, an input, an output or an environment.

CREATE TABLE approvals (
    id       TEXT   NOT NULL PRIMARY KEY,
    session  TEXT   NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    response BIGINT NOT NULL, -- the last response when it was asked
    turn     TEXT   NOT NULL,
    call_id  TEXT   NOT NULL,
    tool     TEXT   NOT NULL,
    hash     TEXT   NOT NULL,
    reason   TEXT   NOT NULL,
    asked_by TEXT   NOT NULL,
    asked    BIGINT NOT NULL,
    expires  BIGINT NOT NULL,
    decision TEXT   NOT NULL  -- belay.Decision as JSON, '' while it is pending
);
CREATE INDEX approvals_session ON approvals (session, response);
CREATE INDEX approvals_pending ON approvals (asked) WHERE decision = '';

-- The records of hooks; an attempt at a job is a run that has a job and an attempt.
CREATE TABLE runs (
    seq             INTEGER NOT NULL PRIMARY KEY, -- the order they were stored in
    id              TEXT    NOT NULL UNIQUE,
    changed         BIGINT  NOT NULL, -- the same order, for what replaced it; 0 if nothing did
    holder          TEXT    NOT NULL, -- who wrote it
    subscription    TEXT    NOT NULL,
    job_handler     TEXT    NOT NULL,
    version         TEXT    NOT NULL,
    phase           TEXT    NOT NULL,
    dispatch        TEXT    NOT NULL,
    origin_kind     TEXT    NOT NULL,
    origin_name     TEXT    NOT NULL,
    origin_file     TEXT    NOT NULL,
    origin_line     BIGINT  NOT NULL,
    session         TEXT    NOT NULL,
    turn            TEXT    NOT NULL,
    step            BIGINT  NOT NULL,
    agent           TEXT    NOT NULL,
    execution       TEXT    NOT NULL,
    state           TEXT    NOT NULL,
    shadow          BOOLEAN NOT NULL,
    visibility      TEXT    NOT NULL,
    job             TEXT    NOT NULL,
    attempt         BIGINT  NOT NULL,
    idempotency_key TEXT    NOT NULL,
    started         BIGINT  NOT NULL,
    ended           BIGINT  NOT NULL,
    latency         BIGINT  NOT NULL,
    error_class     TEXT    NOT NULL,
    severity        TEXT    NOT NULL,
    contributed     TEXT    NOT NULL, -- JSON lists, '' for none
    audit           TEXT    NOT NULL,
    diagnostics     TEXT    NOT NULL
);
CREATE INDEX runs_started ON runs (started);
CREATE INDEX runs_session ON runs (session, started);
CREATE INDEX runs_replaced ON runs (changed) WHERE changed > 0;
CREATE INDEX runs_unfinished ON runs (holder) WHERE state = 'started';

-- The keys of jobs that wait, run or have succeeded.
CREATE TABLE job_keys (
    id      TEXT    NOT NULL PRIMARY KEY,
    done    BOOLEAN NOT NULL,
    changed BIGINT  NOT NULL
);

-- +goose Down
DROP TABLE job_keys;
DROP TABLE runs;
DROP TABLE approvals;
DROP TABLE calls;
DROP TABLE messages;
DROP TABLE sessions;
DROP TABLE holders;
DROP TABLE counters;
