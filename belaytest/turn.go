package belaytest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Turn is a turn that has ended or is parked. Most of its methods are assertions. For
// other checks, use its fields.
type Turn struct {
	// Turn is the result of the turn. It is empty if the turn was refused before it began.
	belay.Turn

	// Err is the error at the end of the stream. It is set if the runtime failed or the
	// turn was aborted.
	Err error
	// Events are the streamed events.
	Events []belay.Event
	// Requests are the requests to the model, including failed attempts and
	// summaries.
	Requests []belay.Request
	// Messages are the messages that the turn added to the transcript. For a resumed turn,
	// they include the messages from before the turn was parked.
	Messages []*belay.Message

	agent    *Agent
	t        testing.TB
	session  string
	began    time.Time
	from     int  // the index of the turn's first request
	expected bool // the test expects the error
}

// read reads the stream of a turn to its end.
func (turn *Turn) read(stream iter.Seq2[belay.Event, error]) {
	for event, err := range stream {
		if err != nil {
			turn.Err = err
			continue
		}
		turn.session = event.Session
		turn.Events = append(turn.Events, event)
		if event.End != nil && event.Depth == 0 {
			turn.Turn = *event.End
		}
	}
}

// Decide makes the same decision about all approvals that the parked turn waits for. Make
// the decision with [Yes] or [No], and call [Agent.Resume] to continue.
func (turn *Turn) Decide(answer belay.Decision) {
	turn.t.Helper()
	asked := slices.DeleteFunc(slices.Clone(turn.Waits), func(wait belay.Question) bool { return wait.Wait != "" })
	if len(asked) == 0 {
		turn.failf("want a turn that waits for a decision, but it %s", turn.ending())
	}
	for _, wait := range asked {
		answer.Approval, answer.Hash = wait.ID, wait.Hash
		if _, err := turn.agent.Agent.Decide(turn.t.Context(), answer); err != nil {
			turn.failf("the call of %s cannot be decided: %v", wait.Tool, err)
		}
	}
}

// Call is a tool call of the model, with its result.
type Call struct {
	belay.CallPart
	// Result is nil while the call is parked.
	Result *belay.Result
}

// Ran returns the final input of the call. It is the input that the tool got, if the tool
// ran.
func (c *Call) Ran() json.RawMessage {
	if c.Final != nil {
		return c.Final
	}
	return c.Input
}

// Calls returns the calls of the turn, in the order in which the model made them.
func (turn *Turn) Calls() []Call {
	var calls []Call
	open := 0 // the index of the first call of the last response
	for _, m := range turn.Messages {
		if m.Role == belay.RoleAssistant {
			open = len(calls)
		}
		for i := range m.Parts {
			switch p := &m.Parts[i]; {
			case p.Call != nil:
				calls = append(calls, Call{CallPart: *p.Call})
			case p.Result != nil:
				for j := open; j < len(calls); j++ {
					if calls[j].ID == p.Result.Call {
						calls[j].Result = &p.Result.Result
					}
				}
			}
		}
	}
	return calls
}

// Reminders returns the reminders that the model got in this turn, in order and without
// repetitions. The texts are without the element <system-reminder>.
func (turn *Turn) Reminders() []string {
	var all []string
	for i := range turn.Requests {
		for _, m := range turn.Requests[i].Messages {
			if m.Turn != "" && m.Turn != turn.ID {
				continue // the message is from an earlier turn
			}
			for _, text := range reminders(m) {
				if !slices.Contains(all, text) {
					all = append(all, text)
				}
			}
		}
	}
	return all
}

// reminders returns the reminders in a message, without the element <system-reminder>.
func reminders(m *belay.Message) []string {
	var all []string
	for i := range m.Parts {
		if p := &m.Parts[i]; p.IsReminder {
			text := strings.TrimSpace(strings.TrimPrefix(p.Text, "<system-reminder>"))
			all = append(all, strings.TrimSpace(strings.TrimSuffix(text, "</system-reminder>")))
		}
	}
	return all
}

// EventsOf returns the events of a kind.
func (turn *Turn) EventsOf(kind belay.EventKind) []belay.Event {
	return slices.DeleteFunc(slices.Clone(turn.Events), func(e belay.Event) bool { return e.Kind != kind })
}

// Runs returns the records of the turn's hook runs so far, oldest first. If the turn opened
// the session, they include the runs of session.start. If the agent's journal cannot be
// read, the test ends.
func (turn *Turn) Runs() []hook.Run {
	turn.t.Helper()
	if turn.agent.journal == nil {
		turn.t.Fatalf("belaytest: the records of hooks cannot be read: the agent has no journal, or its journal is not a hook.ListJournal")
		return nil
	}
	runs, err := turn.runs()
	if err != nil {
		turn.t.Fatalf("belaytest: the records of hooks cannot be read: %v", err)
	}
	return runs
}

func (turn *Turn) runs() ([]hook.Run, error) {
	if turn.agent.journal == nil {
		return nil, nil
	}
	var runs []hook.Run
	ctx := context.WithoutCancel(turn.t.Context())
	for run, err := range turn.agent.journal.List(ctx, hook.Filter{Session: turn.session}) {
		if err != nil {
			return runs, err
		}
		if run.Scope.Turn == turn.ID || run.Scope.Turn == "" && !run.Started.Before(turn.began) {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// String describes the turn: how it ended, its messages, and which hooks ran.
func (turn *Turn) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "--- the turn %s\n", turn.ending())
	b.WriteString(Render(turn.Messages))
	if runs, err := turn.runs(); err == nil && len(runs) > 0 {
		b.WriteString("--- its hooks\n")
		for _, run := range runs {
			fmt.Fprintf(&b, "%s: %s %s", run.Phase, run.Subscription, run.State)
			for _, d := range run.Contributed {
				b.WriteString(" +" + d.Kind)
			}
			if run.Class != "" {
				fmt.Fprintf(&b, " (%s)", run.Class)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// ending says how the turn ended, for messages.
func (turn *Turn) ending() string {
	var b strings.Builder
	if turn.Reason == "" {
		b.WriteString("did not begin")
	} else {
		fmt.Fprintf(&b, "ended %s", turn.Reason)
	}
	if turn.By != "" {
		fmt.Fprintf(&b, ", by %s", turn.By)
	}
	if turn.Why != "" && turn.Err == nil {
		fmt.Fprintf(&b, ": %s", turn.Why)
	}
	if turn.Err != nil {
		fmt.Fprintf(&b, ": %v", turn.Err)
	}
	return b.String()
}

// sameJSON reports whether two texts are the same JSON value.
func sameJSON(a, b []byte) bool { return canonical(a) == canonical(b) }

// canonical returns JSON without white space and with sorted keys. It returns other text
// unchanged.
func canonical(data []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // keep numbers as they are written
	var value any
	if !json.Valid(data) || decoder.Decode(&value) != nil {
		return string(data)
	}
	sorted, err := json.Marshal(value)
	if err != nil {
		return string(data)
	}
	return string(sorted)
}
