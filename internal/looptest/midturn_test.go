package looptest_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// changing makes an agent with two tools: "change" calls a function that changes the
// agent during its turn, and "use" returns its input.
func changing(t *testing.T, change func(a *belay.Agent)) (*belay.Agent, *scripted.Model) {
	t.Helper()
	var opts belay.Options
	var agent *belay.Agent
	opts.Tools = append(opts.Tools,
		anyTool("change", func(context.Context, *belay.Invocation) (belay.Result, error) {
			change(agent)
			return belay.Result{Text: "changed"}, nil
		}, nil), echoTool("use"))
	agent, model := newAgent(t, &opts, calls("change", "use"), calls("use"), says("done"), calls("use"), says("done"))
	return agent, model
}

func install(t *testing.T, a *belay.Agent, subs ...hook.Subscription) *hook.Lease {
	t.Helper()
	lease, err := a.Hooks().Install(subs...)
	if err != nil {
		t.Error(err)
	}
	return lease
}

// A gate that is installed during a turn applies from the turn's next step. The hook at
// model.post applies from the next turn on.
//
// SPEC H-14
func TestGatesInstalledMidTurn(t *testing.T) {
	t.Parallel()
	var noted atomic.Int64
	noting := belay.ModelPost.On("late", func(context.Context, belay.ModelResponse) (belay.Note, error) {
		noted.Add(1)
		return belay.Note{}, nil
	}, nil)
	agent, _ := changing(t, func(a *belay.Agent) { install(t, a, gateOf("late", belay.Deny("not any more")), noting) })
	s := agent.Session("s")
	takeTurn(t, s.Run(t.Context(), "hi"), belay.EndTurn)
	results := storedResults(t, s)
	var classes []belay.ResultClass
	for _, r := range results {
		classes = append(classes, r.Class)
	}
	if want := []belay.ResultClass{"", "", belay.ClassDenied}; !slices.Equal(classes, want) {
		t.Errorf("the results are of the classes %q, want %q", classes, want)
	}
	if n := noted.Load(); n > 0 {
		t.Errorf("in the turn that runs an observer took note of %d responses", n)
	}
	takeTurn(t, s.Run(t.Context(), "hi"), belay.EndTurn)
	if n := noted.Load(); n != 2 {
		t.Errorf("in the next turn the observer took note of %d responses, want 2", n)
	}
}

// If the lease of a gate is closed during a turn, the gate still applies until the turn
// ends.
//
// SPEC H-14
func TestGatesClosedMidTurn(t *testing.T) {
	t.Parallel()
	var lease *hook.Lease
	gate := belay.ToolPre.On("gate", answering(belay.ToolPre, belay.Deny("no")), &hook.Options{Match: hook.Match{Tools: []string{"use"}}})
	agent, _ := changing(t, func(*belay.Agent) {
		if err := lease.Close(); err != nil {
			t.Error(err)
		}
	})
	lease = install(t, agent, gate)
	s := agent.Session("s")
	for range 2 {
		takeTurn(t, s.Run(t.Context(), "hi"), belay.EndTurn)
	}
	var classes []belay.ResultClass
	for _, r := range storedResults(t, s) {
		classes = append(classes, r.Class)
	}
	if want := []belay.ResultClass{"", belay.ClassDenied, belay.ClassDenied, ""}; !slices.Equal(classes, want) {
		t.Errorf("the results are of the classes %q, want %q", classes, want)
	}
}

// Tools that are added or removed during a turn change from the next step on: both the
// list that the model gets and the tools that it can call.
//
// SPEC T-12
func TestToolsComeAndGoMidTurn(t *testing.T) {
	t.Parallel()
	var lease *belay.Lease
	agent, model := changing(t, func(a *belay.Agent) {
		if _, err := a.AddTools(echoTool("new")); err != nil {
			t.Error(err)
		}
		if err := lease.Close(); err != nil {
			t.Error(err)
		}
	})
	var err error
	if lease, err = agent.AddTools(echoTool("old")); err != nil {
		t.Fatal(err)
	}
	takeTurn(t, agent.Session("s").Run(t.Context(), "hi"), belay.EndTurn)
	var advertised [][]string
	for _, req := range model.Requests() {
		var names []string
		for _, tool := range req.Tools {
			names = append(names, tool.Name)
		}
		advertised = append(advertised, names)
	}
	before, after := []string{"change", "use", "old"}, []string{"change", "use", "new"}
	if !slices.EqualFunc(advertised, [][]string{before, after, after}, slices.Equal[[]string]) {
		t.Errorf("advertised were %v", advertised)
	}
}

// In the next step, calls find a tool that was added, and do not find a tool whose lease
// was closed.
//
// SPEC T-12
func TestCallsOfToolsThatComeAndGo(t *testing.T) {
	t.Parallel()
	var lease *belay.Lease
	var agent *belay.Agent
	agent, _ = newAgent(t, &belay.Options{Tools: []belay.Tool{anyTool("change", func(context.Context, *belay.Invocation) (belay.Result, error) {
		if _, err := agent.AddTools(echoTool("new")); err != nil {
			return belay.Result{}, err
		}
		return belay.Result{}, lease.Close()
	}, nil)}}, calls("change", "old", "new"), calls("old", "new"))
	var err error
	if lease, err = agent.AddTools(echoTool("old")); err != nil {
		t.Fatal(err)
	}
	s := agent.Session("s")
	takeTurn(t, s.Run(t.Context(), "hi"), belay.EndTurn)
	var classes []belay.ResultClass
	for _, r := range storedResults(t, s) {
		classes = append(classes, r.Class)
	}
	if want := []belay.ResultClass{"", "", belay.ClassNotFound, belay.ClassNotFound, ""}; !slices.Equal(classes, want) {
		t.Errorf("the results are of the classes %q, want %q", classes, want)
	}
}

// A new hook at tool.post applies from the next step of a running turn on, like a gate.
// Otherwise a hook that hides results would miss the results of a tool that was added
// together with it.
//
// SPEC H-14, E-11
func TestHooksOnResultsInstalledMidTurn(t *testing.T) {
	t.Parallel()
	agent, _ := changing(t, func(a *belay.Agent) {
		install(t, a, belay.ToolPost.On("hide", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
			hidden := "hidden"
			return belay.ToolReaction{Result: &hidden}, nil
		}, &hook.Options{Capabilities: hook.CanRewriteOutput}))
	})
	s := agent.Session("s")
	takeTurn(t, s.Run(t.Context(), "hi"), belay.EndTurn)
	var texts []string
	for _, r := range storedResults(t, s) {
		texts = append(texts, r.Text)
	}
	wantEqual(t, "the results", texts, []string{"changed", "{}", "hidden"})
}
