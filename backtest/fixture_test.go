package backtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// floorFunc is a floor made from a function.
type floorFunc func(tool, input string) belay.Authorization

func (f floorFunc) Authorize(_ context.Context, call belay.ToolCall) (belay.Authorization, error) {
	return f(call.Tool(), string(call.Input())), nil
}

// denies returns a gate that denies calls of a tool whose input has a text.
func denies(id, tool, text string) hook.Subscription {
	return belay.ToolPre.On(id, func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		if strings.Contains(string(call.Input()), text) {
			return belay.Deny("no " + text), nil
		}
		return belay.Pass, nil
	}, &hook.Options{Match: hook.Match{Tools: []string{tool}}})
}

// record runs one turn of a session for each prompt. Each turn makes the given calls.
func record(t testing.TB, store belay.Store, session string, opts belay.Options, turns ...[]scripted.Call) {
	t.Helper()
	var steps []scripted.Step
	for _, calls := range turns {
		if len(calls) > 0 {
			steps = append(steps, scripted.Step{Calls: calls})
		}
		steps = append(steps, scripted.Step{Text: "done"})
	}
	opts.Store = store
	for _, name := range []string{"note", "send"} {
		opts.Tools = append(opts.Tools, belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: "for tests"}, func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
			return belay.Result{Text: "done with " + string(call.Input)}, nil
		}, nil))
	}
	agent, err := belay.New(scripted.New(steps, &scripted.Options{Pace: scripted.Pace{Chunk: scripted.Whole}}), &opts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range turns {
		if _, err := agent.Session(session).Turn(t.Context(), fmt.Sprintf("task %d", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// run replays everything that the store has.
func run(t testing.TB, store belay.Store, policy *backtest.Policy, opts *backtest.Options) *backtest.Report {
	t.Helper()
	records, ok := store.(belay.ListStore)
	if !ok {
		t.Fatal("the store cannot list sessions")
	}
	report, err := backtest.Run(t.Context(), records, policy, opts)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// lines returns the differences, one per line.
func lines(r *backtest.Report) []string {
	var all []string
	for i := range r.Differences {
		d := &r.Differences[i]
		all = append(all, fmt.Sprintf("%s %s %s%s: %s -> %s", d.Session, d.Kind, d.Tool, d.Input, told(&d.Was), told(&d.Now)))
	}
	return all
}

func told(o *backtest.Outcome) string {
	text := string(o.Outcome)
	if o.By != "" {
		text += " by " + o.By
	}
	if o.Approved != "" {
		text += ", approved by " + o.Approved
	}
	if o.Refused != "" {
		text += ", refused by " + o.Refused
	}
	if o.Input != nil {
		text += " as " + string(o.Input)
	}
	if o.Text != nil {
		text += fmt.Sprintf(" as %q", *o.Text)
	}
	return text
}
