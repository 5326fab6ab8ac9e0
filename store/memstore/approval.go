package memstore

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
)

// ask stores an approval. It does not change a stored approval that is already decided. The
// caller holds the store's lock.
func (s *Store) ask(se *session, a *belay.Approval) {
	known, ok := s.approvals[a.ID]
	if !ok {
		s.asked++
		known = &approval{of: se, number: s.asked}
		s.approvals[a.ID] = known
		own := s.own(se)
		own.approvals = append(own.approvals, known)
	}
	if known.Decided == nil {
		known.Approval = *a
		known.Approval = known.copied()
	}
}

// copied returns a deep copy.
func (a *approval) copied() belay.Approval {
	own := a.Approval
	if own.Decided != nil {
		decision := *own.Decided
		own.Decided = &decision
	}
	return own
}

// Decide stores the decision of a pending approval. An approval is decided only once. With
// ErrDecided, ErrWrongHash and ErrExpired, Decide also returns the stored approval. An
// approval expires when the store's clock reaches Expires.
func (s *Store) Decide(ctx context.Context, d belay.Decision) (belay.Approval, error) {
	if ctx.Err() != nil {
		return belay.Approval{}, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.approvals[d.Approval]
	if !ok {
		return belay.Approval{}, fmt.Errorf("decide approval %q: %w", d.Approval, belay.ErrNotFound)
	}
	if err := a.Accepts(d, s.now()); err != nil {
		return a.copied(), fmt.Errorf("decide %w", err)
	}
	a.Decided = &d
	return a.copied(), nil
}
