package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Submit stores a queued turn and makes its session due.
func (s *Store) Submit(ctx context.Context, turn belay.QueuedTurn) error {
	if !storable(turn.Session) {
		return fmt.Errorf("submit to session %q: the session id is invalid: %w", turn.Session, errUnstorable)
	}
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		return record.Submit(ctx, w.pipe, w.Queries, &turn, s.now())
	})
	if err != nil {
		return fmt.Errorf("submit to session %q: %w", turn.Session, err)
	}
	s.ring(ctx, turnChannel, "")
	return nil
}

// Submitted returns the turn that was submitted with a key.
func (s *Store) Submitted(ctx context.Context, key string) (*belay.SubmittedError, error) {
	first, err := record.Submitted(ctx, s.bind(s.db), key)
	if err != nil {
		return nil, fmt.Errorf("read a submitted turn: %w", s.explain(record.Cause(ctx, err)))
	}
	return first, nil
}

// Queued returns the turns of a session that have not begun, oldest first.
func (s *Store) Queued(ctx context.Context, session string) ([]belay.QueuedTurn, error) {
	turns, err := record.Queued(ctx, s.read, session)
	if err != nil {
		return nil, fmt.Errorf("queued turns of session %q: %w", session, s.explain(record.Cause(ctx, err)))
	}
	return turns, nil
}

// Claim waits for a due turn and claims it. A notification of the server wakes it. If the
// notification is lost, Claim finds the turn within Options.TurnPoll.
func (s *Store) Claim(ctx context.Context, filter belay.TurnFilter) (belay.DueTurn, error) {
	s.works.Store(true)
	s.listen()
	for {
		stirred := s.due.wait() // subscribe before reading, so that no turn is missed
		turn, ok, err := s.claimTurn(ctx, filter)
		if err != nil {
			return turn, fmt.Errorf("claim a turn: %w", s.explain(record.Cause(ctx, err)))
		}
		if ok {
			return turn, nil
		}
		if err := s.await(ctx, stirred, s.opts.TurnPoll); err != nil {
			return turn, fmt.Errorf("claim a turn: %w", err)
		}
	}
}

// passing makes concurrent claims select different turns.
const passing = " FOR UPDATE SKIP LOCKED"

func (s *Store) claimTurn(ctx context.Context, filter belay.TurnFilter) (turn belay.DueTurn, ok bool, err error) {
	if err := s.markWorker(ctx); err != nil {
		return turn, false, err
	}
	if err := s.overdue(ctx); err != nil {
		return turn, false, err
	}
	if err := s.takeOver(ctx); err != nil {
		return turn, false, err
	}
	if err := s.claims.clear(ctx, s); err != nil {
		return turn, false, err
	}
	kinds, err := record.WaitingKinds(ctx, s.bind(s.db), filter)
	if err != nil || len(kinds) == 0 {
		return turn, false, err
	}
	s.claims.claiming.Lock()
	defer s.claims.claiming.Unlock()
	err = s.submit(ctx, func(ctx context.Context, w *writing) error {
		// If this holder counts as dead, it must register again before it claims a turn.
		var lives bool
		err := w.tx.QueryRow(ctx, "SELECT count(*) > 0 FROM (SELECT 1 FROM holders WHERE id = $1 AND seen + lease > clock_timestamp() FOR KEY SHARE) AS living", s.id).Scan(&lives)
		if err == nil && !lives {
			err = s.enter(ctx, w.tx)
		}
		if err != nil {
			return err
		}
		turn, ok, err = record.ClaimTurn(ctx, w.pipe, s.id, s.now(), kinds, passing)
		return err
	})
	switch {
	case err != nil && isCut(err): // the claim may have been stored
		s.claims.doubtful = time.Now()
	case err == nil && ok: // after any other error nothing is stored
		s.claims.add(turn.Session)
	}
	return turn, ok && err == nil, err
}

// markWorker records once that this process claims turns.
func (s *Store) markWorker(ctx context.Context) error {
	if s.marked.Load() {
		return nil
	}
	err := s.submit(ctx, func(ctx context.Context, w *writing) error { return w.MarkWorker(ctx, s.id) })
	s.marked.Store(err == nil)
	return err
}

// claims are the turns that this store has claimed, as far as it knows.
type claims struct {
	// claiming is locked during a claim, and guards doubtful. If doubtful is not zero, the
	// table may contain claims since that time that this store does not know.
	claiming sync.Mutex
	doubtful time.Time

	mu    sync.Mutex
	known map[string]bool
}

func (c *claims) add(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = make(map[string]bool)
	}
	c.known[session] = true
}

func (c *claims) drop(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, session)
}

// clear releases claims in the table that this store does not know. They come from commits
// whose connection was lost. A commit like this can still succeed until the server has
// ended its transaction. So clear runs several times.
func (c *claims) clear(ctx context.Context, s *Store) error {
	c.claiming.Lock()
	defer c.claiming.Unlock()
	if c.doubtful.IsZero() {
		return nil
	}
	over := time.Since(c.doubtful) > max(s.lease(), 2*time.Second)
	c.mu.Lock()
	known := slices.AppendSeq(make([]string, 0, len(c.known)), maps.Keys(c.known)) // must not be nil: nil would be NULL, which matches nothing
	c.mu.Unlock()
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		_, err := w.tx.Exec(ctx, "UPDATE due_turns SET holder = '' WHERE holder = $1 AND NOT session = ANY ($2::text[])", s.id, known)
		return err //nolint:wrapcheck // Claim adds context
	})
	if err == nil && over {
		c.doubtful = time.Time{}
	}
	return err
}

// overduePoll is how often overdue checks for delayed turns.
const overduePoll = time.Second

// overdue makes delayed turns due if their delay is over. It checks at most once per
// overduePoll.
func (s *Store) overdue(ctx context.Context) error {
	now, last := time.Now().UnixNano(), s.lookedForOverdue.Load()
	if time.Duration(now-last) < overduePoll || !s.lookedForOverdue.CompareAndSwap(last, now) {
		return nil
	}
	return record.WakeExpired(ctx, s.read, s.now(), func(do func(context.Context, *table.Queries) error) error {
		return s.submit(ctx, func(ctx context.Context, w *writing) error { return do(ctx, w.Queries) })
	})
}

// takeOver makes turns due again that dead holders had claimed. It checks at most once per
// recoverPoll. Stores that run jobs do the same, but a store can claim turns without
// running jobs.
func (s *Store) takeOver(ctx context.Context) error {
	now, last := time.Now().UnixNano(), s.lookedForGone.Load()
	if time.Duration(now-last) < s.recoverPoll() || !s.lookedForGone.CompareAndSwap(last, now) {
		return nil
	}
	var gone []string
	err := s.persist(ctx, func() error {
		rows, err := s.pool.Query(ctx, `SELECT DISTINCT due_turns.holder FROM due_turns LEFT JOIN holders ON holders.id = due_turns.holder
			WHERE due_turns.holder <> '' AND due_turns.holder <> $1 AND COALESCE(holders.seen + holders.lease <= clock_timestamp(), TRUE)`, s.id)
		if err == nil {
			gone, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err //nolint:wrapcheck // Claim adds context
	})
	for _, holder := range gone {
		err = errors.Join(err, s.settle(ctx, holder))
	}
	return err
}

// Settle releases a claim. If again is not zero, the turn is due again at that time.
func (s *Store) Settle(ctx context.Context, turn belay.DueTurn, again time.Time) error {
	var due bool
	s.claims.drop(turn.Session) // before submit, because the turn can be claimed again at once
	err := s.submit(ctx, func(ctx context.Context, w *writing) (err error) {
		due, err = record.SettleTurn(ctx, w.Queries, s.id, turn, again, s.now())
		return err
	})
	if err != nil {
		s.claims.add(turn.Session)
		return fmt.Errorf("release the claim on the turn of session %q: %w", turn.Session, err)
	}
	if due {
		s.ring(ctx, turnChannel, "")
	}
	return nil
}

// Wake makes the turns of a session and of its parent sessions due now. Sessions without
// a turn do not change.
func (s *Store) Wake(ctx context.Context, session string) error {
	var woken bool
	err := s.submit(ctx, func(ctx context.Context, w *writing) (err error) {
		woken, err = record.Wake(ctx, w.Queries, session, s.now())
		return err
	})
	if err != nil {
		return fmt.Errorf("wake session %q: %w", session, err)
	}
	if woken {
		s.ring(ctx, turnChannel, "")
	}
	return nil
}

// Requeue makes the open turn of a session due.
func (s *Store) Requeue(ctx context.Context, turn belay.DueTurn) error {
	if !storable(turn.Session) {
		return fmt.Errorf("queue the turn of session %q: %w", turn.Session, belay.ErrNotFound)
	}
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		return record.Requeue(ctx, w.pipe, w.Queries, &turn, s.now())
	})
	if err != nil {
		return fmt.Errorf("queue the turn of session %q: %w", turn.Session, err)
	}
	s.ring(ctx, turnChannel, "")
	return nil
}

// Withdraw removes a queued turn that has not begun.
func (s *Store) Withdraw(ctx context.Context, session, turn string) error {
	if !storable(session) || !storable(turn) {
		return fmt.Errorf("withdraw turn %q of session %q: %w", turn, session, belay.ErrNotFound)
	}
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		return record.Withdraw(ctx, w.pipe, w.Queries, session, turn)
	})
	if err != nil {
		return fmt.Errorf("withdraw turn %q of session %q: %w", turn, session, err)
	}
	return nil
}

// Aborts returns the turns that this store has claimed and should abort.
func (s *Store) Aborts(ctx context.Context) ([]belay.DueTurn, error) {
	turns, err := record.Aborts(ctx, s.bind(s.db), s.id)
	if err != nil {
		return nil, fmt.Errorf("read which turns to abort: %w", s.explain(record.Cause(ctx, err)))
	}
	return turns, nil
}

// Load returns which sessions and turns each holder has, and how many turns wait.
func (s *Store) Load(ctx context.Context) (load belay.Load, err error) {
	holders, err := s.holders(ctx)
	if err != nil {
		return load, fmt.Errorf("load: %w", s.explain(record.Cause(ctx, err)))
	}
	byID, list := make(map[string]*belay.HolderLoad), make([]belay.HolderLoad, len(holders))
	for i, h := range holders {
		list[i] = belay.HolderLoad{PID: h.pid, Host: h.host, Since: h.since, Self: h.id == s.id, Gone: h.gone && h.id != s.id, Worker: h.worker}
		byID[h.id] = &list[i]
	}
	err = s.look(ctx, func(q *table.Queries) error {
		load, err = record.Load(ctx, q, s.now(), byID)
		return err
	})
	if err != nil {
		return load, fmt.Errorf("load: %w", s.explain(record.Cause(ctx, err)))
	}
	load.Holders = list
	return load, nil
}

// While Changes watches a session, the row of the session contains the end of the watch,
// which Changes renews. A commit sends a notification only if its session is watched.
const (
	watchedFor   = 5 * time.Minute
	watchedAgain = time.Minute
)

// Changes yields the current state of a session, and then the new state after a change. If
// the session changes several times quickly, Changes may yield only the last state. A
// notification of the server wakes it. If the notification is lost, Changes finds the
// change within Options.TurnPoll. If the connection is lost, Changes tries again.
func (s *Store) Changes(ctx context.Context, session string) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		err := belay.ErrNotFound
		if storable(session) {
			err = s.changes(ctx, session, func(info belay.SessionInfo) bool { return yield(info, nil) })
		}
		if err != nil {
			yield(belay.SessionInfo{}, fmt.Errorf("changes of session %q: %w", session, s.explain(record.Cause(ctx, err))))
		}
	}
}

func (s *Store) changes(ctx context.Context, session string, yield func(belay.SessionInfo) bool) error {
	w, stop := s.ear.watch(session)
	defer stop()
	s.listen()
	var seen record.Seen
	var said time.Time // when watchedRow last renewed the watch
	for {
		changed := w.changed.wait() // subscribe before reading, so that no change is missed
		row, err := s.watchedRow(ctx, session, &said)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return belay.ErrNotFound
		case err != nil && ctx.Err() == nil && isCut(err): // the server is unreachable: try again
			s.opts.Logger.DebugContext(ctx, "cannot read a session: retrying", "store", s.name, "session", session, "error", s.explain(err))
		case err != nil:
			return err
		}
		if now := record.SeenOf(row); err == nil && now != seen {
			seen = now
			alive, err := s.alive(ctx)
			if err != nil {
				return err
			}
			info, err := record.InfoOf(row, alive[row.Holder])
			if err != nil || !yield(info) {
				return err
			}
			continue
		}
		if err := s.await(ctx, changed, s.opts.TurnPoll); err != nil {
			return err
		}
	}
}

// watchedRow reads a session. It renews the watch once per interval watchedAgain.
func (s *Store) watchedRow(ctx context.Context, session string, said *time.Time) (table.Session, error) {
	if now := s.now(); now.Sub(*said) >= watchedAgain {
		err := s.submit(ctx, func(ctx context.Context, w *writing) error {
			_, err := w.WatchSession(ctx, table.WatchSessionParams{ID: session, Until: record.Nanos(now.Add(watchedFor))})
			return err
		})
		if err != nil {
			return table.Session{}, err
		}
		*said = now
	}
	return s.read.SessionRow(ctx, session)
}

var (
	_ belay.RequeueStore = (*Store)(nil)
	_ belay.KeyStore     = (*Store)(nil)
)
