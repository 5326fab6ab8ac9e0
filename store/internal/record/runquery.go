package record

import (
	"database/sql"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/table"
)

// RunQuery builds the SQL of a listing. The query returns the rows of all runs that match.
// It compares the start time of a row only roughly, because the further runs of a folded row
// start later. The caller must select and sort the runs of folded rows.
type RunQuery struct{ hook.Filter }

// PlaceColumns are the columns that order a listing.
const PlaceColumns = "seq, started"

// SQL returns the query. columns is RunColumns or PlaceColumns. The query contains only the
// conditions that are set, so that the database can use an index.
func (q *RunQuery) SQL(columns string) (text string, args []any) {
	var all part
	found := part{text: "runs WHERE 1 = 1"}
	found.and(q.conditions())
	if q.inBlocks() {
		all.add(q.blocks(found))
		found = part{text: "found WHERE 1 = 1"}
	}
	needed := found
	if q.Limit > 0 {
		needed.and(q.edge(found))
	}
	if q.inBlocks() && columns != PlaceColumns {
		all.add(part{text: "SELECT " + columns + " FROM runs WHERE seq IN (SELECT seq FROM "})
		all.add(needed)
		all.add(part{text: ")"})
	} else {
		all.add(part{text: "SELECT " + columns + " FROM "})
		all.add(needed)
	}
	all.add(part{text: " ORDER BY " + q.order()})
	return all.text, all.args
}

func (q *RunQuery) order() string {
	if q.Newest {
		return "started DESC, seq DESC"
	}
	return "started, seq"
}

// conditions returns the conditions of the filter.
func (q *RunQuery) conditions() (all part) {
	for _, f := range []struct{ column, value string }{{"session", q.Session}, {"turn", q.Turn}, {"phase", q.Phase}} {
		if f.value != "" {
			all.and(part{f.column + " = ?", []any{f.value}})
		}
	}
	if q.Subscription != "" && !q.inBlocks() {
		all.and(part{"(subscription = ? OR " + hasHook + ")", []any{q.Subscription, q.Subscription}})
	}
	if q.Job != "" {
		all.and(part{"job = ? AND job <> ''", []any{q.Job}}) // the index on job has the same condition
	}
	if len(q.States) > 0 {
		words := make([]string, len(q.States))
		for i, state := range q.States {
			words[i] = "'" + strings.ReplaceAll(state.String(), "'", "''") + "'"
		}
		all.and(part{text: "state IN (" + strings.Join(words, ", ") + ")"})
		if !slices.Contains(q.States, hook.Completed) {
			all.and(part{text: "state <> 'completed'"}) // an index has the same condition
		}
	}
	if !q.Since.IsZero() {
		all.and(part{"started >= ? AND (started >= ? OR more > 0)", []any{earlier(q.Since), Nanos(q.Since)}})
	}
	if !q.Until.IsZero() {
		all.and(part{"started < ?", []any{Nanos(q.Until)}})
	}
	return all
}

// hasHook is the condition that a further run of a row has the subscription.
const hasHook = "hooks <> '' AND hooks IN (SELECT list FROM run_hooks WHERE subscription = ?)"

// earlier returns the earliest start of a row that can have a run at the given time.
func earlier(t time.Time) int64 { return max(Nanos(t), math.MinInt64+foldSpan) - foldSpan }

// inBlocks reports whether a listing by subscription searches block by block. It does not
// if another index finds fewer runs.
func (q *RunQuery) inBlocks() bool {
	few := len(q.States) > 0 && !slices.Contains(q.States, hook.Completed)
	return q.Subscription != "" && q.Session == "" && q.Job == "" && !few
}

// blocks returns the part of a query that finds the rows of a subscription. The rows whose
// first run has the subscription are found block by block: the index runs_block begins with
// the number of the block. The other rows are found by their lists of hooks.
func (q *RunQuery) blocks(found part) part {
	all := part{text: "WITH RECURSIVE blocks (n) AS (SELECT max(seq) / 1024 FROM runs" +
		" UNION ALL SELECT n - 1 FROM blocks WHERE n > (SELECT min(seq) / 1024 FROM runs))," +
		" found (seq, started) AS (SELECT seq, started FROM blocks CROSS JOIN "}
	all.add(found)
	all.and(part{"seq / 1024 = n AND subscription = ?", []any{q.Subscription}})
	all.add(part{text: " UNION SELECT seq, started FROM "})
	all.add(found)
	all.and(part{hasHook, []any{q.Subscription}})
	all.add(part{text: ") "})
	return all
}

// edge returns the condition that limits the rows of a listing with a limit. Each of the
// first rows has at least one run that matches. A later row can have a run that belongs
// before it, but only if the rows start within foldSpan. So the edge is foldSpan behind the
// start of the last row that is needed.
func (q *RunQuery) edge(found part) part {
	// The CASE prevents an overflow.
	compare, end, behind := "<=", int64(math.MaxInt64), "CASE WHEN started > 9000000000000000000 THEN started ELSE started + "
	if q.Newest {
		compare, end, behind = ">=", math.MinInt64, "CASE WHEN started < -9000000000000000000 THEN started ELSE started - "
	}
	all := part{text: "started " + compare + " COALESCE((SELECT " + behind + strconv.FormatInt(foldSpan, 10) + " END FROM "}
	all.add(found)
	all.add(part{text: " ORDER BY " + q.order() + " LIMIT 1 OFFSET " + strconv.Itoa(q.Limit-1)})
	for _, bound := range []time.Time{q.Since, q.Until} {
		if !bound.IsZero() { // near a bound, a row can have no run that matches
			all.add(part{text: " + (SELECT count(*) FROM "})
			all.add(found)
			all.and(part{"started >= ? AND started < ?", []any{earlier(bound), Nanos(bound)}})
			all.add(part{text: ")"})
		}
	}
	all.add(part{"), ?)", []any{end}})
	return all
}

// part is a part of an SQL text, with the values of its parameters.
type part struct {
	text string
	args []any
}

// add appends a part.
func (p *part) add(more part) {
	p.text += more.text
	p.args = append(p.args[:len(p.args):len(p.args)], more.args...)
}

// and appends a condition.
func (p *part) and(condition part) {
	if condition.text != "" && p.text != "" {
		p.text += " AND "
	}
	p.add(condition)
}

// RunColumns are the columns of table.Run, in the order of its fields.
const RunColumns = "seq, id, changed, holder, subscription, job_handler, version, phase, dispatch, " +
	"origin_kind, origin_name, origin_file, origin_line, session, turn, step, agent, execution, state, shadow, visibility, " +
	"job, attempt, idempotency_key, started, ended, latency, error_class, severity, contributed, audit, diagnostics, more, hooks, folded"

func scanRun(rows *sql.Rows, r *table.Run) error {
	return rows.Scan(&r.Seq, &r.ID, &r.Changed, &r.Holder, &r.Subscription, &r.JobHandler, &r.Version, &r.Phase, &r.Dispatch, //nolint:wrapcheck // the caller adds context
		&r.OriginKind, &r.OriginName, &r.OriginFile, &r.OriginLine, &r.Session, &r.Turn, &r.Step, &r.Agent, &r.Execution, &r.State, &r.Shadow, &r.Visibility,
		&r.Job, &r.Attempt, &r.IdempotencyKey, &r.Started, &r.Ended, &r.Latency, &r.ErrorClass, &r.Severity, &r.Contributed, &r.Audit, &r.Diagnostics,
		&r.More, &r.Hooks, &r.Folded)
}
