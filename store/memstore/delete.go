package memstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Delete removes a session and the sessions of its subagents, with their approvals, hook
// runs and jobs. It keeps the keys of successful jobs, so that no job runs twice.
func (s *Store) Delete(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	belongs := func(id string) bool { return id == name || strings.HasPrefix(id, name+"/") }
	found := false
	for id, se := range s.sessions {
		if !belongs(id) {
			continue
		}
		if found = true; se.isHeld() {
			return fmt.Errorf("delete session %q: session %q: %w: it is open in this process", name, id, belay.ErrHeld)
		}
	}
	if !found {
		return fmt.Errorf("delete session %q: %w", name, belay.ErrNotFound)
	}
	if !s.queue.Remove(func(job hook.Job) bool { return belongs(job.Scope.Session) }) {
		return fmt.Errorf("delete session %q: %w: a background job of the session is running", name, belay.ErrHeld)
	}
	s.journal.Remove(func(run hook.Run) bool { return belongs(run.Scope.Session) })
	for id, se := range s.sessions {
		if !belongs(id) {
			continue
		}
		for _, a := range se.has().approvals {
			delete(s.approvals, a.ID)
		}
		delete(s.sessions, id)
	}
	return nil
}
