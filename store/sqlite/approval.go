package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/table"
)

// ask stores an approval, unless it is decided already.
func (w *writing) ask(ctx context.Context, session string, rows approvalRows) error {
	row := rows.approval
	if row.Session != session {
		return fmt.Errorf("approval %q is of another session: %w", row.ID, belay.ErrConflict)
	}
	n, err := w.PutApproval(ctx, row)
	switch {
	case err != nil:
		return err
	case n > 0:
		return w.PutApprovalWords(ctx, rows.words)
	}
	known, err := w.Approval(ctx, row.ID)
	switch {
	case err != nil:
		return err
	case known.Approval.Session != session:
		return fmt.Errorf("approval %q is of another session: %w", row.ID, belay.ErrConflict)
	default:
		return nil // decided: it stays
	}
}

// Decide stores the decision of a pending approval, once. With ErrDecided,
// ErrWrongHash and ErrExpired it returns the approval as it stands. An approval
// expires when the store's clock reaches Expires.
func (s *Store) Decide(ctx context.Context, d belay.Decision) (belay.Approval, error) {
	var decided belay.Approval
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		row, err := w.Approval(ctx, d.Approval)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("approval %q: %w", d.Approval, belay.ErrNotFound)
		case err != nil:
			return err
		}
		if decided, err = approvalOf(row); err != nil {
			return err
		}
		if err := decided.Accepts(d, s.now()); err != nil {
			return err
		}
		text, words, err := encodeDecision(d)
		if err != nil {
			return err
		}
		if err := w.Queries.Decide(ctx, table.DecideParams{ID: d.Approval, Decision: text}); err != nil {
			return err
		}
		if err := w.DecideWords(ctx, words); err != nil {
			return err
		}
		row, err = w.Approval(ctx, d.Approval)
		if err != nil {
			return err
		}
		decided, err = approvalOf(row)
		return err
	})
	if err != nil {
		return decided, fmt.Errorf("decide %w", err)
	}
	return decided, nil
}
