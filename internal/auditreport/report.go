// Package auditreport answers questions over all recorded sessions: what was denied and by whom,
// which hooks are slow or fail, who approved what, what was spent, what a session touched. The
// command line, the API and the console have the same answers.
package auditreport

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/redact"
)

// Source is where the records come from: a store, or a server.
type Source interface {
	// Sessions yields the sessions that match, the last changed first, with their grants.
	Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error]
	// Read yields the messages of a session with numbers higher than after.
	Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error]
	// Approvals yields the approvals that match.
	Approvals(ctx context.Context, filter belay.ApprovalFilter) iter.Seq2[belay.Approval, error]
	// Runs yields the records of hooks since a time, in one of the states if there are any.
	Runs(ctx context.Context, since time.Time, states []hook.State) iter.Seq2[hook.Run, error]
	// Usage adds up what sessions have used: by agent, day, model or label:NAME.
	Usage(ctx context.Context, labels map[string]string, since time.Time, by string) ([]belay.UsageSum, error)
}

// Filter selects what a report counts.
type Filter struct {
	// Since leaves out what happened before. The zero time leaves out nothing.
	Since time.Time
	// Session is the id of a session. Its subagents count too. Empty means all sessions.
	Session string
	// Labels selects sessions that have all of these labels.
	Labels map[string]string
	// By says by what costs are added up. Empty means by agent.
	By string
}

// Question is a question that has a report as its answer.
type Question struct {
	// Name is the word for commands and addresses. Short is the question in a few words. Long
	// says what is counted.
	Name, Short, Long string

	ask func(ctx context.Context, in *input) (*Report, error)
}

// Questions returns the questions, in the order in which they are listed.
func Questions() []Question {
	return []Question{
		{"denials", "Who denied which calls, and why", "Counts the denied calls by who denied them (a hook, a rule of the floor, a person) and by reason, and the answers of hooks that blocked something at another phase. Reasons come from the transcripts.", denials},
		{"slow", "Which hooks take the most time", "Adds up the time of each hook: how often it ran, the median, the 95th percentile, the longest run and the sum.", slowHooks},
		{"failures", "Which hooks fail", "Counts the runs of hooks that failed, timed out or were interrupted, by hook and kind of error.", failingHooks},
		{"approvals", "Who decided, and how long it took", "Counts the approvals by who decided: how many were allowed and denied, and how long the agent waited. Approvals without a decision are listed as (undecided). Calls that an earlier approval covered are left out.", approvalsByPerson},
		{"grants", "Which approvals cover more than one call", "Lists the grants that are in force, with who asked and who approved.", grantsInForce},
		{"cost", "What was spent, by agent or by the values of a label", "Adds up tokens and costs by agent, or with --by by day, model or label:NAME.", costs},
		{"tools", "Which tools were used, and how often they failed", "Counts the calls of each tool, and how many failed or were denied.", toolsUsed},
		{"touched", "Which files, hosts and commands calls named", "Lists the files, hosts and commands in the inputs of the calls that ran: the texts of the keys command, url, path and file_path. Calls of tools that use other keys are not listed. What a command itself did is not recorded.", touched},
	}
}

// Ask answers a question.
func (q *Question) Ask(ctx context.Context, source Source, filter Filter) (*Report, error) {
	return q.ask(ctx, &input{Filter: filter, source: source})
}

// Find returns the question with a name, or nil.
func Find(name string) *Question {
	all := Questions()
	if i := slices.IndexFunc(all, func(q Question) bool { return q.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Kind is the kind of the cells of a column.
type Kind string

// The kinds, with the types of their cells.
const (
	Text    Kind = "text"    // string
	Count   Kind = "count"   // int
	Dollars Kind = "dollars" // float64
	Seconds Kind = "seconds" // time.Duration
	Time    Kind = "time"    // time.Time
)

// Column is a column of a report.
type Column struct {
	Name string
	Kind Kind
}

// Report is the answer to a question: a table. The types of the cells are those of their columns.
type Report struct {
	Columns []Column
	Rows    [][]any
	Empty   string // what to say if there are no rows
	Omitted int    // how many more rows there are: a server returns not all
}

// add adds a row. Reasons, commands and patterns may quote secrets, and people keep reports.
func (r *Report) add(cells ...any) {
	for i, cell := range cells {
		if text, ok := cell.(string); ok {
			cells[i] = redact.Text(text)
		}
	}
	r.Rows = append(r.Rows, cells)
}

// Plain returns a cell as a text for programs: durations in seconds, times in UTC.
func Plain(cell any) string {
	switch v := cell.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case time.Duration:
		return strconv.FormatFloat(v.Seconds(), 'f', -1, 64)
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.UTC().Format(time.RFC3339)
	default:
		return fmt.Sprint(v)
	}
}

// Cell reads a cell that Plain has written.
func Cell(kind Kind, text string) (any, error) {
	switch kind {
	case Count:
		return strconv.Atoi(text) //nolint:wrapcheck // the caller adds context
	case Dollars:
		return strconv.ParseFloat(text, 64) //nolint:wrapcheck // the caller adds context
	case Seconds:
		n, err := strconv.ParseFloat(text, 64)
		return time.Duration(math.Round(n * float64(time.Second))), err
	case Time:
		if text == "" {
			return time.Time{}, nil
		}
		return time.Parse(time.RFC3339, text) //nolint:wrapcheck // the caller adds context
	default:
		return text, nil
	}
}
