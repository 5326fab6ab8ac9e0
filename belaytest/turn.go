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

// Turn is a turn that is over, or parked, with all that is known about it. Its
// methods assert; its fields are for what they do not cover.
type Turn struct {
	// Turn is how it ended. It is empty if the turn was refused before it began.
	belay.Turn

	// Err is the error that the stream ended with: the runtime failed, or the
	// turn was aborted.
	Err error
	// Events are what was streamed.
	Events []belay.Event
	// Requests are what the model was sent, failed attempts and summaries too.
	Requests []belay.Request
	// Messages are what the turn added to the transcript. A turn that was parked
	// and resumed has those of both parts.
	Messages []*belay.Message

	agent    *Agent
	t        testing.TB
	session  string
	began    time.Time
	from     int  // the number of its first request
	expected bool // the test asserts the error
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

// Decide answers everything that the parked turn waits for, as [Yes] and [No] do.
// [Agent.Resume] then continues.
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

// Call is a tool call of the model, and its result.
type Call struct {
	belay.CallPart
	// Result is nil while the call is parked.
	Result *belay.Result
}

// Ran is the input as it was judged, and run if it was.
func (c *Call) Ran() json.RawMessage {
	if c.Final != nil {
		return c.Final
	}
	return c.Input
}

// Calls are the calls of the turn, in the order the model made them.
func (turn *Turn) Calls() []Call {
	var calls []Call
	open := 0 // the first call of the last response
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

// Reminders are what the model was reminded of in this turn, in order, each once
// and without the element it comes in.
func (turn *Turn) Reminders() []string {
	var all []string
	for i := range turn.Requests {
		for _, m := range turn.Requests[i].Messages {
			if m.Turn != "" && m.Turn != turn.ID {
				continue // it is from an earlier turn
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

// reminders are those in a message, as they were before they were wrapped.
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

// EventsOf are the events of a kind.
func (turn *Turn) EventsOf(kind belay.EventKind) []belay.Event {
	return slices.DeleteFunc(slices.Clone(turn.Events), func(e belay.Event) bool { return e.Kind != kind })
}

// Runs are the records of the turn's hooks so far, oldest first, with those of
// session.start if it opened the session. It ends the test if the agent's journal
// cannot be read.
func (turn *Turn) Runs() []hook.Run {
	turn.t.Helper()
	if turn.agent.journal == nil {
		turn.t.Fatalf("belaytest: the records of hooks cannot be read: the agent's store has no journal, or one that is no hook.ListJournal")
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

// String shows the turn: how it ended, what was said, which hooks ran.
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

// ending returns how the turn ended.
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

// canonical returns JSON without white space and with sorted keys. Other text
// stays as it is.
func canonical(data []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // so that numbers stay as they are written
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
