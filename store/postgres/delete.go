package postgres

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
)

// Delete removes a session and the sessions of its subagents, with their messages, calls,
// approvals, hook runs and jobs. It keeps the keys of successful jobs, so that no job runs
// twice.
func (s *Store) Delete(ctx context.Context, session string) error {
	if !storable(session) {
		return fmt.Errorf("delete session %q: %w", session, belay.ErrNotFound)
	}
	s.payBack(ctx, session)
	for {
		left, err := s.remove(ctx, session)
		if err != nil {
			return fmt.Errorf("delete session %q: %w", session, err)
		}
		if left == "" {
			return nil
		}
		if err := s.settle(ctx, left); err != nil {
			return fmt.Errorf("delete session %q: cannot clean up after the dead holder %s: %w", session, left, err)
		}
	}
}

// remove removes a session. If a dead holder still has it, remove only returns that holder
// (see record.Deletion).
func (s *Store) remove(ctx context.Context, session string) (left string, err error) {
	err = s.submit(ctx, func(ctx context.Context, w *writing) (err error) {
		deletion := record.Deletion{
			Alive: func(ctx context.Context, holder string) error {
				gone, h, err := s.gone(ctx, w.tx, holder)
				switch {
				case err != nil || gone:
					return err
				case holder == s.id:
					return fmt.Errorf("%w: it is open in this process", belay.ErrHeld)
				}
				return fmt.Errorf("%w: by %s", belay.ErrHeld, describe(h))
			},
			Jobs: func(ctx context.Context, session string) (bool, error) { return s.queue.Remove(ctx, w.tx, session) },
			Removed: func(r record.Removed) {
				w.touched.lines.Removed(&r)
				s.granted.Forget(r.Session)
			},
		}
		left, err = deletion.Delete(ctx, w.Queries, session)
		return err
	})
	return left, err
}
