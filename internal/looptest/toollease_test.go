package looptest_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// declared returns the tools that each request declares.
func declared(model *scripted.Model) []string {
	var all []string
	for _, req := range model.Requests() {
		var names []string
		for _, d := range req.Tools {
			names = append(names, d.Name)
		}
		all = append(all, strings.Join(names, " "))
	}
	return all
}

// SPEC T-12
func TestToolsComeAndGoBetweenSteps(t *testing.T) {
	t.Parallel()
	var agent *belay.Agent
	var lease *belay.Lease
	add := anyTool("add", func(context.Context, *belay.Invocation) (belay.Result, error) {
		var err error
		lease, err = agent.AddTools(echoTool("new"))
		return belay.Result{Text: "added"}, err
	}, nil)
	remove := anyTool("remove", func(context.Context, *belay.Invocation) (belay.Result, error) {
		return belay.Result{Text: "removed"}, lease.Close()
	}, &belay.ToolTraits{Serial: true})
	agent, model := newAgent(t, &belay.Options{Tools: []belay.Tool{add, remove}},
		calls("add", "new"),    // new cannot be called yet in this step
		calls("new"),           // new can be called from this step on
		calls("remove", "new"), // new can still be called in this step
		calls("new"),           // new cannot be called any more
	)
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	var got []string
	for _, r := range storedResults(t, session) {
		got = append(got, r.Tool+" "+string(r.Class))
	}
	if diff := cmp.Diff([]string{"add ", "new not_found", "new ", "remove ", "new ", "new not_found"}, got); diff != "" {
		t.Errorf("the results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"add remove", "add remove new", "add remove new", "add remove", "add remove"}, declared(model)); diff != "" {
		t.Errorf("the tools in the requests (-want +got):\n%s", diff)
	}
	if err := lease.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := agent.AddTools(echoTool("new")); err != nil {
		t.Errorf("the name is not free again: %v", err)
	}
	if err := lease.Close(); err != nil {
		t.Errorf("closing a third time: %v", err)
	}
	if _, err := agent.AddTools(echoTool("new")); err == nil {
		t.Error("closing an old lease took back what another added")
	}
}

// A response is checked with the tools that its request declared.
//
// SPEC T-12
func TestToolsThatChangeWhileTheModelAnswers(t *testing.T) {
	t.Parallel()
	var agent *belay.Agent
	var lease *belay.Lease
	adds := scripted.Step{Compute: func(context.Context, *belay.Request) (scripted.Step, error) {
		var err error
		lease, err = agent.AddTools(echoTool("new"))
		return calls("new"), err
	}}
	removes := scripted.Step{Compute: func(context.Context, *belay.Request) (scripted.Step, error) {
		return calls("new"), lease.Close()
	}}
	agent, _ = newAgent(t, nil, adds, removes, calls("new"))
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	var got []belay.ResultClass
	for _, r := range storedResults(t, session) {
		got = append(got, r.Class)
	}
	if diff := cmp.Diff([]belay.ResultClass{belay.ClassNotFound, "", belay.ClassNotFound}, got); diff != "" {
		t.Errorf("the results (-want +got):\n%s", diff)
	}
}

// SPEC T-12
func TestAddingToolsIsAllOrNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		tools []belay.Tool
		want  []string // parts of the error
	}{
		{"a name that is taken", []belay.Tool{echoTool("fresh"), echoTool("old")}, []string{`two tools have the name "old"`}},
		{"a name that is given twice", []belay.Tool{echoTool("fresh"), echoTool("fresh")}, []string{`two tools have the name "fresh"`}},
		{"a name that no model can call", []belay.Tool{echoTool("fresh"), echoTool("a b")}, []string{`tool "a b": invalid name`}},
		{"no tool", []belay.Tool{echoTool("fresh"), nil}, []string{"a tool is nil"}},
		{"a schema that is none", []belay.Tool{belay.NewRawTool(belay.ToolDeclaration{Name: "x", InputSchema: []byte(`{"type":"array"}`)}, nil, nil)}, []string{`tool "x": input schema`}},
		{"the error names all problems", []belay.Tool{echoTool("old"), echoTool("a b")}, []string{`the name "old"`, `tool "a b"`}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			agent, model := newAgent(t, &belay.Options{Tools: []belay.Tool{echoTool("old")}})
			_, err := agent.AddTools(test.tools...)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, without %q", err, want)
				}
			}
			takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
			if diff := cmp.Diff([]string{"old"}, declared(model)); diff != "" {
				t.Errorf("the tools in the requests (-want +got):\n%s", diff)
			}
		})
	}
}

// SPEC T-12
func TestToolsComeAndGoWhileTurnsAreTaken(t *testing.T) {
	t.Parallel()
	model := scripted.New([]scripted.Step{calls("old", "new"), calls("new", "old"), says("bye")}, &scripted.Options{FollowTranscript: true})
	agent := agentOf(t, model, &belay.Options{Tools: []belay.Tool{echoTool("old")}})
	var turns, changes sync.WaitGroup
	stop := make(chan struct{})
	changes.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			lease, err := agent.AddTools(echoTool("new"))
			if err != nil {
				t.Error(err)
				return
			}
			if err := lease.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for _, id := range []string{"a", "b", "c", "d"} {
		turns.Go(func() {
			session := agent.Session(id)
			if turn, err := session.Turn(t.Context(), "go"); err != nil || turn.Reason != belay.EndTurn {
				t.Errorf("the turn ended %v: %v", turn, err)
			}
			for _, r := range storedResults(t, session) {
				if r.IsError && (r.Tool != "new" || r.Class != belay.ClassNotFound) {
					t.Errorf("a result is %+v", r)
				}
			}
		})
	}
	turns.Wait()
	close(stop)
	changes.Wait()
}

// Tools and directives can be removed by name, also those that New got, no matter who has
// the lease. Everything is removed or nothing.
//
// SPEC T-12, E-11
func TestRemovalByName(t *testing.T) {
	t.Parallel()
	reply := func(name string) belay.Directive {
		return directive(name, func(*belay.DirectiveUse) (belay.DirectiveOutcome, error) {
			return belay.DirectiveOutcome{Reply: &belay.Reply{Text: name}}, nil
		})
	}
	agent, model := newAgent(t, &belay.Options{
		Tools: []belay.Tool{echoTool("first"), echoTool("stays")}, Directives: []belay.Directive{reply("first"), reply("stays")},
		Extensions: []belay.Extension{&subsystem{name: "sub", tools: []belay.Tool{echoTool("theirs")}}},
	}, says("a"), says("b"))
	toolLease, err := agent.AddTools(echoTool("second"), echoTool("third"))
	succeeds(t, err)
	directiveLease, err := agent.Define(reply("second"), reply("third"))
	succeeds(t, err)
	state := func() (tools, directives string) {
		t.Helper()
		takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
		var names []string
		for _, d := range agent.Directives() {
			names = append(names, d.Name)
		}
		return last(t, declared(model)), strings.Join(names, " ")
	}
	for want, remove := range map[string]func() error{
		`there is no tool "fourth"`:                           func() error { return agent.RemoveTools("first", "fourth") },
		`tool "theirs" belongs to extension "sub"`:            func() error { return agent.RemoveTools("second", "theirs") },
		`undefine directives: there is no directive "fourth"`: func() error { return agent.Undefine("first", "fourth") },
	} {
		if err := remove(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	tools, directives := state()
	wantEqual(t, "the tools after failed removals", tools, "first stays theirs second third")
	wantEqual(t, "the directives after failed removals", directives, "first second stays third")

	succeeds(t, agent.RemoveTools("first", "second", "second"))
	succeeds(t, agent.Undefine("first", "second", "second"))
	tools, directives = state()
	wantEqual(t, "the tools", tools, "stays theirs third")
	wantEqual(t, "the directives", directives, "stays third")

	again, err := agent.AddTools(echoTool("second")) // the name is free again, and the old lease does not touch it
	succeeds(t, err)
	_, err = agent.Define(reply("second"))
	succeeds(t, err)
	succeeds(t, toolLease.Close())
	succeeds(t, directiveLease.Close())
	tools, directives = state()
	wantEqual(t, "the tools after the lease is closed", tools, "stays theirs second")
	wantEqual(t, "the directives after the lease is closed", directives, "second stays")
	succeeds(t, again.Close())
}
