package sqlite

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/table"
)

// runPage is how many runs are read at a time. No connection is held while the
// caller looks at them.
const runPage = 256

// List yields the runs that match, as they are when the iteration begins: the
// one that started first comes first, and of those that started at one moment
// the one that was stored first.
func (j *journal) List(ctx context.Context, filter hook.Filter) iter.Seq2[hook.Run, error] {
	s := (*Store)(j)
	return func(yield func(hook.Run, error) bool) {
		if err := s.listRuns(ctx, filter, func(r hook.Run) bool { return yield(r, nil) }); err != nil {
			yield(hook.Run{}, fmt.Errorf("list runs: %w", s.explain(err)))
		}
	}
}

func (s *Store) listRuns(ctx context.Context, filter hook.Filter, yield func(hook.Run) bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	until, err := s.read.Counter(ctx, "run")
	if err != nil {
		return causeOf(ctx, err)
	}
	query := runQuery{Filter: filter, until: until}
	for left := filter.Limit; ; {
		query.count = runPage
		if filter.Limit > 0 {
			query.count = min(left, runPage)
		}
		page, err := s.queryRuns(ctx, query)
		if err != nil {
			return causeOf(ctx, err)
		}
		for _, row := range page {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			run, err := runOf(row)
			if err != nil {
				return err
			}
			if !yield(run) {
				return nil
			}
		}
		left -= len(page)
		if len(page) < query.count || filter.Limit > 0 && left == 0 {
			return nil
		}
		last := &page[len(page)-1]
		query.behind = &position{last.Started, last.Seq}
	}
}

// runQuery is a page of a listing.
type runQuery struct {
	hook.Filter
	until  int64     // no run that was stored later
	behind *position // of the last one of the page before
	count  int
}

// position is where a run is in a listing.
type position struct{ started, seq int64 }

// sql spells the query out. What is not asked for is not in it, so that an index
// is found for what is.
func (q *runQuery) sql() (text string, args []any) {
	var where []string
	and := func(condition string, values ...any) {
		where = append(where, condition)
		args = append(args, values...)
	}
	and("seq <= ?", q.until)
	for _, f := range []struct{ column, value string }{
		{"session", q.Session}, {"turn", q.Turn}, {"phase", q.Phase}, {"subscription", q.Subscription},
	} {
		if f.value != "" {
			and(f.column+" = ?", f.value)
		}
	}
	if q.Job != "" {
		and("job = ? AND job <> ''", q.Job) // as the index says
	}
	if len(q.States) > 0 {
		words := make([]string, len(q.States))
		for i, state := range q.States {
			words[i] = "'" + strings.ReplaceAll(state.String(), "'", "''") + "'"
		}
		and("state IN (" + strings.Join(words, ", ") + ")")
		if !slices.Contains(q.States, hook.Completed) {
			and("state <> 'completed'") // as the index says
		}
	}
	if !q.Since.IsZero() {
		and("started >= ?", nanos(q.Since))
	}
	if !q.Until.IsZero() {
		and("started < ?", nanos(q.Until))
	}
	order, than := "started, seq", ">"
	if q.Newest {
		order, than = "started DESC, seq DESC", "<"
	}
	if q.behind != nil {
		and("(started, seq) "+than+" (?, ?)", q.behind.started, q.behind.seq)
	}
	return "SELECT " + runColumns + " FROM runs WHERE " + strings.Join(where, " AND ") + " ORDER BY " + order + fmt.Sprint(" LIMIT ", q.count), args
}

// runColumns are the columns of table.Run, in its order.
const runColumns = "seq, id, changed, holder, subscription, job_handler, version, phase, dispatch, " +
	"origin_kind, origin_name, origin_file, origin_line, session, turn, step, agent, execution, state, shadow, visibility, " +
	"job, attempt, idempotency_key, started, ended, latency, error_class, severity, contributed, audit, diagnostics"

// queryRuns reads a page.
func (s *Store) queryRuns(ctx context.Context, query runQuery) ([]table.Run, error) {
	text, args := query.sql()
	rows, err := s.reader.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what for
	}
	defer func() { _ = rows.Close() }() // rows.Err has told
	var runs []table.Run
	for rows.Next() {
		var r table.Run
		err := rows.Scan(&r.Seq, &r.ID, &r.Changed, &r.Holder, &r.Subscription, &r.JobHandler, &r.Version, &r.Phase, &r.Dispatch,
			&r.OriginKind, &r.OriginName, &r.OriginFile, &r.OriginLine, &r.Session, &r.Turn, &r.Step, &r.Agent, &r.Execution, &r.State, &r.Shadow, &r.Visibility,
			&r.Job, &r.Attempt, &r.IdempotencyKey, &r.Started, &r.Ended, &r.Latency, &r.ErrorClass, &r.Severity, &r.Contributed, &r.Audit, &r.Diagnostics)
		if err != nil {
			return nil, err //nolint:wrapcheck // the caller says what for
		}
		runs = append(runs, r)
	}
	return runs, rows.Err()
}
