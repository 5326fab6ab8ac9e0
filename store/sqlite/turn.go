package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Submit stores a queued turn and makes its session due.
func (s *Store) Submit(ctx context.Context, turn belay.QueuedTurn) error {
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		return record.Submit(ctx, w.tx, w.Queries, &turn, s.now())
	})
	if err != nil {
		return fmt.Errorf("submit to session %q: %w", turn.Session, err)
	}
	s.due.broadcast()
	return nil
}

// Submitted returns the turn that was submitted with a key.
func (s *Store) Submitted(ctx context.Context, key string) (*belay.SubmittedError, error) {
	first, err := record.Submitted(ctx, s.reader, key)
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

// gonePoll is how often Claim checks whether processes that have claimed turns are dead.
// The check is cheap.
const gonePoll = time.Second

// Claim waits for a due turn and claims it. It sees turns of this process at once, and
// turns of other processes within Options.JobPoll.
func (s *Store) Claim(ctx context.Context, filter belay.TurnFilter) (belay.DueTurn, error) {
	for {
		stirred := s.due.wait() // subscribe before reading, so that no turn is missed
		turn, ok, err := s.claimTurn(ctx, filter)
		if err != nil || ok {
			return turn, err
		}
		if err := s.await(ctx, stirred, cmp.Or(s.opts.JobPoll, 100*time.Millisecond)); err != nil {
			return belay.DueTurn{}, fmt.Errorf("claim a turn: %w", err)
		}
	}
}

func (s *Store) claimTurn(ctx context.Context, filter belay.TurnFilter) (turn belay.DueTurn, ok bool, err error) {
	if err := s.markWorker(ctx); err != nil {
		return turn, false, fmt.Errorf("claim a turn: %w", err)
	}
	if err := s.overdue(ctx); err != nil {
		return turn, false, fmt.Errorf("claim a turn: %w", s.explain(record.Cause(ctx, err)))
	}
	kinds, err := record.WaitingKinds(ctx, s.reader, filter)
	if err != nil || len(kinds) == 0 {
		return turn, false, s.explain(record.Cause(ctx, err))
	}
	err = s.submit(ctx, func(ctx context.Context, w *writing) error {
		turn, ok, err = record.ClaimTurn(ctx, w.tx, s.id, s.now(), kinds, "")
		return err
	})
	if err != nil {
		return turn, false, fmt.Errorf("claim a turn: %w", err)
	}
	return turn, ok, nil
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

// overdue makes delayed turns due if their delay is over. Once per gonePoll, it also makes
// the turns due that dead processes had claimed.
func (s *Store) overdue(ctx context.Context) error {
	err := record.WakeExpired(ctx, s.read, s.now(), func(do func(context.Context, *table.Queries) error) error {
		return s.submit(ctx, func(ctx context.Context, w *writing) error { return do(ctx, w.Queries) })
	})
	if err != nil {
		return err
	}
	last := s.lookedForGone.Load()
	if time.Since(s.opened)-time.Duration(last) < gonePoll || !s.lookedForGone.CompareAndSwap(last, int64(time.Since(s.opened))) {
		return nil
	}
	claimed, err := s.read.TurnsClaimed(ctx)
	if err != nil {
		return err
	}
	looked := map[string]bool{s.id: true}
	for _, row := range claimed {
		if looked[row.Holder] {
			continue
		}
		looked[row.Holder] = true
		if s.gone(ctx, s.read, row.Holder) {
			if err := s.settle(ctx, row.Holder); err != nil {
				return err
			}
		}
	}
	return nil
}

// Settle releases a claim. If again is not zero, the turn is due again at that time.
func (s *Store) Settle(ctx context.Context, turn belay.DueTurn, again time.Time) error {
	var due bool
	err := s.submit(ctx, func(ctx context.Context, w *writing) (err error) {
		due, err = record.SettleTurn(ctx, w.Queries, s.id, turn, again, s.now())
		return err
	})
	if err != nil {
		return fmt.Errorf("release the claim on the turn of session %q: %w", turn.Session, err)
	}
	if due {
		s.due.broadcast()
	}
	return nil
}

// Wake makes the turns of a session and of its parent sessions due now. Sessions without
// a turn do not change.
func (s *Store) Wake(ctx context.Context, session string) error {
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		_, err := record.Wake(ctx, w.Queries, session, s.now())
		return err
	})
	if err != nil {
		return fmt.Errorf("wake session %q: %w", session, err)
	}
	s.due.broadcast()
	return nil
}

// Requeue makes the open turn of a session due.
func (s *Store) Requeue(ctx context.Context, turn belay.DueTurn) error {
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		return record.Requeue(ctx, w.tx, w.Queries, &turn, s.now())
	})
	if err != nil {
		return fmt.Errorf("queue the turn of session %q: %w", turn.Session, err)
	}
	s.due.broadcast()
	return nil
}

// Withdraw removes a queued turn that has not begun.
func (s *Store) Withdraw(ctx context.Context, session, turn string) error {
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		return record.Withdraw(ctx, w.tx, w.Queries, session, turn)
	})
	if err != nil {
		return fmt.Errorf("withdraw turn %q of session %q: %w", turn, session, err)
	}
	return nil
}

// Aborts returns the turns that this store has claimed and should abort.
func (s *Store) Aborts(ctx context.Context) ([]belay.DueTurn, error) {
	turns, err := record.Aborts(ctx, s.reader, s.id)
	if err != nil {
		return nil, fmt.Errorf("read which turns to abort: %w", s.explain(record.Cause(ctx, err)))
	}
	return turns, nil
}

// Load returns which sessions and turns each holder has, and how many turns wait.
func (s *Store) Load(ctx context.Context) (load belay.Load, err error) {
	err = s.look(ctx, func(q *table.Queries) error {
		holders, err := q.Holders(ctx)
		if err != nil {
			return err
		}
		byID, list := make(map[string]*belay.HolderLoad), make([]belay.HolderLoad, len(holders))
		for i, row := range holders {
			list[i] = belay.HolderLoad{PID: row.Pid, Host: row.Host, Since: record.Moment(row.Since), Self: row.ID == s.id, Gone: s.gone(ctx, q, row.ID), Worker: row.Worker}
			byID[row.ID] = &list[i]
		}
		load, err = record.Load(ctx, q, s.now(), byID)
		load.Holders = list
		return err
	})
	if err != nil {
		return load, fmt.Errorf("load: %w", s.explain(record.Cause(ctx, err)))
	}
	return load, nil
}

// await waits for a signal, but not longer than atMost.
func (s *Store) await(ctx context.Context, signal <-chan struct{}, atMost time.Duration) error {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-signal:
	case <-timer.C:
	case <-s.closed:
		return fmt.Errorf("%s: %w", s.path, belay.ErrClosed)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

var (
	_ belay.RequeueStore = (*Store)(nil)
	_ belay.KeyStore     = (*Store)(nil)
)
