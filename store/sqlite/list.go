package sqlite

import (
	"context"
	"fmt"
	"iter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Sessions yields the matching sessions, the most recently changed first. The list is a
// snapshot from the start of the iteration.
func (s *Store) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		rows, err := record.Sessions(ctx, s.reader, filter)
		if err != nil {
			yield(belay.SessionInfo{}, fmt.Errorf("list sessions: %w", s.explain(err)))
			return
		}
		alive := map[string]bool{"": false}
		for _, row := range rows {
			info, err := s.info(ctx, s.read, row, alive)
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// info returns the description of a session. alive caches whether a holder is alive.
func (s *Store) info(ctx context.Context, q *table.Queries, row table.Session, alive map[string]bool) (belay.SessionInfo, error) {
	held, known := alive[row.Holder]
	if !known {
		held = !s.gone(ctx, q, row.Holder)
		alive[row.Holder] = held
	}
	return record.InfoOf(row, held)
}

// Usage adds up what turns have used.
func (s *Store) Usage(ctx context.Context, filter belay.UsageFilter) ([]belay.UsageSum, error) {
	sums, err := record.Usage(ctx, s.reader, filter)
	if err != nil {
		return nil, fmt.Errorf("add up the usage: %w", s.explain(err))
	}
	return sums, nil
}

// Approvals yields the matching approvals, oldest first. The list is a snapshot from the
// start of the iteration.
func (s *Store) Approvals(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
	return func(yield func(belay.Approval, error) bool) {
		rows, err := record.Approvals(ctx, s.reader, filter)
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
