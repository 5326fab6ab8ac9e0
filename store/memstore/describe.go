package memstore

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
)

// Describe changes the title and the labels of a session. It creates the session if
// necessary.
func (s *Store) Describe(ctx context.Context, name string, update belay.SessionUpdate) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	se, ok := s.sessions[name]
	if !ok {
		se = &session{}
	}
	title, labels, err := update.Apply(se.title, se.labels)
	if err != nil {
		return fmt.Errorf("describe session %q: %w", name, err)
	}
	if !ok {
		s.sessions[name] = se
		s.touch(se)
	}
	se.title, se.labels = title, labels
	return nil
}
