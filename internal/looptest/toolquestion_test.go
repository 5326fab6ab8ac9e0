package looptest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
	"github.com/belay-run/belay/toolbox"
)

// curiousTool asks two questions and returns the answers. It counts its calls.
func curiousTool(calls *atomic.Int64) belay.Tool {
	return belay.NewRawTool(belay.ToolDeclaration{Name: "order", Description: "Orders.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
			calls.Add(1)
			switch len(call.Answers) {
			case 0:
				return belay.Result{}, belay.ParkAsk("Which size?")
			case 1:
				return belay.Result{}, belay.ParkAsk("How many?")
			}
			return belay.Result{Text: fmt.Sprint(call.Answers)}, nil
		}, nil)
}

// asksOnce is a floor that asks about every call.
type asksOnce struct{}

func (asksOnce) Authorize(context.Context, belay.ToolCall) (belay.Authorization, error) {
	return belay.Authorization{Decision: belay.ToolAsk, By: "zone", Reason: "it costs money"}, nil
}

// ordering makes an agent with curiousTool on the store in a file. The model calls the tool,
// unless an earlier agent has done so.
func ordering(t *testing.T, file string, calls *atomic.Int64, begun bool, opts belay.Options) *belay.Agent {
	t.Helper()
	store, err := sqlite.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	steps := []scripted.Step{{Calls: []scripted.Call{{Tool: "order", Input: `{}`}}}, {Text: "ordered"}}
	if begun {
		steps = steps[1:]
	}
	opts.Tools, opts.Store = []belay.Tool{curiousTool(calls)}, store
	agent, err := belay.New(scripted.New(steps, nil), &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Close(context.Background())
		_ = store.Close()
	})
	return agent
}

// lastResult returns the text of the last result in a session.
func lastResult(t *testing.T, agent *belay.Agent) (text string) {
	t.Helper()
	for m, err := range agent.Session("s").Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range m.Parts {
			if p.Result != nil {
				text = p.Result.Text
			}
		}
	}
	return text
}

// A question of a tool is an approval. It survives a restart, and each answer reaches the
// tool. The floor's question about the call is not asked again.
//
// SPEC E-09
func TestAToolAsksWhileItsTurnIsParked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "belay.db")
	var calls atomic.Int64
	agent := ordering(t, file, &calls, false, belay.Options{Authorizer: asksOnce{}, OnAsk: belay.AskPark})
	turn, err := agent.Session("s").Turn(t.Context(), "order")
	for i, want := range []struct{ reason, answer string }{{"it costs money", ""}, {"Which size?", "large"}, {"How many?", "2"}} {
		if err != nil || turn.Reason != belay.EndParked || len(turn.Waits) != 1 || turn.Waits[0].Reason != want.reason || calls.Load() != int64(i) {
			t.Fatalf("step %d: the turn ended %+v after %d calls: %v", i, turn, calls.Load(), err)
		}
		q := turn.Waits[0]
		decision := belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: true, By: "ann"}
		if want.answer != "" {
			if asked, ok := toolbox.ReadQuestion(q); !ok || asked.Question != want.reason {
				t.Errorf("the question reads as %+v", asked)
			}
			if decision, err = toolbox.Answer(q, "ann", want.answer); err != nil {
				t.Fatal(err)
			}
			decision.Scope.Kind = belay.ScopeSession // an answer must not cover later questions
		}
		if _, err := agent.Decide(t.Context(), decision); err != nil {
			t.Fatal(err)
		}
		if err := agent.Close(t.Context()); err != nil { // the next step is in another process
			t.Fatal(err)
		}
		agent = ordering(t, file, &calls, true, belay.Options{Authorizer: asksOnce{}, OnAsk: belay.AskPark})
		turn, err = belay.Await(agent.Session("s").Resume(t.Context()))
	}
	if err != nil || turn.Reason != belay.EndTurn || calls.Load() != 3 {
		t.Fatalf("the turn ended %+v after %d calls: %v", turn, calls.Load(), err)
	}
	if got := lastResult(t, agent); got != "[{Which size? large} {How many? 2}]" {
		t.Errorf("result = %q", got)
	}
	if grants, err := agent.Session("s").Grants(t.Context()); err != nil || len(grants) > 0 {
		t.Errorf("grants = %+v, %v", grants, err)
	}
}

// How a turn with questions of a tool ends if the person is there, refuses, or cannot be
// asked.
func TestAToolAsksWhileItsTurnRuns(t *testing.T) {
	t.Parallel()
	says := func(answers ...string) belay.Approver {
		return toolbox.Answering("ann", askFunc(func(context.Context, belay.Inquiry) (string, error) {
			said := answers[0]
			answers = answers[1:]
			return said, nil
		}), nil)
	}
	for _, test := range []struct {
		rule  string
		opts  belay.Options
		want  string
		calls int64
	}{
		{"the approver answers", belay.Options{Approver: says("large", "2")}, "[{Which size? large} {How many? 2}]", 3},
		{"no answer denies the call", belay.Options{Approver: says("large", "")}, "the user gave no answer", 2},
		{"nobody is available", belay.Options{OnAsk: belay.AskDeny}, "nobody is available to answer", 1},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			agent := ordering(t, filepath.Join(t.TempDir(), "belay.db"), &calls, false, test.opts)
			turn, err := agent.Session("s").Turn(t.Context(), "order")
			if err != nil || turn.Reason != belay.EndTurn || calls.Load() != test.calls {
				t.Fatalf("the turn ended %+v after %d calls, want %d: %v", turn, calls.Load(), test.calls, err)
			}
			if got := lastResult(t, agent); !strings.Contains(got, test.want) {
				t.Errorf("result = %q, want %q", got, test.want)
			}
		})
	}
}

// A tool that never stops asking gets no more answers after a while.
func TestAToolAsksWithoutEnd(t *testing.T) {
	t.Parallel()
	calls := 0
	tool := belay.NewRawTool(belay.ToolDeclaration{Name: "order", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *belay.Invocation) (belay.Result, error) {
		calls++
		return belay.Result{}, belay.ParkAsk("And now?")
	}, nil)
	agent, err := belay.New(scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "order", Input: `{}`}}}, {Text: "done"}}, nil), &belay.Options{
		Tools:    []belay.Tool{tool},
		Approver: toolbox.Answering("ann", askFunc(func(context.Context, belay.Inquiry) (string, error) { return "yes", nil }), nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := agent.Session("s").Turn(t.Context(), "order")
	if err != nil || turn.Reason != belay.EndTurn || calls != 51 || !strings.Contains(lastResult(t, agent), "more than 50 questions") {
		t.Errorf("the turn ended %+v after %d calls: %v", turn, calls, err)
	}
}

type askFunc func(context.Context, belay.Inquiry) (string, error)

func (f askFunc) Ask(ctx context.Context, in belay.Inquiry) (string, error) { return f(ctx, in) }
