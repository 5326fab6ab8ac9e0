package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/table"
)

// Sessions yields the sessions that match, the last changed first, as they are
// when the iteration begins.
func (s *Store) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		query := "SELECT id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state FROM sessions WHERE 1 = 1"
		var args []any
		if filter.Prefix != "" {
			query += " AND substr(id, 1, ?) = ?"
			args = append(args, utf8.RuneCountInString(filter.Prefix), filter.Prefix)
		}
		if filter.Open {
			query += " AND turn_state <> ''"
		}
		query += " ORDER BY changed DESC, id DESC" + limit(filter.Limit)
		rows, err := collect(ctx, s, query, args, func(rows *sql.Rows, r *table.Session) error {
			return rows.Scan(&r.ID, &r.Epoch, &r.Holder, &r.Created, &r.Changed, &r.Last, &r.Response, &r.Compaction, &r.Keep, &r.TurnState, &r.State)
		})
		if err != nil {
			yield(belay.SessionInfo{}, fmt.Errorf("list sessions: %w", err))
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

// info tells of a session. alive remembers which holders were looked at.
func (s *Store) info(ctx context.Context, q *table.Queries, row table.Session, alive map[string]bool) (belay.SessionInfo, error) {
	held, known := alive[row.Holder]
	if !known {
		held = !s.gone(ctx, q, row.Holder)
		alive[row.Holder] = held
	}
	info := belay.SessionInfo{ID: row.ID, Created: moment(row.Created), Changed: moment(row.Changed), Last: row.Last, Held: held}
	if err := decode(row.State, &info.State); err != nil {
		return info, fmt.Errorf("list sessions: %q: %w", row.ID, err)
	}
	return info, nil
}

// Approvals yields the approvals that match, the oldest first, as they are when
// the iteration begins.
func (s *Store) Approvals(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
	return func(yield func(belay.Approval, error) bool) {
		query := "SELECT a.id, session, response, turn, call_id, tool, hash, asked_by, floor, asked, expires, decision, reason, answer, pattern" +
			" FROM approvals a JOIN approval_words w ON w.id = a.id WHERE 1 = 1"
		var args []any
		if filter.Session != "" {
			query += " AND session = ?"
			args = append(args, filter.Session)
		}
		if filter.Pending {
			query += " AND decision = ''"
		}
		query += " ORDER BY asked, a.id" + limit(filter.Limit)
		rows, err := collect(ctx, s, query, args, func(rows *sql.Rows, r *table.ApprovalRow) error {
			a, w := &r.Approval, &r.ApprovalWord
			return rows.Scan(&a.ID, &a.Session, &a.Response, &a.Turn, &a.CallID, &a.Tool, &a.Hash, &a.AskedBy, &a.Floor, &a.Asked, &a.Expires, &a.Decision, &w.Reason, &w.Answer, &w.Pattern)
		})
		if err != nil {
			yield(belay.Approval{}, fmt.Errorf("list approvals: %w", err))
			return
		}
		for _, row := range rows {
			approval, err := approvalOf(row)
			if !yield(approval, err) || err != nil {
				return
			}
		}
	}
}

func limit(n int) string {
	if n > 0 {
		return fmt.Sprint(" LIMIT ", n)
	}
	return ""
}

// collect reads all rows of a query.
func collect[Row any](ctx context.Context, s *Store, query string, args []any, scan func(*sql.Rows, *Row) error) ([]Row, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	rows, err := s.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, s.explain(causeOf(ctx, err))
	}
	defer func() { _ = rows.Close() }() // rows.Err has told
	var list []Row
	for rows.Next() {
		var row Row
		if err := scan(rows, &row); err != nil {
			return nil, s.explain(causeOf(ctx, err))
		}
		list = append(list, row)
	}
	return list, s.explain(causeOf(ctx, rows.Err()))
}
