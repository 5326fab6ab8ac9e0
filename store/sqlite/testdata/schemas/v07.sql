PRAGMA auto_vacuum = 2;
PRAGMA application_id = 1651270009;
CREATE TABLE belay_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
INSERT INTO belay_version VALUES(1, 0, 1, '2026-01-01 00:00:00');
INSERT INTO belay_version VALUES(2, 1, 1, '2026-01-01 00:00:00');
INSERT INTO belay_version VALUES(3, 2, 1, '2026-01-01 00:00:00');
INSERT INTO belay_version VALUES(4, 3, 1, '2026-01-01 00:00:00');
INSERT INTO belay_version VALUES(5, 4, 1, '2026-01-01 00:00:00');
INSERT INTO belay_version VALUES(6, 5, 1, '2026-01-01 00:00:00');
INSERT INTO belay_version VALUES(7, 6, 1, '2026-01-01 00:00:00');
INSERT INTO belay_version VALUES(8, 7, 1, '2026-01-01 00:00:00');
CREATE TABLE counters (
    name  TEXT   NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO counters VALUES('epoch', 1);
INSERT INTO counters VALUES('run', 3);
INSERT INTO counters VALUES('oldest', 6);
CREATE TABLE holders (
    id    TEXT   NOT NULL PRIMARY KEY,
    pid   BIGINT NOT NULL,
    host  TEXT   NOT NULL,
    since BIGINT NOT NULL
, process TEXT NOT NULL DEFAULT '', path TEXT NOT NULL DEFAULT '', worker BOOLEAN NOT NULL DEFAULT FALSE);
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
, watched BIGINT NOT NULL DEFAULT 0);
INSERT INTO sessions VALUES('demo', 1, '', 1794832216714170186, 1794832216714864714, 2, 2, 0, 0, '', '{"turns":1,"usage":{"in":0,"out":0}}', 0);
INSERT INTO sessions VALUES('granted', 1, '', 1772366400000000000, 1772366400000000001, 2, 2, 0, 0, '', '{"turns":1,"usage":{"in":10,"out":2},"agent":"main","grants":[{"approval":"yes","asker":"floor","floor":true,"tool":"shell","by":"ann","time":"2026-03-01T12:00:00Z"}]}', 1772366400000000000);
CREATE TABLE messages (
    session TEXT   NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq     BIGINT NOT NULL,
    body    TEXT   NOT NULL, -- belay.Message as JSON
    PRIMARY KEY (session, seq)
);
INSERT INTO messages VALUES('demo', 1, '{"seq":1,"turn":"turn","role":"user","kind":"user","parts":[{"type":"text","text":"do it"}],"time":"2026-03-01T12:00:00.123456789Z"}');
INSERT INTO messages VALUES('demo', 2, '{"seq":2,"turn":"turn","role":"assistant","kind":"assistant","parts":[{"type":"text","text":"it''s <done> 日本語"}],"time":"2026-03-01T12:00:00.123456789Z"}');
INSERT INTO messages VALUES('granted', 1, '{"seq":1,"turn":"turn-2","role":"user","kind":"user","parts":[{"type":"text","text":"list it"}],"time":"2026-03-01T12:00:00Z"}');
INSERT INTO messages VALUES('granted', 2, '{"seq":2,"turn":"turn-2","role":"assistant","kind":"assistant","parts":[{"type":"text","text":"done"}],"model":"scripted","usage":{"in":10,"out":2},"time":"2026-03-01T12:00:00Z"}');
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
INSERT INTO calls VALUES('demo', 2, 0, 'call', 'write', 'parked', '{"b":1,"a":2}', 'ask', '', '');
CREATE TABLE approvals (
    id       TEXT   NOT NULL PRIMARY KEY,
    session  TEXT   NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    response BIGINT NOT NULL, -- the last response when it was asked
    turn     TEXT   NOT NULL,
    call_id  TEXT   NOT NULL,
    tool     TEXT   NOT NULL,
    hash     TEXT   NOT NULL,
    asked_by TEXT   NOT NULL,
    asked    BIGINT NOT NULL,
    expires  BIGINT NOT NULL,
    decision TEXT   NOT NULL  -- belay.Decision as JSON, '' while it is pending
, floor BOOLEAN NOT NULL DEFAULT FALSE);
INSERT INTO approvals VALUES('ask', 'demo', 2, '', 'call', 'write', 'sha256:1f', 'floor', 1772366400123456789, 0, '', 0);
INSERT INTO approvals VALUES('answered', 'demo', 1, '', 'call', 'write', 'sha256:1f', 'floor', 1772366400123456789, 0, '{"approval":"answered","hash":"sha256:1f","allow":true,"by":"ann","reason":"fine","time":"2026-03-01T12:00:00Z"}', 0);
INSERT INTO approvals VALUES('worded', 'granted', 2, 'turn-2', 'call-2', 'shell', 'sha256:2f', 'floor', 1772366400123456789, 0, '{"approval":"worded","hash":"sha256:2f","allow":true,"by":"ann","time":"2026-03-01T12:00:00Z"}', 1);
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
INSERT INTO runs VALUES(1, 'first', 0, 'Q65ECSYDTO2SCKUVVMH56MTQIN', 'sample', '', '', 'tool.pre', '', 'host', '', '', 0, 'a', 'turn', 1, '', 'blocking', 'completed', 0, 'user_audit', '', 0, '', 1772366400123456789, 1772366400123456789, 0, '', 'pass', '', '', '');
INSERT INTO runs VALUES(2, 'second', 3, 'Q65ECSYDTO2SCKUVVMH56MTQIN', 'sample', '', '', 'tool.pre', '', 'host', '', '', 0, 'a', 'turn', 1, '', 'blocking', 'interrupted', 0, 'user_audit', '', 0, '', 1772366400123456789, 1794832216717150440, 22465816593693651, '', 'pass', '', '', '');
CREATE TABLE job_keys (
    id      TEXT    NOT NULL PRIMARY KEY,
    done    BOOLEAN NOT NULL,
    changed BIGINT  NOT NULL
, session TEXT NOT NULL DEFAULT '');
INSERT INTO job_keys VALUES('job', 0, 1794832216715857891, '');
INSERT INTO job_keys VALUES('ended', 1, 1772366400000000000, 'granted');
CREATE TABLE river_leader (
    elected_at timestamp NOT NULL,
    expires_at timestamp NOT NULL,
    leader_id text NOT NULL,
    name text PRIMARY KEY NOT NULL DEFAULT 'default' CHECK (name = 'default'),
    CONSTRAINT name_length CHECK (length(name) > 0 AND length(name) < 128),
    CONSTRAINT leader_id_length CHECK (length(leader_id) > 0 AND length(leader_id) < 128)
);
CREATE TABLE river_migration (
    line text NOT NULL,
    version integer NOT NULL,
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    CONSTRAINT line_length CHECK (length(line) > 0 AND length(line) < 128),
    CONSTRAINT version_gte_1 CHECK (version >= 1),
    PRIMARY KEY (line, version)
);
INSERT INTO river_migration VALUES('main', 1, '2026-01-01 00:00:00');
INSERT INTO river_migration VALUES('main', 2, '2026-01-01 00:00:00');
INSERT INTO river_migration VALUES('main', 3, '2026-01-01 00:00:00');
INSERT INTO river_migration VALUES('main', 4, '2026-01-01 00:00:00');
INSERT INTO river_migration VALUES('main', 5, '2026-01-01 00:00:00');
INSERT INTO river_migration VALUES('main', 6, '2026-01-01 00:00:00');
INSERT INTO river_migration VALUES('main', 7, '2026-01-01 00:00:00');
CREATE TABLE river_notification (
    id integer PRIMARY KEY AUTOINCREMENT,
    created_at timestamp NOT NULL DEFAULT (datetime('now', 'subsec')),
    payload text NOT NULL,
    topic text NOT NULL,
    CONSTRAINT topic_length CHECK (length(topic) > 0 AND length(topic) < 128)
);
CREATE TABLE river_job (
    id integer PRIMARY KEY, -- SQLite makes this autoincrementing automatically
    args blob NOT NULL DEFAULT (jsonb('{}')),
    attempt integer NOT NULL DEFAULT 0,
    attempted_at timestamp,
    attempted_by blob, -- json
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    errors blob, -- json
    finalized_at timestamp,
    kind text NOT NULL,
    metadata blob NOT NULL DEFAULT (jsonb('{}')),
    priority integer NOT NULL DEFAULT 1,
    queue text NOT NULL DEFAULT 'default',
    state text NOT NULL DEFAULT 'available',
    scheduled_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    tags blob NOT NULL DEFAULT (jsonb('[]')),
    unique_key blob,
    unique_states integer, max_attempts integer NOT NULL DEFAULT 25,
    CONSTRAINT finalized_or_finalized_at_null CHECK (
        (finalized_at IS NULL AND state NOT IN ('cancelled', 'completed', 'discarded')) OR
        (finalized_at IS NOT NULL AND state IN ('cancelled', 'completed', 'discarded'))
    ),
    CONSTRAINT priority_in_range CHECK (priority >= 1 AND priority <= 4),
    CONSTRAINT queue_length CHECK (length(queue) > 0 AND length(queue) < 128),
    CONSTRAINT kind_length CHECK (length(kind) > 0 AND length(kind) < 128),
    CONSTRAINT state_valid CHECK (state IN ('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled'))
);
INSERT INTO river_job VALUES(1, X'CC2E7768616E646C65721768376B6579376A6F62276964376A6F62C70C737562736372697074696F6E6773616D706C65', 0, NULL, NULL, '2026-11-16 12:30:16.716', NULL, NULL, 'belay_job', X'0C', 1, 'belay', 'available', '2026-11-16 12:30:16.716', X'0B', NULL, NULL, 1000);
CREATE TABLE river_queue (
    name text PRIMARY KEY NOT NULL,
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    metadata blob NOT NULL DEFAULT (jsonb('{}')),
    paused_at timestamp,
    updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE job_inputs (
    id   TEXT NOT NULL PRIMARY KEY, -- the job's key
    body TEXT NOT NULL              -- JSON
);
INSERT INTO job_inputs VALUES('job', '{"session":"demo"}');
CREATE TABLE approval_words (
    id      TEXT NOT NULL PRIMARY KEY REFERENCES approvals (id) ON DELETE CASCADE,
    reason  TEXT NOT NULL, -- why a person is asked
    answer  TEXT NOT NULL, -- why it was decided so
    pattern TEXT NOT NULL  -- which calls a yes is for
);
INSERT INTO approval_words VALUES('ask', '', '', '');
INSERT INTO approval_words VALUES('answered', 'it wrote', '', '');
INSERT INTO approval_words VALUES('worded', 'it lists', 'go on', 'shell(ls *)');
CREATE TABLE queued_turns (
    id      TEXT   NOT NULL PRIMARY KEY,
    session TEXT   NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    number  BIGINT NOT NULL, -- their order in the session
    agent   TEXT   NOT NULL,
    model   TEXT   NOT NULL, -- '' for the agent's own
    body    TEXT   NOT NULL  -- belay.QueuedTurn as JSON
);
INSERT INTO queued_turns VALUES('queued', 'granted', 1, 'main', '', '{"id":"queued","session":"granted","agent":"main","text":"and then","time":"2026-03-01T12:00:00Z"}');
CREATE TABLE due_turns (
    session TEXT    NOT NULL PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    agent   TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    parked  BOOLEAN NOT NULL, -- it is not due before its time
    due     BIGINT  NOT NULL, -- since when, or from when on
    holder  TEXT    NOT NULL, -- who has claimed it, '' for nobody
    claimed BIGINT  NOT NULL, -- when
    mark    BIGINT  NOT NULL  -- counts what has made it due
, why TEXT NOT NULL DEFAULT '');
INSERT INTO due_turns VALUES('granted', 'main', '', 0, 1772366400000000000, '', 0, 1, '');
INSERT INTO due_turns VALUES('demo', 'main', '', 1, 1772366400000000000, '', 0, 1, 'the service does not answer');
CREATE INDEX sessions_held ON sessions (holder) WHERE holder <> '';
CREATE INDEX approvals_session ON approvals (session, response);
CREATE INDEX approvals_pending ON approvals (asked) WHERE decision = '';
CREATE INDEX runs_started ON runs (started);
CREATE INDEX runs_session ON runs (session, started);
CREATE INDEX runs_replaced ON runs (changed) WHERE changed > 0;
CREATE INDEX runs_unfinished ON runs (holder) WHERE state = 'started';
CREATE INDEX river_notification_created_at_idx ON river_notification (created_at);
CREATE INDEX river_notification_topic_id_idx ON river_notification (topic, id);
CREATE INDEX river_job_kind ON river_job (kind);
CREATE INDEX river_job_state_and_finalized_at_index ON river_job (state, finalized_at) WHERE finalized_at IS NOT NULL;
CREATE INDEX river_job_prioritized_fetching_index ON river_job (state, queue, priority, scheduled_at, id);
CREATE UNIQUE INDEX river_job_unique_idx ON river_job (unique_key)
    WHERE unique_key IS NOT NULL
        AND unique_states IS NOT NULL
        AND CASE state
            WHEN 'available' THEN unique_states & (1 << 0)
            WHEN 'cancelled' THEN unique_states & (1 << 1)
            WHEN 'completed' THEN unique_states & (1 << 2)
            WHEN 'discarded' THEN unique_states & (1 << 3)
            WHEN 'pending'   THEN unique_states & (1 << 4)
            WHEN 'retryable' THEN unique_states & (1 << 5)
            WHEN 'running'   THEN unique_states & (1 << 6)
            WHEN 'scheduled' THEN unique_states & (1 << 7)
            ELSE 0
        END >= 1;
CREATE INDEX runs_subscription ON runs (subscription, started);
CREATE INDEX runs_phase ON runs (phase, started);
CREATE INDEX runs_state ON runs (state, started) WHERE state <> 'completed';
CREATE INDEX runs_job ON runs (job, started) WHERE job <> '';
CREATE INDEX job_keys_unfinished ON job_keys (session) WHERE NOT done;
CREATE UNIQUE INDEX queued_turns_session ON queued_turns (session, number);
CREATE INDEX due_turns_waiting ON due_turns (due, session) WHERE holder = '' AND NOT parked;
CREATE INDEX due_turns_parked ON due_turns (due) WHERE holder = '' AND parked;
CREATE INDEX due_turns_claimed ON due_turns (holder) WHERE holder <> '';
