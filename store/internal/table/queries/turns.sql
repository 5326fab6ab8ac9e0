-- name: EnsureSession :exec
INSERT INTO sessions (id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state)
VALUES (@id, 0, '', @now, @now, 0, 0, 0, 0, '', '') ON CONFLICT (id) DO NOTHING;

-- A session is on the list once. mark counts what has made it due again.

-- name: AddDueTurn :one
INSERT INTO due_turns (session, agent, model, parked, due, holder, claimed, mark)
VALUES (@session, @agent, @model, FALSE, @due, '', 0, 1)
ON CONFLICT (session) DO UPDATE SET
    mark = due_turns.mark + 1, parked = FALSE,
    due = CASE WHEN due_turns.parked THEN excluded.due ELSE due_turns.due END
RETURNING mark;

-- name: AddQueuedTurn :exec
INSERT INTO queued_turns (id, session, number, agent, model, body) VALUES (@id, @session, @number, @agent, @model, @body);

-- name: QueuedTurns :many
SELECT body FROM queued_turns WHERE session = @session ORDER BY number;

-- name: TakeUpTurn :execrows
DELETE FROM queued_turns WHERE id = @id AND session = @session;

-- name: WakeTurn :execrows
UPDATE due_turns SET
    mark = mark + 1, parked = FALSE,
    due = CASE WHEN parked THEN CAST(@due AS BIGINT) ELSE due END
WHERE session = @session;

-- Makes turns due whose delay is over.

-- name: WakeExpired :execrows
UPDATE due_turns SET parked = FALSE WHERE holder = '' AND parked AND due <= @now;

-- name: FirstParked :one
SELECT CAST(COALESCE(MIN(due), 0) AS BIGINT) AS due FROM due_turns WHERE holder = '' AND parked;

-- The turn has ended and no other is queued.

-- name: DropTurn :execrows
DELETE FROM due_turns WHERE due_turns.session = @session AND due_turns.holder = @holder AND mark = @mark
    AND NOT EXISTS (SELECT 1 FROM queued_turns q WHERE q.session = due_turns.session);

-- The turn has ended and another is queued, or was woken.

-- name: NextTurn :execrows
UPDATE due_turns SET
    holder = '', parked = FALSE, due = @due, why = '', abort = '', abort_turn = '',
    agent = COALESCE((SELECT q.agent FROM queued_turns q WHERE q.session = due_turns.session ORDER BY q.number LIMIT 1), agent),
    model = COALESCE((SELECT q.model FROM queued_turns q WHERE q.session = due_turns.session ORDER BY q.number LIMIT 1), model)
WHERE due_turns.session = @session AND due_turns.holder = @holder;

-- The turn continues later, or at once if something was submitted in the meantime.

-- name: PutOffTurn :execrows
UPDATE due_turns SET
    holder = '', why = @why,
    parked = CASE WHEN mark = CAST(@mark AS BIGINT) THEN CAST(@parked AS BOOLEAN) ELSE FALSE END,
    due = CASE WHEN mark = CAST(@mark AS BIGINT) THEN CAST(@again AS BIGINT) ELSE CAST(@now AS BIGINT) END
WHERE session = @session AND holder = @holder;

-- Releases the claims of a dead holder. If the claimed turn had already ended, the next queued turn is due.

-- name: ReleaseTurns :execrows
UPDATE due_turns SET
    holder = '',
    agent = COALESCE((SELECT q.agent FROM queued_turns q JOIN sessions s ON s.id = q.session
        WHERE q.session = due_turns.session AND s.turn_state = '' ORDER BY q.number LIMIT 1), agent),
    model = COALESCE((SELECT q.model FROM queued_turns q JOIN sessions s ON s.id = q.session
        WHERE q.session = due_turns.session AND s.turn_state = '' ORDER BY q.number LIMIT 1), model)
WHERE due_turns.holder = @holder AND due_turns.holder <> '';

-- Turns whose delay is over count as waiting, even before WakeExpired has run.

-- name: TurnsWaiting :one
SELECT count(*) AS waiting, CAST(COALESCE(MIN(due), 0) AS BIGINT) AS oldest FROM due_turns
WHERE holder = '' AND (NOT parked OR due <= @now);

-- name: TurnsParked :one
SELECT count(*) FROM due_turns WHERE holder = '' AND parked AND due > @now AND why = '';

-- name: TurnsPutOff :many
SELECT session, agent, model, claimed, due, why FROM due_turns
WHERE holder = '' AND parked AND due > @now AND why <> '' ORDER BY claimed, session LIMIT @count;

-- name: TurnsClaimed :many
SELECT session, agent, model, holder, claimed FROM due_turns WHERE holder <> '' ORDER BY claimed, session;

-- name: HeldCounts :many
SELECT holder, count(*) AS sessions FROM sessions WHERE holder <> '' GROUP BY holder;

-- name: WatchSession :execrows
UPDATE sessions SET watched = @until WHERE id = @id AND watched < @until;
