package record

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/table"
)

// RunPage is how many runs one query reads. Between pages no database connection is in use,
// so that a slow caller blocks nobody.
const RunPage = 256

// Runs yields the runs that match when Runs is called, each once, ordered by start time and
// then by position. If a run is replaced during the listing, the caller may get the new
// state at the old position.
func Runs(ctx context.Context, db Database, filter hook.Filter, yield func(hook.Run) bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	query := RunQuery{filter}
	if filter.Limit > 0 && filter.Limit <= RunPage {
		text, args := query.SQL(RunColumns)
		page, err := Collect(ctx, db, text, args, scanRun)
		if err == nil {
			_, err = yieldRuns(ctx, page, yield)
		}
		return err
	}
	// A run can get a new position when it is replaced. So one query reads the order of all
	// positions, and later queries read the runs at these positions.
	text, args := query.SQL("seq")
	places, err := Collect(ctx, db, text, args, func(rows *sql.Rows, seq *int64) error { return rows.Scan(seq) })
	if err != nil {
		return err
	}
	for some := range slices.Chunk(places, RunPage) {
		page, err := runsAt(ctx, db, some)
		if err != nil {
			return err
		}
		if more, err := yieldRuns(ctx, page, yield); err != nil || !more {
			return err
		}
	}
	return nil
}

// runsAt reads the runs at the given positions, in that order. It omits runs that were
// removed.
func runsAt(ctx context.Context, db Database, places []int64) ([]table.Run, error) {
	at := make(map[int64]int, len(places))
	var in strings.Builder
	for i, seq := range places {
		at[seq] = i
		if i > 0 {
			in.WriteByte(',')
		}
		in.WriteString(strconv.FormatInt(seq, 10))
	}
	page, err := Collect(ctx, db, "SELECT "+RunColumns+" FROM runs WHERE seq IN ("+in.String()+")", nil, scanRun)
	slices.SortFunc(page, func(a, b table.Run) int { return cmp.Compare(at[a.Seq], at[b.Seq]) })
	return page, err
}

// yieldRuns yields a page of runs. It returns false if the caller wants no more.
func yieldRuns(ctx context.Context, page []table.Run, yield func(hook.Run) bool) (bool, error) {
	for _, row := range page {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		run, err := RunOf(row)
		if err != nil {
			return false, err
		}
		if !yield(run) {
			return false, nil
		}
	}
	return true, nil
}

// RunQuery builds the SQL of a listing.
type RunQuery struct{ hook.Filter }

// SQL returns the query. The query contains only the conditions that are set, so that the
// database can use an index.
func (q *RunQuery) SQL(columns string) (text string, args []any) {
	where := []string{"1 = 1"}
	and := func(condition string, values ...any) {
		where = append(where, condition)
		args = append(args, values...)
	}
	for _, f := range []struct{ column, value string }{
		{"session", q.Session}, {"turn", q.Turn}, {"phase", q.Phase}, {"subscription", q.Subscription},
	} {
		if f.value != "" {
			and(f.column+" = ?", f.value)
		}
	}
	if q.Job != "" {
		and("job = ? AND job <> ''", q.Job) // the index on job has the same condition
	}
	if len(q.States) > 0 {
		words := make([]string, len(q.States))
		for i, state := range q.States {
			words[i] = "'" + strings.ReplaceAll(state.String(), "'", "''") + "'"
		}
		and("state IN (" + strings.Join(words, ", ") + ")")
		if !slices.Contains(q.States, hook.Completed) {
			and("state <> 'completed'") // an index has the same condition
		}
	}
	if !q.Since.IsZero() {
		and("started >= ?", Nanos(q.Since))
	}
	if !q.Until.IsZero() {
		and("started < ?", Nanos(q.Until))
	}
	order := "started, seq"
	if q.Newest {
		order = "started DESC, seq DESC"
	}
	with, from := "", "runs"
	if q.inBlocks() {
		with, from = blocks, "blocks CROSS JOIN runs"
		where[0] = "seq / 1024 = n"
	}
	return with + "SELECT " + columns + " FROM " + from + " WHERE " + strings.Join(where, " AND ") + " ORDER BY " + order + limit(q.Limit), args
}

// inBlocks reports whether a listing by subscription searches block by block. It does not
// if another index finds fewer runs.
func (q *RunQuery) inBlocks() bool {
	few := len(q.States) > 0 && !slices.Contains(q.States, hook.Completed)
	return q.Subscription != "" && q.Session == "" && q.Job == "" && !few
}

// blocks numbers the blocks of positions that have runs. The index runs_block begins with
// the number of the block.
const blocks = "WITH RECURSIVE blocks (n) AS (SELECT max(seq) / 1024 FROM runs" +
	" UNION ALL SELECT n - 1 FROM blocks WHERE n > (SELECT min(seq) / 1024 FROM runs)) "

// RunColumns are the columns of table.Run, in the order of its fields.
const RunColumns = "seq, id, changed, holder, subscription, job_handler, version, phase, dispatch, " +
	"origin_kind, origin_name, origin_file, origin_line, session, turn, step, agent, execution, state, shadow, visibility, " +
	"job, attempt, idempotency_key, started, ended, latency, error_class, severity, contributed, audit, diagnostics"

func scanRun(rows *sql.Rows, r *table.Run) error {
	return rows.Scan(&r.Seq, &r.ID, &r.Changed, &r.Holder, &r.Subscription, &r.JobHandler, &r.Version, &r.Phase, &r.Dispatch, //nolint:wrapcheck // the caller adds context
		&r.OriginKind, &r.OriginName, &r.OriginFile, &r.OriginLine, &r.Session, &r.Turn, &r.Step, &r.Agent, &r.Execution, &r.State, &r.Shadow, &r.Visibility,
		&r.Job, &r.Attempt, &r.IdempotencyKey, &r.Started, &r.Ended, &r.Latency, &r.ErrorClass, &r.Severity, &r.Contributed, &r.Audit, &r.Diagnostics)
}

// Followed yields the runs that were stored or replaced at a position above after and up
// to until, in the order of these positions. It returns false if the caller wants no
// more.
func Followed(ctx context.Context, q *table.Queries, filter hook.Filter, after, until int64, yield func(hook.Run) bool) (bool, error) {
	rows, err := q.RunsChanged(ctx, table.RunsChangedParams{After: after, Until: until})
	if err != nil {
		return false, Cause(ctx, err)
	}
	slices.SortFunc(rows, func(a, b table.Run) int { return cmp.Compare(place(a), place(b)) })
	for _, row := range rows {
		run, err := RunOf(row)
		if err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if filter.Match(run) && !yield(run) {
			return false, nil
		}
	}
	return true, nil
}

// place returns the current position of a run in the journal.
func place(row table.Run) int64 { return max(row.Seq, row.Changed) }
