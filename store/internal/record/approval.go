package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/table"
)

// ask stores an approval. It does not change a stored approval that is already decided.
func ask(ctx context.Context, q *table.Queries, session string, rows approvalRows) error {
	row := rows.approval
	if row.Session != session {
		return fmt.Errorf("approval %q belongs to another session: %w", row.ID, belay.ErrConflict)
	}
	n, err := q.PutApproval(ctx, row)
	switch {
	case err != nil:
		return err
	case n > 0:
		return q.PutApprovalWords(ctx, rows.words)
	}
	known, err := q.Approval(ctx, row.ID)
	switch {
	case err != nil:
		return err
	case known.Approval.Session != session:
		return fmt.Errorf("approval %q belongs to another session: %w", row.ID, belay.ErrConflict)
	default:
		return nil // the stored approval is decided and does not change
	}
}

// Decide stores the decision of a pending approval. If the decision is rejected, Decide
// also returns the stored approval. found gets the row before it changes.
func Decide(ctx context.Context, q *table.Queries, d belay.Decision, now time.Time, found func(*table.ApprovalRow)) (decided belay.Approval, err error) {
	row, err := q.Approval(ctx, d.Approval)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return decided, fmt.Errorf("approval %q: %w", d.Approval, belay.ErrNotFound)
	case err != nil:
		return decided, err
	}
	if decided, err = ApprovalOf(row); err != nil {
		return decided, err
	}
	if err := decided.Accepts(d, now); err != nil {
		return decided, err
	}
	text, words, err := encodeDecision(d)
	if err != nil {
		return decided, err
	}
	found(&row)
	if err := q.Decide(ctx, table.DecideParams{ID: d.Approval, Decision: text}); err != nil {
		return decided, err
	}
	if err := q.DecideWords(ctx, words); err != nil {
		return decided, err
	}
	if row, err = q.Approval(ctx, d.Approval); err != nil {
		return decided, err
	}
	return ApprovalOf(row)
}

// Approvals reads the matching approvals, oldest first.
func Approvals(ctx context.Context, db Database, filter belay.ApprovalFilter) ([]table.ApprovalRow, error) {
	query := "SELECT a.id, session, response, turn, call_id, tool, hash, asked_by, floor, asked, expires, decision, reason, answer, pattern" +
		" FROM approvals a JOIN approval_words w ON w.id = a.id WHERE 1 = 1"
	var args []any
	if filter.ID != "" {
		query += " AND a.id = ?"
		args = append(args, filter.ID)
	}
	if filter.Session != "" {
		query += " AND session = ?"
		args = append(args, filter.Session)
	}
	if filter.Pending {
		query += " AND decision = ''"
	}
	if filter.After != "" {
		query += " AND (asked, a.id) > (SELECT b.asked, b.id FROM approvals b WHERE b.id = ?)"
		args = append(args, filter.After)
	}
	query += " ORDER BY asked, a.id" + limit(filter.Limit)
	return Collect(ctx, db, query, args, func(rows *sql.Rows, r *table.ApprovalRow) error {
		a, w := &r.Approval, &r.ApprovalWord
		return rows.Scan(&a.ID, &a.Session, &a.Response, &a.Turn, &a.CallID, &a.Tool, &a.Hash, &a.AskedBy, &a.Floor, &a.Asked, &a.Expires, &a.Decision, &w.Reason, &w.Answer, &w.Pattern)
	})
}

func limit(n int) string {
	if n > 0 {
		return fmt.Sprint(" LIMIT ", n)
	}
	return ""
}
