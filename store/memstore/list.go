package memstore

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// Sessions yields the matching sessions in their state when the iteration
// begins, the last changed first.
func (s *Store) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) { each(ctx, s.list(filter), yield) }
}

// Approvals yields the matching approvals in their state when the iteration
// begins, oldest first. If times are equal, the one stored first comes first.
func (s *Store) Approvals(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
	return func(yield func(belay.Approval, error) bool) { each(ctx, s.inbox(filter), yield) }
}

// each yields the elements of a list until the context ends.
func each[T any](ctx context.Context, all []T, yield func(T, error) bool) {
	for i := range all {
		if ctx.Err() != nil {
			var none T
			yield(none, context.Cause(ctx))
			return
		}
		if !yield(all[i], nil) {
			return
		}
	}
}

// list finds sessions.
func (s *Store) list(filter belay.SessionFilter) []belay.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	type named struct {
		name string
		*session
	}
	var found []named
	for name, se := range s.sessions {
		if strings.HasPrefix(name, filter.Prefix) && (!filter.Open || se.state.Turn != nil) {
			found = append(found, named{name, se})
		}
	}
	slices.SortFunc(found, func(a, b named) int { return cmp.Compare(b.change, a.change) })
	found = first(found, filter.Limit)
	infos := make([]belay.SessionInfo, len(found))
	for i, se := range found {
		infos[i] = belay.SessionInfo{
			ID: se.name, Created: time.Unix(0, se.created), Changed: time.Unix(0, se.changed), Last: int64(len(se.messages)),
			Held: se.held && !se.expired, State: se.remembered(),
		}
	}
	return infos
}

// inbox finds approvals.
func (s *Store) inbox(filter belay.ApprovalFilter) []belay.Approval {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*approval
	for _, a := range s.approvals {
		if (filter.Session == "" || a.Session == filter.Session) && (!filter.Pending || a.Decided == nil) {
			found = append(found, a)
		}
	}
	slices.SortFunc(found, func(a, b *approval) int { return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.number, b.number)) })
	found = first(found, filter.Limit)
	approvals := make([]belay.Approval, len(found))
	for i, a := range found {
		approvals[i] = a.copied()
	}
	return approvals
}

// first cuts a list to its limit, if it has one.
func first[T any](all []T, limit int) []T {
	if limit > 0 && limit < len(all) {
		return all[:limit]
	}
	return all
}

// touch records that a session was changed. The store's lock is held.
func (s *Store) touch(se *session) {
	now := s.now().UnixNano()
	if se.change == 0 {
		se.created = now
	}
	s.changes++
	se.change, se.changed = s.changes, now
}
