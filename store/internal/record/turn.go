package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/table"
)

// Submit stores a queued turn and makes its session due.
func Submit(ctx context.Context, db Database, q *table.Queries, turn *belay.QueuedTurn, now time.Time) error {
	body, err := encode(turn)
	if err != nil {
		return err
	}
	if err := q.EnsureSession(ctx, table.EnsureSessionParams{ID: turn.Session, Now: Nanos(now)}); err != nil {
		return err
	}
	if turn.Key.ID != "" {
		if err := takeTurnKey(ctx, db, turn, now); err != nil {
			return err
		}
	}
	// Concurrent submissions to one session wait here, so that each turn gets its own
	// number.
	number, err := q.AddDueTurn(ctx, table.AddDueTurnParams{Session: turn.Session, Agent: turn.Agent, Model: turn.Model, Due: Nanos(now)})
	if err != nil {
		return err
	}
	if turn.Follows > 0 {
		if err := checkFollows(ctx, db, turn); err != nil {
			return err
		}
	}
	return q.AddQueuedTurn(ctx, table.AddQueuedTurnParams{ID: turn.ID, Session: turn.Session, Number: number, Agent: turn.Agent, Model: turn.Model, Body: body})
}

// checkFollows returns ErrConflict unless a turn would begin right after the message that it must
// follow. The caller holds the session's row in the list of turns, so no other turn is submitted
// at the same time.
func checkFollows(ctx context.Context, db Database, turn *belay.QueuedTurn) error {
	found, err := Collect(ctx, db, "SELECT 1 FROM sessions s WHERE s.id = ? AND s.last = ? AND s.turn_state = '' AND NOT EXISTS (SELECT 1 FROM queued_turns q WHERE q.session = s.id)",
		[]any{turn.Session, turn.Follows}, func(rows *sql.Rows, one *int) error { return rows.Scan(one) })
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("another turn follows message %d: %w", turn.Follows, belay.ErrConflict)
	}
	return err
}

// Withdraw removes a queued turn. The next queued turn is due then, for its own agent, unless a
// turn is open. If there is none, the session leaves the list.
func Withdraw(ctx context.Context, db Database, q *table.Queries, session, turn string) error {
	n, err := q.TakeUpTurn(ctx, table.TakeUpTurnParams{ID: turn, Session: session})
	if err == nil && n == 0 {
		err = belay.ErrNotFound
	}
	if err != nil {
		return err
	}
	scan := func(rows *sql.Rows, session *string) error { return rows.Scan(session) }
	const idle = " WHERE session = ? AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = due_turns.session AND s.turn_state = '')"
	const next = " FROM queued_turns q WHERE q.session = due_turns.session ORDER BY q.number LIMIT 1)"
	const update = "UPDATE due_turns SET agent = COALESCE((SELECT q.agent" + next + ", agent), model = COALESCE((SELECT q.model" + next + ", model)" + idle + " RETURNING session"
	if _, err := Collect(ctx, db, update, []any{session}, scan); err != nil {
		return err
	}
	_, err = Collect(ctx, db, "DELETE FROM due_turns"+idle+" AND holder = '' AND NOT EXISTS (SELECT 1 FROM queued_turns q WHERE q.session = due_turns.session) RETURNING session", []any{session}, scan)
	return err
}

// keyAge is how long the key of a turn is kept. No client repeats a request after such a time.
const keyAge = 7 * 24 * time.Hour

// takeTurnKey stores the key of a turn. It returns a *belay.SubmittedError if the key is taken.
// It removes old keys of the session, so that a long session does not collect them.
func takeTurnKey(ctx context.Context, db Database, turn *belay.QueuedTurn, now time.Time) error {
	scan := func(rows *sql.Rows, id *string) error { return rows.Scan(id) }
	if _, err := Collect(ctx, db, "DELETE FROM turn_keys WHERE session = ? AND created < ? RETURNING id", []any{turn.Session, Nanos(now.Add(-keyAge))}, scan); err != nil {
		return err
	}
	taken := "NOTHING"
	if turn.Key.Replace {
		taken = "UPDATE SET session = excluded.session, turn = excluded.turn, hash = excluded.hash, position = excluded.position, created = excluded.created"
	}
	stored, err := Collect(ctx, db, "INSERT INTO turn_keys (id, session, turn, hash, position, created) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO "+taken+" RETURNING id",
		[]any{turn.Key.ID, turn.Session, turn.ID, turn.Key.Hash, turn.Key.After, Nanos(now)}, scan)
	if err != nil || len(stored) > 0 {
		return err
	}
	first, err := Submitted(ctx, db, turn.Key.ID)
	if err != nil {
		return err
	}
	return first
}

// Submitted reads the turn that was submitted with a key.
func Submitted(ctx context.Context, db Database, key string) (*belay.SubmittedError, error) {
	found, err := Collect(ctx, db, "SELECT session, turn, hash, position, created FROM turn_keys WHERE id = ?", []any{key}, func(rows *sql.Rows, s *belay.SubmittedError) error {
		var created int64
		err := rows.Scan(&s.Session, &s.Turn, &s.Key.Hash, &s.Key.After, &created)
		s.Key.ID, s.Time = key, time.Unix(0, created)
		return err //nolint:wrapcheck // Collect adds context
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, belay.ErrNotFound
	}
	return &found[0], nil
}

// Requeue makes the turn of an existing session due, and stores who asked to abort which turn.
func Requeue(ctx context.Context, db Database, q *table.Queries, turn *belay.DueTurn, now time.Time) error {
	if _, err := q.SessionRow(ctx, turn.Session); errors.Is(err, sql.ErrNoRows) {
		return belay.ErrNotFound
	} else if err != nil {
		return err
	}
	_, err := q.AddDueTurn(ctx, table.AddDueTurnParams{Session: turn.Session, Agent: turn.Agent, Model: turn.Model, Due: Nanos(now)})
	if err == nil && turn.Abort != "" {
		_, err = Collect(ctx, db, "UPDATE due_turns SET abort = ?, abort_turn = ? WHERE session = ? RETURNING session", []any{turn.Abort, turn.AbortTurn, turn.Session}, func(rows *sql.Rows, session *string) error { return rows.Scan(session) })
	}
	return err
}

// Aborts returns the turns that a holder has claimed and should abort.
func Aborts(ctx context.Context, db Database, holder string) ([]belay.DueTurn, error) {
	return Collect(ctx, db, "SELECT session, agent, model, abort, abort_turn FROM due_turns WHERE holder = ? AND abort <> ''", []any{holder}, func(rows *sql.Rows, turn *belay.DueTurn) error {
		return rows.Scan(&turn.Session, &turn.Agent, &turn.Model, &turn.Abort, &turn.AbortTurn)
	})
}

// Queued reads the turns of a session that have not begun.
func Queued(ctx context.Context, q *table.Queries, session string) ([]belay.QueuedTurn, error) {
	bodies, err := q.QueuedTurns(ctx, session)
	if err != nil {
		return nil, err
	}
	return all(bodies, func(body string) (turn belay.QueuedTurn, err error) {
		err = Decode(body, &turn)
		return turn, err
	})
}

// TurnKind is the agent and the model of a due turn.
type TurnKind struct{ Agent, Model string }

// waitingKinds lists the agents and models that have due turns. Each step of the recursion
// finds the next agent and model in the index, however many turns each of them has.
const waitingKinds = `WITH RECURSIVE kinds (agent, model) AS (
	SELECT (SELECT agent FROM due_turns WHERE holder = '' AND NOT parked ORDER BY agent, model LIMIT 1),
		(SELECT model FROM due_turns WHERE holder = '' AND NOT parked ORDER BY agent, model LIMIT 1)
	UNION ALL
	SELECT (SELECT d.agent FROM due_turns d WHERE d.holder = '' AND NOT d.parked AND (d.agent, d.model) > (kinds.agent, kinds.model)
			ORDER BY d.agent, d.model LIMIT 1),
		(SELECT d.model FROM due_turns d WHERE d.holder = '' AND NOT d.parked AND (d.agent, d.model) > (kinds.agent, kinds.model)
			ORDER BY d.agent, d.model LIMIT 1)
	FROM kinds WHERE kinds.agent IS NOT NULL
)
SELECT kinds.agent, kinds.model FROM kinds WHERE kinds.agent IS NOT NULL`

// firstOfKind selects, for an agent and a model, the turn that has been due longest.
const firstOfKind = " FROM due_turns d WHERE d.holder = '' AND NOT d.parked AND d.agent = kinds.agent AND d.model = kinds.model ORDER BY d.due, d.session LIMIT 1)"

// KindsQuery returns a query for the agents and models with due turns that match the
// filter. The one whose turn has been due longest comes first.
func KindsQuery(filter belay.TurnFilter) (query string, args []any) {
	query = waitingKinds
	except := func(condition string, words []string) {
		if len(words) == 0 {
			return
		}
		query += " AND " + condition + " NOT IN (?" + strings.Repeat(", ?", len(words)-1) + ")"
		for _, word := range words {
			args = append(args, word)
		}
	}
	except("kinds.agent", filter.ExceptAgents)
	except("kinds.model", filter.ExceptModels)
	if len(filter.ExceptOwn) > 0 {
		except("(kinds.model <> '' OR kinds.agent", filter.ExceptOwn)
		query += ")"
	}
	return query + " ORDER BY (SELECT d.due" + firstOfKind + ", (SELECT d.session" + firstOfKind, args
}

// WaitingKinds returns the agents and models of the turns that can be claimed. The one
// whose turn has been due longest comes first.
func WaitingKinds(ctx context.Context, db Database, filter belay.TurnFilter) ([]TurnKind, error) {
	query, args := KindsQuery(filter)
	return Collect(ctx, db, query, args, func(rows *sql.Rows, kind *TurnKind) error { return rows.Scan(&kind.Agent, &kind.Model) })
}

// ClaimQuery returns the SQL that claims one turn: of the due turns of an agent and a
// model, the one that has been due longest. lock is appended to the SQL that selects the
// turn, for databases with concurrent writers.
func ClaimQuery(lock string) string {
	return "UPDATE due_turns SET holder = ?, claimed = ?, why = '' WHERE session = (SELECT session FROM due_turns" +
		" WHERE holder = '' AND NOT parked AND agent = ? AND model = ? ORDER BY due, session LIMIT 1" + lock + ")" +
		" AND holder = '' RETURNING session, agent, model, due, mark, abort, abort_turn"
}

// ClaimTurn claims a due turn of the first of these kinds that has one.
func ClaimTurn(ctx context.Context, db Database, holder string, now time.Time, kinds []TurnKind, lock string) (belay.DueTurn, bool, error) {
	query := ClaimQuery(lock)
	for _, kind := range kinds {
		found, err := Collect(ctx, db, query, []any{holder, Nanos(now), kind.Agent, kind.Model}, func(rows *sql.Rows, turn *belay.DueTurn) error {
			var due int64
			err := rows.Scan(&turn.Session, &turn.Agent, &turn.Model, &due, &turn.Mark, &turn.Abort, &turn.AbortTurn)
			turn.Since = Moment(due)
			return err //nolint:wrapcheck // the store adds context
		})
		if err != nil {
			return belay.DueTurn{}, false, err
		}
		if len(found) > 0 {
			return found[0], true, nil
		}
	}
	return belay.DueTurn{}, false, nil
}

// longestWhy is the maximum length of a stored reason for a delay, in bytes.
const longestWhy = 1000

// SettleTurn releases a claim. If again is zero, the turn has ended: it leaves the list,
// unless another turn is queued or the session was woken. If again is not zero, the turn is
// due at that time. If that time is in the past, the turn keeps its position in the queue.
// SettleTurn reports whether a turn may be due now.
func SettleTurn(ctx context.Context, q *table.Queries, holder string, turn belay.DueTurn, again, now time.Time) (due bool, err error) {
	if !again.IsZero() {
		n, err := q.PutOffTurn(ctx, table.PutOffTurnParams{
			Session: turn.Session, Holder: holder, Mark: turn.Mark, Parked: again.After(now), Again: Nanos(again), Now: min(Nanos(again), Nanos(now)),
			Why: beginning(turn.Why, longestWhy),
		})
		return n > 0, err
	}
	n, err := q.DropTurn(ctx, table.DropTurnParams{Session: turn.Session, Holder: holder, Mark: turn.Mark})
	if err != nil || n > 0 {
		return false, err
	}
	n, err = q.NextTurn(ctx, table.NextTurnParams{Session: turn.Session, Holder: holder, Due: Nanos(now)})
	return n > 0, err
}

// beginning cuts a text that has more than most bytes. It does not split characters.
func beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Wake makes the turns of a session and of its parent sessions due. The id of a parent
// session is a prefix of the session's id. Wake returns false if there was no turn.
func Wake(ctx context.Context, q *table.Queries, session string, now time.Time) (woken bool, err error) {
	for id := session; ; {
		n, err := q.WakeTurn(ctx, table.WakeTurnParams{Session: id, Due: Nanos(now)})
		if err != nil {
			return woken, err
		}
		woken = woken || n > 0
		cut := strings.LastIndexByte(id, '/')
		if cut < 0 {
			return woken, nil
		}
		id = id[:cut]
	}
}

// WakeExpired makes delayed turns due if their delay is over.
func WakeExpired(ctx context.Context, read *table.Queries, now time.Time, write func(func(context.Context, *table.Queries) error) error) error {
	first, err := read.FirstParked(ctx) // reads only an index, however many turns there are
	if err != nil || first == 0 || first > Nanos(now) {
		return err
	}
	return write(func(ctx context.Context, q *table.Queries) error {
		_, err := q.WakeExpired(ctx, Nanos(now))
		return err
	})
}

// putOffAtMost is the maximum number of turns in belay.Load.PutOff.
const putOffAtMost = 20

// Load reads how many turns wait, and what each holder runs. The caller passes the
// descriptions of the holders.
func Load(ctx context.Context, q *table.Queries, now time.Time, holders map[string]*belay.HolderLoad) (load belay.Load, err error) {
	waiting, err := q.TurnsWaiting(ctx, Nanos(now))
	if err != nil {
		return load, err
	}
	load.Waiting = int(waiting.Waiting)
	if waiting.Oldest > 0 {
		load.OldestAge = max(0, now.Sub(Moment(waiting.Oldest)))
	}
	parked, err := q.TurnsParked(ctx, Nanos(now))
	if err != nil {
		return load, err
	}
	load.Parked = int(parked)
	late, err := q.TurnsPutOff(ctx, table.TurnsPutOffParams{Now: Nanos(now), Count: putOffAtMost})
	if err != nil {
		return load, err
	}
	for _, row := range late {
		load.PutOff = append(load.PutOff, belay.DueTurn{
			Session: row.Session, Agent: row.Agent, Model: row.Model, Since: Moment(row.Claimed), Again: Moment(row.Due), Why: row.Why,
		})
	}
	held, err := q.HeldCounts(ctx)
	if err != nil {
		return load, err
	}
	for _, row := range held {
		if h := holders[row.Holder]; h != nil {
			h.Sessions = row.Sessions
		}
	}
	claimed, err := q.TurnsClaimed(ctx)
	if err != nil {
		return load, err
	}
	for _, row := range claimed {
		if h := holders[row.Holder]; h != nil {
			h.Turns = append(h.Turns, belay.DueTurn{Session: row.Session, Agent: row.Agent, Model: row.Model, Since: Moment(row.Claimed)})
		}
	}
	return load, nil
}

// Seen identifies a state of a session. Compare two values to detect a change.
type Seen struct{ epoch, last, changed int64 }

// Changed is the state of a session that was changed.
type Changed struct {
	ID   string
	Seen Seen
}

// ChangedSince reads the states of the sessions that were changed at a time or later.
func ChangedSince(ctx context.Context, db Database, since time.Time) ([]Changed, error) {
	return Collect(ctx, db, "SELECT id, epoch, last, changed FROM sessions WHERE changed >= ?", []any{Nanos(since)}, scanChanged)
}

// StatesOf reads the states of the sessions with these ids.
func StatesOf(ctx context.Context, db Database, ids []string) ([]Changed, error) {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	return Collect(ctx, db, "SELECT id, epoch, last, changed FROM sessions WHERE id IN (?"+strings.Repeat(",?", len(ids)-1)+")", args, scanChanged)
}

func scanChanged(rows *sql.Rows, c *Changed) error {
	return rows.Scan(&c.ID, &c.Seen.epoch, &c.Seen.last, &c.Seen.changed) //nolint:wrapcheck // Collect adds context
}

// SeenOf returns the current state of a session.
func SeenOf(row table.Session) Seen { return Seen{row.Epoch, row.Last, row.Changed} }
