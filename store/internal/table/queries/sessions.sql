-- name: NextNumber :one
UPDATE counters SET value = value + @count WHERE name = @name RETURNING value;

-- name: Counter :one
SELECT value FROM counters WHERE name = @name;

-- name: SessionHold :one
SELECT epoch, holder FROM sessions WHERE id = @id;

-- name: AddSession :exec
INSERT INTO sessions (id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state)
VALUES (@id, @epoch, @holder, @created, @changed, 0, 0, 0, 0, '', '');

-- name: HoldSession :exec
UPDATE sessions SET epoch = @epoch, holder = @holder, changed = @changed WHERE id = @id;

-- name: ReleaseSession :exec
UPDATE sessions SET holder = '' WHERE id = @id AND epoch = @epoch AND holder = @holder;

-- name: ReleaseHolder :exec
UPDATE sessions SET holder = '' WHERE holder = @holder AND holder <> '';

-- name: HeldSessions :many
SELECT id, turn_state FROM sessions WHERE holder = @holder AND holder <> '' ORDER BY id;

-- The only read of the session in Commit: it checks the fence, moves the end and returns it.

-- name: MoveSession :one
UPDATE sessions SET
    changed = @changed,
    last = last + @added,
    response = CASE WHEN CAST(@response AS BIGINT) > 0 THEN CAST(@response AS BIGINT) ELSE response END,
    compaction = CASE WHEN CAST(@compaction AS BIGINT) > 0 THEN CAST(@compaction AS BIGINT) ELSE compaction END,
    keep = CASE WHEN CAST(@compaction AS BIGINT) > 0 THEN CAST(@keep AS BIGINT) ELSE keep END,
    turn_state = CASE WHEN CAST(@has_state AS BIGINT) > 0 THEN CAST(@turn_state AS TEXT) ELSE turn_state END,
    state = CASE WHEN CAST(@has_state AS BIGINT) > 0 THEN CAST(@state AS TEXT) ELSE state END
WHERE id = @id AND epoch = @epoch AND holder = @holder
RETURNING last, response, watched;

-- name: SessionRow :one
SELECT * FROM sessions WHERE id = @id;

-- name: AddMessage :exec
INSERT INTO messages (session, seq, body) VALUES (@session, @seq, @body);

-- name: AmendMessage :exec
UPDATE messages SET body = @body WHERE session = @session AND seq = @seq;

-- name: MessagesFrom :many
SELECT body FROM messages WHERE session = @session AND seq >= @seq ORDER BY seq;

-- name: MessagesBetween :many
SELECT body FROM messages WHERE session = @session AND seq > @after AND seq <= @until ORDER BY seq LIMIT @count;

-- name: PutCall :exec
INSERT INTO calls (session, message, idx, id, tool, state, input, wait, resumes, result)
VALUES (@session, @message, @idx, @id, @tool, @state, @input, @wait, @resumes, @result)
ON CONFLICT (session, message, idx) DO UPDATE SET
    id = excluded.id, tool = excluded.tool, state = excluded.state, input = excluded.input,
    wait = excluded.wait, resumes = excluded.resumes, result = excluded.result;

-- name: CallsOf :many
SELECT * FROM calls WHERE session = @session AND message = @message ORDER BY idx;

-- name: CallsOfSession :many
SELECT * FROM calls WHERE session = @session ORDER BY message, idx;

-- A write that changes nothing locks the row on every database.

-- name: LockSession :execrows
UPDATE sessions SET title = title WHERE id = @id;

-- name: DescribeSession :exec
UPDATE sessions SET title = @title, labels = @labels WHERE id = @id;

-- name: DeleteLabels :exec
DELETE FROM session_labels WHERE session = @session;

-- name: AddLabel :exec
INSERT INTO session_labels (session, name, value) VALUES (@session, @name, @value);

-- The session and those of its subagents. Their ids are a range: from the id with a slash to the id with the next character.

-- name: LockFamily :execrows
UPDATE sessions SET title = title WHERE id = @id OR (id >= CAST(@first AS TEXT) AND id < CAST(@until AS TEXT));

-- name: FamilyOf :many
SELECT id, holder FROM sessions WHERE id = @id OR (id >= CAST(@first AS TEXT) AND id < CAST(@until AS TEXT)) ORDER BY id;

-- Who works for a session besides its holder: claims its turn, or runs one of its hooks.

-- name: BusyWith :many
SELECT d.holder FROM due_turns d WHERE d.session = @session AND d.holder <> ''
UNION
SELECT r.holder FROM runs r WHERE r.session = @session AND r.state = 'started';

-- name: DeleteSession :exec
DELETE FROM sessions WHERE id = @id;

-- Sessions that can be removed: not held, without an open or queued turn, a pending approval, a running hook or an
-- unfinished job.

-- name: IdleSessions :many
SELECT s.id, s.changed FROM sessions s
WHERE s.holder = '' AND s.turn_state = ''
    AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.session = s.id AND a.decision = '')
    AND NOT EXISTS (SELECT 1 FROM job_keys k WHERE k.session = s.id AND NOT k.done)
    AND NOT EXISTS (SELECT 1 FROM due_turns d WHERE d.session = s.id)
    AND s.id NOT IN (SELECT r.session FROM runs r WHERE r.state = 'started')
ORDER BY s.changed, s.id;

-- name: SessionIdle :one
SELECT count(*) FROM sessions s
WHERE s.id = @id AND s.changed = @changed AND s.holder = '' AND s.turn_state = ''
    AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.session = s.id AND a.decision = '')
    AND NOT EXISTS (SELECT 1 FROM job_keys k WHERE k.session = s.id AND NOT k.done)
    AND NOT EXISTS (SELECT 1 FROM due_turns d WHERE d.session = s.id)
    AND s.id NOT IN (SELECT r.session FROM runs r WHERE r.state = 'started');

-- name: NewestSessions :many
SELECT id FROM sessions ORDER BY changed DESC, id DESC LIMIT @count;
