package sqlite

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
)

// Follow yields matching runs that are stored after the call. It yields runs of this
// process at once, and runs of other processes within Options.Poll. Polling reads only one
// number.
func (j *journal) Follow(ctx context.Context, filter hook.Filter) iter.Seq2[hook.Run, error] {
	s := (*Store)(j)
	return func(yield func(hook.Run, error) bool) {
		if err := s.follow(ctx, filter, func(r hook.Run) bool { return yield(r, nil) }); err != nil {
			yield(hook.Run{}, fmt.Errorf("follow runs: %w", s.explain(err)))
		}
	}
}

// Last returns the last position in the journal.
func (j *journal) Last(ctx context.Context) (int64, error) {
	s := (*Store)(j)
	last, err := s.read.Counter(ctx, "run")
	if err != nil {
		return 0, fmt.Errorf("read the last position: %w", s.explain(record.Cause(ctx, err)))
	}
	return last, nil
}

func (s *Store) follow(ctx context.Context, filter hook.Filter, yield func(hook.Run) bool) error {
	seen, err := s.read.Counter(ctx, "run")
	if err != nil {
		return record.Cause(ctx, err)
	}
	seen = record.FollowStart(&filter, seen)
	for {
		stirred := s.stirred.wait() // subscribe before reading, so that no run is missed
		last, err := s.read.Counter(ctx, "run")
		if err != nil {
			return record.Cause(ctx, err)
		}
		if last > seen {
			until := min(last, seen+record.RunPage)
			if more, err := record.Followed(ctx, s.reader, s.read, filter, seen, until, yield); err != nil || !more {
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
