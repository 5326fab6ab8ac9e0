package memstore

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// Sessions yields the matching sessions, the most recently changed first. The list is a
// snapshot from the start of the iteration.
func (s *Store) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		found, err := s.list(filter)
		if err != nil {
			yield(belay.SessionInfo{}, fmt.Errorf("list sessions: %w", err))
			return
		}
		each(ctx, found, yield)
	}
}

// Approvals yields the matching approvals, oldest first. Approvals that were asked at the
// same time come in the order in which they were stored. The list is a snapshot from the
// start of the iteration.
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

// list returns the matching sessions, the most recently changed first.
func (s *Store) list(filter belay.SessionFilter) ([]belay.SessionInfo, error) {
	after, id, err := filter.Start()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	type named struct {
		name string
		*session
	}
	var found []named
	for name, se := range s.sessions {
		if se.matches(name, &filter) && (id == "" || se.changed < after.UnixNano()) { // touch gives every change its own time
			found = append(found, named{name, se})
		}
	}
	slices.SortFunc(found, func(a, b named) int { return cmp.Compare(b.changed, a.changed) })
	found = first(found, filter.Limit)
	infos := make([]belay.SessionInfo, len(found))
	for i, se := range found {
		infos[i] = belay.SessionInfo{
			ID: se.name, Created: time.Unix(0, se.created), Changed: time.Unix(0, se.changed), Last: int64(len(se.messages)),
			Held: se.isHeld(), Title: se.title, Labels: maps.Clone(se.labels), State: se.remembered(),
		}
	}
	return infos, nil
}

// matches reports whether the session has the id, the time of change, the labels and the open
// turn that a filter asks for. It ignores filter.After.
func (se *session) matches(name string, filter *belay.SessionFilter) bool {
	switch {
	case filter.ID != "" && name != filter.ID, !strings.HasPrefix(name, filter.Prefix):
		return false
	case filter.Open && se.state.Turn == nil, !filter.Since.IsZero() && se.changed < filter.Since.UnixNano():
		return false
	}
	for label, value := range filter.Labels {
		if have, ok := se.labels[label]; !ok || have != value {
			return false
		}
	}
	return true
}

// isHeld reports whether the session has a holder that does not count as gone.
func (se *session) isHeld() bool { return se.held && !se.expired }

// inbox returns the matching approvals, oldest first.
func (s *Store) inbox(filter belay.ApprovalFilter) []belay.Approval {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*approval
	after := s.approvals[filter.After]
	for _, a := range s.approvals {
		if (filter.ID == "" || a.ID == filter.ID) && (filter.Session == "" || a.Session == filter.Session) && (!filter.Pending || a.Decided == nil) {
			found = append(found, a)
		}
	}
	slices.SortFunc(found, (*approval).compare)
	if filter.After != "" {
		found = slices.DeleteFunc(found, func(a *approval) bool { return after == nil || a.compare(after) <= 0 })
	}
	found = first(found, filter.Limit)
	approvals := make([]belay.Approval, len(found))
	for i, a := range found {
		approvals[i] = a.copied()
	}
	return approvals
}

// compare compares the places of two approvals in a list.
func (a *approval) compare(b *approval) int {
	return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.number, b.number))
}

// first returns the first elements of a list. A limit of 0 means all.
func first[T any](all []T, limit int) []T {
	if limit > 0 && limit < len(all) {
		return all[:limit]
	}
	return all
}

// touch sets the time of a session's last change. Every change gets a different time, so
// that the time alone determines the order of sessions in a list. The caller holds the
// store's lock.
func (s *Store) touch(se *session) {
	s.changed = max(s.now().UnixNano(), s.changed+1)
	if se.changed == 0 {
		se.created = s.changed
	}
	se.changed = s.changed
}
