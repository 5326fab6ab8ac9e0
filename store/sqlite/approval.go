package sqlite

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
)

// Decide stores the decision of a pending approval. An approval is decided only once. With
// ErrDecided, ErrWrongHash and ErrExpired, Decide also returns the stored approval. An
// approval expires when the store's clock reaches Expires. If a queued turn waits for the
// approval, the turn becomes due.
func (s *Store) Decide(ctx context.Context, d belay.Decision) (belay.Approval, error) {
	var decided belay.Approval
	err := s.submit(ctx, func(ctx context.Context, w *writing) (err error) {
		if decided, err = record.Decide(ctx, w.Queries, d, s.now(), w.lines.ApprovalFound); err == nil {
			_, err = record.Wake(ctx, w.Queries, decided.Session, s.now())
		}
		if err == nil {
			err = w.chainApproval(ctx, d.Approval)
		}
		return err
	})
	if err != nil {
		return decided, fmt.Errorf("decide %w", err)
	}
	s.due.broadcast()
	return decided, nil
}
