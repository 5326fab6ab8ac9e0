package postgres

import (
	"context"
	"fmt"
	"iter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
)

// Read yields the messages of a session with numbers higher than after. It does not yield
// messages that are stored during the iteration.
func (s *Store) Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
	return func(yield func(*belay.Message, error) bool) {
		err := belay.ErrNotFound
		if storable(session) {
			err = record.Messages(ctx, s.read, session, after, func(m *belay.Message) bool { return yield(m, nil) })
		}
		if err != nil {
			yield(nil, fmt.Errorf("read session %q: %w", session, s.explain(err)))
		}
	}
}

// Sessions yields the matching sessions, the most recently changed first. The list is a
// snapshot from the start of the iteration.
func (s *Store) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		rows, err := record.Sessions(ctx, s.bind(s.db), filter)
		var alive map[string]bool
		if err == nil {
			alive, err = s.alive(ctx)
		}
		if err != nil {
			yield(belay.SessionInfo{}, fmt.Errorf("list sessions: %w", s.explain(record.Cause(ctx, err))))
			return
		}
		for _, row := range rows {
			info, err := record.InfoOf(row, alive[row.Holder])
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// alive returns the ids of the holders that are alive.
func (s *Store) alive(ctx context.Context) (map[string]bool, error) {
	holders, err := s.holders(ctx)
	alive := map[string]bool{s.id: true}
	for _, h := range holders {
		if !h.gone {
			alive[h.id] = true
		}
	}
	return alive, err
}

// Usage adds up what turns have used.
func (s *Store) Usage(ctx context.Context, filter belay.UsageFilter) ([]belay.UsageSum, error) {
	sums, err := record.Usage(ctx, s.bind(s.db), filter)
	if err != nil {
		return nil, fmt.Errorf("add up the usage: %w", s.explain(record.Cause(ctx, err)))
	}
	return sums, nil
}

// Approvals yields the matching approvals, oldest first. The list is a snapshot from the
// start of the iteration.
func (s *Store) Approvals(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
	return func(yield func(belay.Approval, error) bool) {
		rows, err := record.Approvals(ctx, s.bind(s.db), filter)
		if err != nil {
			yield(belay.Approval{}, fmt.Errorf("list approvals: %w", s.explain(err)))
			return
		}
		for _, row := range rows {
			approval, err := record.ApprovalOf(row)
			if !yield(approval, err) || err != nil {
				return
			}
		}
	}
}
