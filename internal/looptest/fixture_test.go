package looptest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// newAgent makes an agent with a scripted model. The agent is closed when the test ends.
// After the given steps, the model answers "done" once.
func newAgent(t testing.TB, opts *belay.Options, steps ...scripted.Step) (*belay.Agent, *scripted.Model) {
	t.Helper()
	model := scripted.New(append(slices.Clone(steps), says("done")), &scripted.Options{Pace: scripted.Pace{Chunk: scripted.Whole}})
	return agentOf(t, model, opts), model
}

// agentOf makes an agent with a model. The agent is closed when the test ends.
func agentOf(t testing.TB, model belay.Model, opts *belay.Options) *belay.Agent {
	t.Helper()
	agent, err := belay.New(model, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := agent.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return agent
}

// says returns a step that ends the turn with a text.
func says(text string) scripted.Step { return scripted.Step{Text: text} }

// calls returns a step that calls tools with the input {}.
func calls(tools ...string) scripted.Step {
	var step scripted.Step
	for _, tool := range tools {
		step.Calls = append(step.Calls, scripted.Call{Tool: tool})
	}
	return step
}

// callWith returns a step that calls one tool with an input.
func callWith(tool, input string) scripted.Step {
	return scripted.Step{Calls: []scripted.Call{{Tool: tool, Input: input}}}
}

// anyTool returns a tool that accepts any object.
func anyTool(name string, run func(ctx context.Context, call *belay.Invocation) (belay.Result, error), traits *belay.ToolTraits) belay.Tool {
	return belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: "for tests"}, run, traits)
}

// echoTool returns a tool that returns its input.
func echoTool(name string) belay.Tool {
	return anyTool(name, func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		return belay.Result{Text: string(call.Input)}, nil
	}, nil)
}

// taken is a finished turn with all its events.
type taken struct {
	*belay.Turn
	events []belay.Event
	err    error
}

// take reads a stream to its end.
func take(stream iter.Seq2[belay.Event, error]) taken {
	var all taken
	for event, err := range stream {
		if err != nil {
			all.err = err
			continue
		}
		all.events = append(all.events, event)
		if event.End != nil {
			all.Turn = event.End
		}
	}
	return all
}

// takeTurn reads a turn to its end and fails the test unless it has the given reason. Use
// take for turns that abort or fail.
func takeTurn(t testing.TB, stream iter.Seq2[belay.Event, error], reason belay.EndReason) taken {
	t.Helper()
	all := take(stream)
	if all.err != nil {
		t.Fatalf("the turn failed: %v", all.err)
	}
	if all.Reason != reason {
		t.Fatalf("the turn ended %s (%s: %s), not %s", all.Reason, all.By, all.Why, reason)
	}
	return all
}

// of returns the events of a kind.
func (all *taken) of(kind belay.EventKind) []belay.Event {
	return slices.DeleteFunc(slices.Clone(all.events), func(e belay.Event) bool { return e.Kind != kind })
}

// transcript returns all stored messages of a session.
func transcript(t testing.TB, s *belay.Session) []*belay.Message {
	t.Helper()
	var all []*belay.Message
	for m, err := range s.Messages(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// storedCalls returns the calls in a session's transcript, in order.
func storedCalls(t testing.TB, s *belay.Session) []*belay.CallPart {
	t.Helper()
	var all []*belay.CallPart
	for _, m := range transcript(t, s) {
		all = append(all, m.Calls()...)
	}
	return all
}

// storedResults returns the results in a session's transcript, in order. It fails the test
// unless each message with results answers exactly the calls of the message before it.
func storedResults(t testing.TB, s *belay.Session) []belay.ResultPart {
	t.Helper()
	var all []belay.ResultPart
	var open []*belay.CallPart
	for _, m := range transcript(t, s) {
		if m.Kind != belay.KindResults {
			if len(open) > 0 {
				t.Fatalf("message %d follows on calls and has no results", m.Seq)
			}
			open = m.Calls()
			continue
		}
		if len(m.Parts) != len(open) {
			t.Fatalf("message %d has %d results for %d calls", m.Seq, len(m.Parts), len(open))
		}
		for i, p := range m.Parts {
			if p.Result == nil || p.Result.Call != open[i].ID || p.Result.Tool != open[i].Tool {
				t.Fatalf("message %d: result %d does not answer call %q", m.Seq, i, open[i].ID)
			}
			all = append(all, *p.Result)
		}
		open = nil
	}
	return all
}

// onlyResult returns the only result in a session's transcript.
func onlyResult(t testing.TB, s *belay.Session) belay.ResultPart {
	t.Helper()
	results := storedResults(t, s)
	if len(results) != 1 {
		t.Fatalf("there are %d results, not 1: %v", len(results), results)
	}
	return results[0]
}

// diary collects entries in order. It is safe for concurrent use.
type diary struct {
	mu      sync.Mutex
	entries []string
}

func (d *diary) notef(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, fmt.Sprintf(format, args...))
}

func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.entries)
}

// watchedStore is a store that calls a function after each commit.
type watchedStore struct {
	belay.Store

	stored func(c *belay.Commit)
}

func (s *watchedStore) Commit(ctx context.Context, c *belay.Commit) error {
	err := s.Store.Commit(ctx, c)
	if err == nil {
		s.stored(c)
	}
	return err
}

// floorFunc makes a floor from a function.
type floorFunc func(call belay.ToolCall) (belay.Authorization, error)

func (f floorFunc) Authorize(_ context.Context, call belay.ToolCall) (belay.Authorization, error) {
	return f(call)
}

// approverFunc makes an approver from a function.
type approverFunc func(ctx context.Context, q belay.Question) (belay.Decision, error)

func (f approverFunc) Approve(ctx context.Context, q belay.Question) (belay.Decision, error) {
	return f(ctx, q)
}

// gateOf returns a subscription that answers every call with the verdict.
func gateOf(id string, verdict belay.ToolVerdict) hook.Subscription {
	return belay.ToolPre.On(id, func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return verdict, nil }, nil)
}

// rewriterOf returns a subscription that replaces every input.
func rewriterOf(id, input string) hook.Subscription {
	return belay.ToolPre.On(id, func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.ToolVerdict{Input: json.RawMessage(input)}, nil
	}, &hook.Options{Capabilities: hook.CanRewriteInput})
}
