package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/store/internal/chain"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// foldInsert stores a folded row, see record.Fold. It stores nothing if the list of hooks is
// missing, or if a run between two ids is stored in a row of its own. The last three
// parameters are the name of the list and the two ids. Ids of one dispatch count up, so
// usually no other id is between them, except shorter ones.
var foldInsert = fmt.Sprintf(`INSERT OR IGNORE INTO runs (%s) SELECT %s
WHERE EXISTS (SELECT 1 FROM run_hooks WHERE list = ? AND idx = 1)
	AND NOT EXISTS (SELECT 1 FROM runs WHERE id BETWEEN ?%d AND ?%d AND length(id) = length(?%[3]d))`,
	foldColumns, strings.Repeat("?, ", foldValues-1)+"?", foldValues+2, foldValues+3)

const (
	foldColumns = "seq, id, changed, holder, subscription, job_handler, version, phase, dispatch, " +
		"origin_kind, origin_name, origin_file, origin_line, session, turn, step, agent, execution, state, shadow, visibility, " +
		"job, attempt, idempotency_key, started, ended, latency, error_class, severity, contributed, audit, diagnostics, more, hooks, folded"
	foldValues = 35
)

// foldArgs returns the values of foldColumns, with room for the other parameters.
func foldArgs(r *table.PutRunParams, more int, hooks, folded string) []any {
	return append(make([]any, 0, foldValues+3),
		r.Seq, r.ID, 0, r.Holder, r.Subscription, r.JobHandler, r.Version, r.Phase, r.Dispatch,
		r.OriginKind, r.OriginName, r.OriginFile, r.OriginLine, r.Session, r.Turn, r.Step, r.Agent, r.Execution, r.State, r.Shadow, r.Visibility,
		r.Job, r.Attempt, r.IdempotencyKey, r.Started, r.Ended, r.Latency, r.ErrorClass, r.Severity, r.Contributed, r.Audit, r.Diagnostics, more, hooks, folded)
}

// placeRuns reserves positions for runs. It also reports whether one of four dispatches has
// a folded row. This saves a statement.
const placeRuns = `UPDATE counters SET value = value + ? WHERE name = 'run'
RETURNING value, EXISTS (SELECT 1 FROM runs WHERE more > 0 AND dispatch IN (?, ?, ?, ?))`

// appendRuns numbers and stores runs. It does not change a stored run that has ended (see
// hook.Journal).
func (w *writing) appendRuns(ctx context.Context, rows []table.PutRunParams) error {
	if len(rows) == 0 {
		return nil
	}
	dispatches := dispatchesOf(rows)
	first, folded, err := w.place(ctx, len(rows), dispatches)
	if err != nil {
		return err
	}
	if folded {
		stored := make(record.Folded)
		for _, dispatch := range dispatches {
			if err := stored.Add(ctx, w.Queries, dispatch); err != nil {
				return err
			}
		}
		if rows, err = stored.Drop(rows); err != nil {
			return err
		}
	}
	for i := range rows {
		rows[i].Seq = first + int64(i)
	}
	if !distinct(rows) {
		return w.putRuns(ctx, rows)
	}
	for len(rows) > 0 {
		n := record.Foldable(rows)
		if n > 0 {
			err = w.putFolded(ctx, rows[:n])
		} else {
			n = 1
			err = w.putRuns(ctx, rows[:1])
		}
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// dispatchesOf returns the dispatches of runs, each once.
func dispatchesOf(rows []table.PutRunParams) (all []string) {
	for i := range rows {
		dispatch := rows[i].Dispatch
		if dispatch != "" && (i == 0 || dispatch != rows[i-1].Dispatch) && !slices.Contains(all, dispatch) {
			all = append(all, dispatch)
		}
	}
	return all
}

// distinct reports whether all runs have different ids.
func distinct(rows []table.PutRunParams) bool {
	if countsUp(rows) {
		return true
	}
	ids := make(map[string]bool, len(rows))
	for i := range rows {
		ids[rows[i].ID] = true
	}
	return len(ids) == len(rows)
}

// countsUp reports whether the ids of the runs have the same length and increase.
func countsUp(rows []table.PutRunParams) bool {
	for i := 1; i < len(rows); i++ {
		if len(rows[i].ID) != len(rows[0].ID) || rows[i].ID <= rows[i-1].ID {
			return false
		}
	}
	return true
}

// place reserves n positions in the journal and returns the first one. folded reports
// whether the journal can have folded rows of the dispatches.
func (w *writing) place(ctx context.Context, n int, dispatches []string) (first int64, folded bool, err error) {
	asked := [4]string{} // no folded row has the dispatch ""
	copied := copy(asked[:], dispatches)
	var last int64
	row := w.tx.StmtContext(ctx, w.store.placeRuns).QueryRowContext(ctx, n, asked[0], asked[1], asked[2], asked[3]) //nolint:sqlclosecheck // the transaction closes it
	if err := row.Scan(&last, &folded); err != nil {
		return 0, false, err //nolint:wrapcheck // the caller adds context
	}
	w.runs = true
	return last - int64(n) + 1, folded || copied < len(dispatches), nil
}

// putRuns stores runs in rows of their own. It does not change a stored run that has ended.
func (w *writing) putRuns(ctx context.Context, rows []table.PutRunParams) error {
	put := w.tx.StmtContext(ctx, w.store.placeRun)
	for i := range rows {
		seq, err := rows[i].Place(ctx, put)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			if err := record.Late(ctx, w.Queries, &rows[i]); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			row := chain.RowOf(&rows[i], seq)
			w.lines.Run(&row)
		}
	}
	return nil
}

// putFolded stores runs as one row, if none of them is stored already.
func (w *writing) putFolded(ctx context.Context, rows []table.PutRunParams) error {
	hooks, folded := record.Fold(rows)
	args := foldArgs(&rows[0], len(rows)-1, hooks, folded)
	row := chain.RowOf(&rows[0], rows[0].Seq)
	row.More, row.Hooks, row.Folded = int64(len(rows)-1), hooks, folded
	if countsUp(rows) {
		if ok, err := w.insertFolded(ctx, append(args, hooks, rows[0].ID, rows[len(rows)-1].ID)); err != nil || ok {
			w.lines.Run(&row)
			return err
		}
	}
	for _, h := range record.HooksOf(hooks, rows) {
		if err := w.PutRunHook(ctx, h); err != nil {
			return err
		}
	}
	found, err := w.anyStored(ctx, rows)
	if err == nil && !found {
		found, err = w.insertFolded(ctx, append(args, hooks, "", ""))
		found = !found
	}
	if err != nil || !found {
		w.lines.Run(&row)
		return err
	}
	return w.putRuns(ctx, rows)
}

// insertFolded reports whether it stored the row.
func (w *writing) insertFolded(ctx context.Context, args []any) (bool, error) {
	result, err := w.tx.StmtContext(ctx, w.store.foldInsert).ExecContext(ctx, args...) //nolint:sqlclosecheck // the transaction closes it
	if err != nil {
		return false, err //nolint:wrapcheck // the caller adds context
	}
	n, err := result.RowsAffected()
	return n == 1, err //nolint:wrapcheck // likewise
}

// anyStored reports whether one of the runs is stored in a row of its own.
func (w *writing) anyStored(ctx context.Context, rows []table.PutRunParams) (found bool, err error) {
	ids := make([]any, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	query := "SELECT EXISTS (SELECT 1 FROM runs WHERE id IN (?" + strings.Repeat(", ?", len(ids)-1) + "))"
	err = w.tx.QueryRowContext(ctx, query, ids...).Scan(&found)
	return found, err //nolint:wrapcheck // the caller adds context
}
