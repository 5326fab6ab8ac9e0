package postgres

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
)

// journal implements [hook.FollowJournal] on a store.
type journal Store

// Append stores all runs or none. It returns when they are durable.
func (j *journal) Append(ctx context.Context, runs []hook.Run) error {
	s := (*Store)(j)
	rows, err := record.RunRows(s.id, runs)
	if err != nil || len(rows) == 0 {
		return err
	}
	return s.submit(ctx, func(ctx context.Context, w *writing) error { return w.appendRuns(ctx, rows) })
}

// number returns n new positions for runs. It first makes sure that the transaction has a
// number, see numbered.
func (w *writing) number(ctx context.Context, n int) ([]int64, error) {
	if _, err := w.tx.Exec(ctx, numbered); err != nil {
		return nil, err //nolint:wrapcheck // the caller adds context
	}
	rows, err := w.tx.Query(ctx, "SELECT nextval('belay_run') FROM generate_series(1, $1)", n)
	if err != nil {
		return nil, err //nolint:wrapcheck // likewise
	}
	places, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err == nil && len(places) != n {
		err = fmt.Errorf("the server returned %d positions for %d runs", len(places), n)
	}
	slices.Sort(places)
	w.runs = true
	return places, err
}

// List yields the runs that match when the iteration begins, each once, ordered by start
// time and then by position. If a run is replaced during the iteration, the caller may get
// the new state at the old position.
func (j *journal) List(ctx context.Context, filter hook.Filter) iter.Seq2[hook.Run, error] {
	s := (*Store)(j)
	return func(yield func(hook.Run, error) bool) {
		if err := record.Runs(ctx, s.bind(s.db), filter, func(r hook.Run) bool { return yield(r, nil) }); err != nil {
			yield(hook.Run{}, fmt.Errorf("list runs: %w", s.explain(err)))
		}
	}
}

// Follow yields matching runs that are stored after the call. It yields runs of this
// process at once, and runs of other processes within Options.Poll. A long transaction on
// the server can delay Follow, but no run is lost. Polling reads only one number.
func (j *journal) Follow(ctx context.Context, filter hook.Filter) iter.Seq2[hook.Run, error] {
	s := (*Store)(j)
	return func(yield func(hook.Run, error) bool) {
		if err := s.follow(ctx, filter, func(r hook.Run) bool { return yield(r, nil) }); err != nil {
			yield(hook.Run{}, fmt.Errorf("follow runs: %w", s.explain(record.Cause(ctx, err))))
		}
	}
}

// Last returns the last position in the journal.
func (j *journal) Last(ctx context.Context) (int64, error) {
	s := (*Store)(j)
	last, err := s.lastNumber(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the last position: %w", s.explain(record.Cause(ctx, err)))
	}
	return last, nil
}

func (s *Store) follow(ctx context.Context, filter hook.Filter, yield func(hook.Run) bool) error {
	seen, err := s.lastNumber(ctx)
	if err != nil {
		return err
	}
	seen = record.FollowStart(&filter, seen)
	for {
		stirred := s.stirred.wait() // subscribe before reading, so that no run is missed
		last, err := s.lastNumber(ctx)
		if err != nil {
			return err
		}
		if last > seen {
			if err := s.settledUpTo(ctx); err != nil {
				return err
			}
		}
		for seen < last {
			until := min(last, seen+record.RunPage)
			if more, err := record.Followed(ctx, s.bind(s.db), s.read, filter, seen, until, yield); err != nil || !more {
				return err
			}
			seen = until
		}
		if err := s.await(ctx, stirred, s.opts.Poll); err != nil {
			return err
		}
	}
}

// lastNumber returns the last position that was assigned to a run.
func (s *Store) lastNumber(ctx context.Context) (last int64, err error) {
	err = s.ask(ctx, &last, "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM belay_run")
	return last, err
}

// settledPoll is how often settledUpTo checks whether transactions have ended.
const settledPoll = 2 * time.Millisecond

// settledUpTo returns when all transactions that were running at the call have ended. A run
// gets its position before the commit, and is visible only after the commit. So after the
// wait no earlier position can appear. The server numbers transactions in order:
// settledUpTo takes a new number and waits for all transactions with a lower one.
func (s *Store) settledUpTo(ctx context.Context) error {
	var horizon, oldest int64
	if err := s.ask(ctx, &horizon, "SELECT pg_current_xact_id()::text::bigint"); err != nil {
		return err
	}
	for wait := settledPoll; ; wait = min(2*wait, s.opts.Poll) {
		if err := s.ask(ctx, &oldest, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"); err != nil {
			return err
		}
		if oldest >= horizon {
			return nil
		}
		if err := s.await(ctx, nil, wait); err != nil {
			return err
		}
	}
}

// ask runs a query that returns one number.
func (s *Store) ask(ctx context.Context, to *int64, query string) error {
	return s.persist(ctx, func() error { return s.pool.QueryRow(ctx, query).Scan(to) })
}

// await waits for a signal, but not longer than atMost.
func (s *Store) await(ctx context.Context, signal <-chan struct{}, atMost time.Duration) error {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-signal:
	case <-timer.C:
	case <-s.closed:
		return belay.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
