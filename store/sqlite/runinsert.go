package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// runInsert writes several runs with one statement. The runs of one dispatch are equal in
// most columns. The statement binds such a column once for all rows. A row alone costs 31
// bound values, a row here costs 9.
type runInsert struct {
	rows int
	stmt *sql.Stmt
}

// runInsertSizes are the numbers of rows that have a statement, largest first. Other
// numbers are split. A rest is written row by row.
var runInsertSizes = [...]int{64, 16, 4}

// ownColumns have a value for each row, sharedColumns have one value for all rows.
var (
	ownColumns    = []string{"id", "subscription", "version", "origin_name", "origin_file", "origin_line", "started", "ended", "latency"}
	sharedColumns = []string{
		"holder", "job_handler", "phase", "dispatch", "origin_kind", "session", "turn", "step", "agent", "execution", "state", "shadow",
		"visibility", "job", "attempt", "idempotency_key", "error_class", "severity", "contributed", "audit", "diagnostics",
	}
)

// ownOf appends the values of the own columns.
func ownOf(args []any, r *table.PutRunParams) []any {
	return append(args, r.ID, r.Subscription, r.Version, r.OriginName, r.OriginFile, r.OriginLine, r.Started, r.Ended, r.Latency)
}

// sharedOf appends the values of the shared columns.
func sharedOf(args []any, r *table.PutRunParams) []any {
	return append(args, r.Holder, r.JobHandler, r.Phase, r.Dispatch, r.OriginKind, r.Session, r.Turn, r.Step, r.Agent, r.Execution, r.State, r.Shadow,
		r.Visibility, r.Job, r.Attempt, r.IdempotencyKey, r.ErrorClass, r.Severity, r.Contributed, r.Audit, r.Diagnostics)
}

// together reports whether two runs can be rows of one statement: they have the same values
// in the shared columns.
func together(a, b *table.PutRunParams) bool {
	x := *b
	x.Seq, x.ID, x.Subscription, x.Version = a.Seq, a.ID, a.Subscription, a.Version
	x.OriginName, x.OriginFile, x.OriginLine = a.OriginName, a.OriginFile, a.OriginLine
	x.Started, x.Ended, x.Latency = a.Started, a.Ended, a.Latency
	return x == *a
}

// runInsertSQL returns the statement for a number of rows. Parameter 1 is the position of
// the first row. The shared columns follow, then the own columns of each row. The own
// columns have no numbers, because SQLite is slow with many numbered parameters. The
// statement ignores rows that it cannot insert. A statement that can fail in the middle
// makes SQLite keep a copy of each page that it changes.
func runInsertSQL(rows int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "INSERT OR IGNORE INTO runs (seq, changed, %s, %s) VALUES ", strings.Join(sharedColumns, ", "), strings.Join(ownColumns, ", "))
	for row := range rows {
		if row > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(?1 + %d, 0", row)
		for i := range sharedColumns {
			fmt.Fprintf(&b, ", ?%d", 2+i)
		}
		b.WriteString(strings.Repeat(", ?", len(ownColumns)) + ")")
	}
	return b.String()
}

// prepareRunInserts prepares the statements.
func (s *Store) prepareRunInserts(ctx context.Context) error {
	for _, rows := range runInsertSizes {
		stmt, err := s.writer.PrepareContext(ctx, runInsertSQL(rows))
		if err != nil {
			return s.unopened(err)
		}
		s.runInserts = append(s.runInserts, runInsert{rows, stmt})
	}
	return nil
}

// putRuns writes runs whose positions are set and consecutive. It does not change a stored
// run that has ended (see hook.Journal).
func (w *writing) putRuns(ctx context.Context, rows []table.PutRunParams) error {
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && together(&rows[0], &rows[n]) {
			n++
		}
		if !replaces(&rows[0]) {
			for _, insert := range w.store.runInserts {
				for n >= insert.rows {
					if err := w.putTogether(ctx, insert, rows[:insert.rows]); err != nil {
						return err
					}
					rows, n = rows[insert.rows:], n-insert.rows
				}
			}
		}
		if err := record.PutRuns(ctx, w.Queries, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// replaces reports whether a run usually replaces a stored run. Runs with an attempt were
// stored when they started.
func replaces(r *table.PutRunParams) bool { return r.Attempt > 0 && r.State != hook.Started.String() }

// putTogether writes runs with one statement.
func (w *writing) putTogether(ctx context.Context, insert runInsert, rows []table.PutRunParams) error {
	args := make([]any, 0, 1+len(sharedColumns)+len(rows)*len(ownColumns))
	args = sharedOf(append(args, rows[0].Seq), &rows[0])
	for i := range rows {
		args = ownOf(args, &rows[i])
	}
	result, err := w.tx.StmtContext(ctx, insert.stmt).ExecContext(ctx, args...) //nolint:sqlclosecheck // the transaction closes it
	if err != nil {
		return err //nolint:wrapcheck // the caller adds context
	}
	if n, err := result.RowsAffected(); err != nil || n == int64(len(rows)) {
		return err //nolint:wrapcheck // likewise
	}
	return record.PutRuns(ctx, w.Queries, rows) // some runs are already stored, and some of these may have ended
}
