-- Replaces a run that has not ended; it keeps its position. A run that has ended is not changed and counts as no row.

-- name: PutRun :execrows
INSERT INTO runs (
    seq, id, changed, holder, subscription, job_handler, version, phase, dispatch,
    origin_kind, origin_name, origin_file, origin_line, session, turn, step, agent,
    execution, state, shadow, visibility, job, attempt, idempotency_key,
    started, ended, latency, error_class, severity, contributed, audit, diagnostics
) VALUES (
    @seq, @id, 0, @holder, @subscription, @job_handler, @version, @phase, @dispatch,
    @origin_kind, @origin_name, @origin_file, @origin_line, @session, @turn, @step, @agent,
    @execution, @state, @shadow, @visibility, @job, @attempt, @idempotency_key,
    @started, @ended, @latency, @error_class, @severity, @contributed, @audit, @diagnostics
)
ON CONFLICT (id) DO UPDATE SET
    changed = excluded.seq, holder = excluded.holder, subscription = excluded.subscription, job_handler = excluded.job_handler,
    version = excluded.version, phase = excluded.phase, dispatch = excluded.dispatch,
    origin_kind = excluded.origin_kind, origin_name = excluded.origin_name, origin_file = excluded.origin_file, origin_line = excluded.origin_line,
    session = excluded.session, turn = excluded.turn, step = excluded.step, agent = excluded.agent,
    execution = excluded.execution, state = excluded.state, shadow = excluded.shadow, visibility = excluded.visibility,
    job = excluded.job, attempt = excluded.attempt, idempotency_key = excluded.idempotency_key,
    started = excluded.started, ended = excluded.ended, latency = excluded.latency, error_class = excluded.error_class,
    severity = excluded.severity, contributed = excluded.contributed, audit = excluded.audit, diagnostics = excluded.diagnostics,
    more = 0, hooks = '', folded = ''
WHERE runs.state = 'started';

-- name: RunState :one
SELECT state FROM runs WHERE id = @id;

-- name: RunByID :one
SELECT * FROM runs WHERE id = @id;

-- name: RunsChanged :many
SELECT * FROM runs WHERE runs.seq > @after AND runs.seq <= @until AND runs.changed = 0
UNION ALL
SELECT * FROM runs WHERE runs.changed > @after AND runs.changed <= @until AND runs.changed > 0;

-- name: RunsOfSession :many
SELECT * FROM runs WHERE session = @session ORDER BY started, seq;

-- name: UnfinishedRuns :many
SELECT id FROM runs WHERE holder = @holder AND state = 'started' ORDER BY seq;

-- name: InterruptRun :exec
UPDATE runs SET changed = @changed, state = 'interrupted', ended = @ended, latency = @latency WHERE id = @id AND state = 'started';

-- Deletions return each removed row: its position, and how many further runs it had.

-- name: DeleteRuns :many
DELETE FROM runs WHERE session = @session RETURNING seq, more;

-- Records of sessions that were removed. All runs of a row start within a few milliseconds, so the first one counts.

-- name: DeleteOrphanRuns :many
DELETE FROM runs WHERE started < @before AND state <> 'started'
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = runs.session)
RETURNING seq, more;

-- Counts the records that would be removed.

-- name: CountRuns :one
SELECT CAST(COALESCE(sum(1 + more), 0) AS BIGINT) AS runs FROM runs WHERE session = @session;

-- name: CountOrphanRuns :one
SELECT CAST(COALESCE(sum(1 + more), 0) AS BIGINT) AS runs FROM runs WHERE started < @before AND state <> 'started'
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = runs.session);

-- name: DeleteOldestOrphanRuns :many
DELETE FROM runs WHERE seq IN (
    SELECT r.seq FROM runs r
    WHERE r.state <> 'started' AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = r.session)
    ORDER BY r.started, r.seq LIMIT @count
)
RETURNING seq, more;

-- Folded rows and the lists of their hooks.

-- name: FoldedRuns :many
SELECT * FROM runs WHERE dispatch = @dispatch AND more > 0;

-- name: FoldedAfter :many
SELECT * FROM runs WHERE seq > @after AND more > 0 ORDER BY seq LIMIT @count;

-- name: RunExists :one
SELECT count(*) FROM runs WHERE seq = @seq;

-- name: RunHooks :many
SELECT * FROM run_hooks WHERE list = @list ORDER BY idx;

-- name: PutRunHook :exec
INSERT INTO run_hooks (list, idx, subscription, version, origin_name, origin_file, origin_line)
VALUES (@list, @idx, @subscription, @version, @origin_name, @origin_file, @origin_line)
ON CONFLICT (list, idx) DO NOTHING;

-- name: DeleteUnusedHooks :exec
DELETE FROM run_hooks WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.hooks = run_hooks.list AND runs.hooks <> '');
