package sqlite

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
)

// Describe changes the title and the labels of a session. It creates the session if
// necessary.
func (s *Store) Describe(ctx context.Context, session string, update belay.SessionUpdate) error {
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		return record.Describe(ctx, w.Queries, session, update, s.now())
	})
	if err != nil {
		return fmt.Errorf("describe session %q: %w", session, err)
	}
	return nil
}

var _ belay.ManageStore = (*Store)(nil)
