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
// conditions that are set, so that the database can use an index. With PlaceColumns it can
// return a row twice in succession.
func (q *RunQuery) SQL(columns string) (text string, args []any) {
	var all part
	rows := part{text: "runs WHERE 1 = 1"}
	rows.and(q.conditions())
	switch {
	case !q.inBlocks():
		if q.Limit > 0 {
			limited := rows
			limited.and(part{text: "started " + q.upTo() + " COALESCE((SELECT "})
			limited.add(q.lastNeeded(rows, rows))
			limited.add(part{"), ?)", []any{q.end()}})
			rows = limited
		}
		all.add(part{text: "SELECT " + columns + " FROM "})
		all.add(rows)
	default:
		all.add(q.found(rows))
		if all.add(part{text: "SELECT " + columns + " FROM "}); columns == PlaceColumns {
			all.add(part{text: "found"})
		} else {
			all.add(part{text: "runs WHERE seq IN (SELECT seq FROM found)"})
		}
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

// found returns the part of a query that finds the rows of a subscription. The rows whose
// first run has the subscription are found block by block: the index runs_block begins with
// the number of the block. The other rows are found by their lists of hooks.
func (q *RunQuery) found(rows part) part {
	inBlock, inList := part{text: "blocks CROSS JOIN "}, rows
	inBlock.add(rows)
	inBlock.and(part{"seq / 1024 = n AND subscription = ?", []any{q.Subscription}})
	inList.and(part{hasHook, []any{q.Subscription}})

	all := part{text: "WITH RECURSIVE blocks (n) AS (SELECT max(seq) / 1024 FROM runs" +
		" UNION ALL SELECT n - 1 FROM blocks WHERE n > (SELECT min(seq) / 1024 FROM runs)), "}
	var limit part
	if q.Limit > 0 {
		// If one block search or one list has enough rows, no row behind them is needed.
		ofList := rows
		ofList.and(part{text: "hooks <> '' AND hooks = list"})
		nearest := "max"
		if !q.Newest {
			nearest = "min"
		}
		all.add(part{text: "edge (started) AS MATERIALIZED (SELECT COALESCE((SELECT " + nearest + "(started) FROM (SELECT (SELECT "})
		all.add(q.lastNeeded(inBlock, inBlock))
		all.add(part{text: ") AS started UNION ALL SELECT (SELECT "})
		all.add(q.lastNeeded(ofList, inList))
		all.add(part{") AS started FROM (SELECT DISTINCT list FROM run_hooks WHERE subscription = ?) AS lists) AS edges), ?)), ", []any{q.Subscription, q.end()}})
		limit = part{text: "runs.started " + q.upTo() + " (SELECT edge.started FROM edge)"}
	}
	all.add(part{text: "found (seq, started) AS (SELECT seq, started FROM "})
	all.add(inBlock)
	all.and(limit)
	all.add(part{text: " UNION ALL SELECT seq, started FROM "})
	all.add(inList)
	all.and(limit)
	all.add(part{text: ") "})
	return all
}

// lastNeeded returns the end of a query for the last start time that a listing with a limit
// needs. Each of the first rows has at least one run that matches. A later row can have a run
// that belongs before it, but only if the rows start within foldSpan. Near a bound of the
// filter, a row can have no run that matches: nearBounds has these rows.
func (q *RunQuery) lastNeeded(rows, nearBounds part) part {
	behind := "CASE WHEN started > 9000000000000000000 THEN started ELSE started + " // prevents an overflow
	if q.Newest {
		behind = "CASE WHEN started < -9000000000000000000 THEN started ELSE started - "
	}
	all := part{text: behind + strconv.FormatInt(foldSpan, 10) + " END FROM "}
	all.add(rows)
	all.add(part{text: " ORDER BY " + q.order() + " LIMIT 1 OFFSET " + strconv.Itoa(q.Limit-1)})
	for _, bound := range []time.Time{q.Since, q.Until} {
		if !bound.IsZero() {
			all.add(part{text: " + (SELECT count(*) FROM "})
			all.add(nearBounds)
			all.and(part{"started >= ? AND started < ?", []any{earlier(bound), Nanos(bound)}})
			all.add(part{text: ")"})
		}
	}
	return all
}

// upTo compares a start time with the last one that is needed, and end is the last possible
// start time.
func (q *RunQuery) upTo() string {
	if q.Newest {
		return ">="
	}
	return "<="
}

func (q *RunQuery) end() int64 {
	if q.Newest {
		return math.MinInt64
	}
	return math.MaxInt64
}

// part is a part of an SQL text, with the values of its parameters.
type part struct {
	text string
	args []any
}

// add appends a part.
func (p *part) add(more part) {
	p.text += more.text
	p.args = append(slices.Clip(p.args), more.args...)
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
