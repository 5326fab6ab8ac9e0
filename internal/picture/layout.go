package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/demo"
)

// score is a recording as a table. It has a row for each hook and a column for each
// dispatch of a phase.
type score struct {
	rows    []row
	columns []column
	cells   []cell
	steps   []step
	killed  int // the first column after the process was killed, or -1
}

type row struct{ phase, hook string }

// column is a dispatch, and the step it belongs to.
type column struct{ dispatch, step string }

// step is a range of columns.
type step struct {
	name, calls string
	from, to    int // first column, and the column after the last
}

// cell is one run of a hook.
type cell struct {
	row, column int
	mark        mark
}

// mark is the symbol for what a hook did. The legend explains it.
type mark string

const (
	markPassed   mark = "pass"
	markAdded    mark = "add"
	markRewrote  mark = "rewrite"
	markDenied   mark = "deny"
	markAsked    mark = "ask"
	markContinue mark = "continue"
	markShadow   mark = "shadow"
	markSkipped  mark = "skip"
	markLater    mark = "later"
)

// contributions has the mark for each kind of contribution.
var contributions = map[string]mark{
	"policy": markAdded, "prompt_context": markAdded, "section": markAdded, "context": markAdded,
	"input": markRewrote, "result": markRewrote,
	"deny": markDenied, "ask": markAsked, "continue": markContinue,
}

func markOf(r *hook.Run) mark {
	switch {
	case r.State == hook.Skipped:
		return markSkipped
	case r.State == hook.Backgrounded || r.Attempt > 0:
		return markLater
	}
	found := markPassed
	for _, d := range r.Contributed {
		found = cmp.Or(contributions[d.Kind], found)
	}
	if r.Shadow && found != markPassed {
		return markShadow
	}
	return found
}

// layout converts a recording to a table.
func layout(rec *demo.Recording) score {
	runs := slices.Clone(rec.Runs)
	slices.SortStableFunc(runs, func(a, b hook.Run) int { return a.Started.Compare(b.Started) })
	s := score{killed: -1}
	rows, columns := map[row]int{}, map[string]int{}
	for i := range runs {
		r := &runs[i]
		h := row{r.Phase, r.Subscription}
		if _, ok := rows[h]; !ok {
			rows[h] = 0 // the index is set below, after groupRows
			s.rows = append(s.rows, h)
		}
		key := r.Dispatch
		if r.Attempt > 0 {
			key = r.ID // each run of a job has its own column
		}
		if _, ok := columns[key]; !ok {
			columns[key] = len(s.columns)
			if s.killed < 0 && !rec.Killed.IsZero() && r.Started.After(rec.Killed) {
				s.killed = len(s.columns)
			}
			s.columns = append(s.columns, column{key, stepName(r)})
		}
	}
	s.groupRows()
	for i, h := range s.rows {
		rows[h] = i
	}
	for i := range runs {
		r := &runs[i]
		key := r.Dispatch
		if r.Attempt > 0 {
			key = r.ID
		}
		s.cells = append(s.cells, cell{rows[row{r.Phase, r.Subscription}], columns[key], markOf(r)})
	}
	s.findSteps(callsByStep(rec))
	return s
}

// groupRows puts the hooks of each phase together. Phases are in the order of their first
// run.
func (s *score) groupRows() {
	first := map[string]int{}
	for i, r := range s.rows {
		if _, ok := first[r.phase]; !ok {
			first[r.phase] = i
		}
	}
	slices.SortStableFunc(s.rows, func(a, b row) int { return first[a.phase] - first[b.phase] })
}

// These are the names of the columns before the first step and after the last.
const (
	beforeSteps = "before"
	afterSteps  = "after"
)

func stepName(r *hook.Run) string {
	switch {
	case r.Phase == "turn.post_turn":
		return afterSteps
	case r.Scope.Step == 0:
		return beforeSteps
	default:
		return strconv.Itoa(r.Scope.Step)
	}
}

// findSteps finds the ranges of columns that belong to one step.
func (s *score) findSteps(calls map[string]string) {
	for i, c := range s.columns {
		if n := len(s.steps); n == 0 || s.steps[n-1].name != c.step {
			s.steps = append(s.steps, step{name: c.step, calls: calls[c.step], from: i})
		}
		s.steps[len(s.steps)-1].to = i + 1
	}
}

// callsByStep returns the tools that the model called in each step.
func callsByStep(rec *demo.Recording) map[string]string {
	calls := map[string]string{}
	for _, m := range rec.Messages {
		if m.Role != "assistant" {
			continue
		}
		var tools []string
		for _, c := range m.Calls() {
			tools = append(tools, c.Tool)
		}
		calls[strconv.Itoa(m.Step)] = cmp.Or(strings.Join(tools, ", "), "answer")
	}
	return calls
}
