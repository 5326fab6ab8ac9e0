package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/table"
)

// Follow yields the runs that match and are stored from now on: those of this
// process at once, those of others within Options.Poll. Between them it costs a
// look at one number each time.
func (j *journal) Follow(ctx context.Context, filter hook.Filter) iter.Seq2[hook.Run, error] {
	s := (*Store)(j)
	return func(yield func(hook.Run, error) bool) {
		if err := s.follow(ctx, filter, func(r hook.Run) bool { return yield(r, nil) }); err != nil {
			yield(hook.Run{}, fmt.Errorf("follow runs: %w", s.explain(err)))
		}
	}
}

func (s *Store) follow(ctx context.Context, filter hook.Filter, yield func(hook.Run) bool) error {
	seen, err := s.read.Counter(ctx, "run")
	if err != nil {
		return causeOf(ctx, err)
	}
	for {
		stirred := s.stirred.wait() // before looking, so that nothing is missed
		last, err := s.read.Counter(ctx, "run")
		if err != nil {
			return causeOf(ctx, err)
		}
		if last > seen {
			until := min(last, seen+runPage)
			if more, err := s.followed(ctx, filter, seen, until, yield); err != nil || !more {
				return err
			}
			seen = until
			continue
		}
		poll := time.NewTimer(s.opts.Poll)
		select {
		case <-stirred:
		case <-poll.C:
		case <-s.closed:
			err = belay.ErrClosed
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		poll.Stop()
		if err != nil {
			return err
		}
	}
}

// followed yields what was stored or replaced between two numbers, in that
// order. It reports whether the caller wants more.
func (s *Store) followed(ctx context.Context, filter hook.Filter, after, until int64, yield func(hook.Run) bool) (bool, error) {
	rows, err := s.read.RunsChanged(ctx, table.RunsChangedParams{After: after, Until: until})
	if err != nil {
		return false, causeOf(ctx, err)
	}
	slices.SortFunc(rows, func(a, b table.Run) int { return cmp.Compare(place(a), place(b)) })
	for _, row := range rows {
		run, err := runOf(row)
		if err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if filter.Match(run) && !yield(run) {
			return false, nil
		}
	}
	return true, nil
}

// place is where a run is among all that was stored and replaced.
func place(row table.Run) int64 { return max(row.Seq, row.Changed) }
