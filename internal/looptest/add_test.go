package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
)

// everything is an extension that adds one thing of each kind.
type everything struct {
	*subsystem
	clash string // the kind of thing that gets a name that the agent already uses
	ended chan struct{}
	over  bool
}

func newEverything(name string) *everything {
	return &everything{
		subsystem: &subsystem{name: name, tools: []belay.Tool{belaytest.NewTool(name+"_tool", "done")}}, ended: make(chan struct{}),
	}
}

// panicky is a tool whose Declaration method panics.
type panicky struct{ belay.Tool }

func (panicky) Declaration() belay.ToolDeclaration { panic("no declaration") }

func (e *everything) own(kind string) string {
	if e.clash == kind {
		return "taken"
	}
	return e.name
}

func (e *everything) Tools() []belay.Tool {
	if e.clash == "tool" {
		return []belay.Tool{belaytest.NewTool("taken")}
	}
	return e.tools
}

func (e *everything) StepTools(string) []belay.Tool {
	if e.clash == "step tool" {
		return []belay.Tool{belaytest.NewTool("taken")}
	}
	return nil
}

func (e *everything) Directives() []belay.Directive {
	return []belay.Directive{{Name: e.own("directive"), Run: func(context.Context, *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
		return belay.DirectiveOutcome{Reply: &belay.Reply{Text: "by " + e.name}}, nil
	}}}
}

func (e *everything) Hooks() []hook.Subscription {
	return []hook.Subscription{belay.ToolPre.On(e.own("hook"), func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.Deny("says " + e.name), nil
	}, &hook.Options{Match: hook.Match{Tools: []string{"guarded"}}})}
}

func (e *everything) Watch(_ context.Context, events iter.Seq2[belay.Event, error]) {
	defer close(e.ended)
	for range events {
	}
}

func (e *everything) Close(context.Context) error {
	e.over = true
	return nil
}

// shape describes an agent: its directives, tools and hooks, and its system prompt.
func shape(t *testing.T, agent *belaytest.Agent) string {
	t.Helper()
	plan, err := agent.Hooks().Plan("tool.pre")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, d := range agent.Directives() {
		all = append(all, "/"+d.Name)
	}
	request := agent.Say("hello").Request(1)
	for _, tool := range request.Tools {
		all = append(all, tool.Name)
	}
	for _, e := range plan.Entries {
		all = append(all, "hook "+e.ID)
	}
	return fmt.Sprintln(all) + request.System
}

func addTo(t *testing.T, agent *belaytest.Agent, extensions ...belay.Extension) *belay.Lease {
	t.Helper()
	lease, err := agent.Add(t.Context(), extensions...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// SPEC E-11
func TestExtensionsAtAnyTime(t *testing.T) {
	t.Parallel()
	model := belaytest.Script(belaytest.Says("one"), belaytest.Says("two"), belaytest.Calls("guarded", `{}`), belaytest.Says("three"), belaytest.Says("four"))
	opts := &belay.Options{Instructions: "You help.", Tools: []belay.Tool{belaytest.NewTool("guarded", "ran")}, Extensions: []belay.Extension{&subsystem{name: "old"}}}
	agent := belaytest.New(t, model, opts)
	before := shape(t, agent)

	late := newEverything("late")
	lease := addTo(t, agent, late)
	after := shape(t, agent)
	for _, want := range []string{"/late", "late_tool", "hook late", "late is here.", "late has resources for main.", "old is here."} {
		if strings.Contains(before, want) && want != "old is here." || !strings.Contains(after, want) {
			t.Errorf("%q is not what the extension brought: before\n%s\nafter\n%s", want, before, after)
		}
	}
	agent.Say("/late").Said("by late")
	agent.Say("go").Denied("guarded", "late", "says late")
	if got := late.log(); got != "register main" {
		t.Errorf("the extension got the calls %q", got)
	}

	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	<-late.ended
	if got := shape(t, agent); got != before {
		t.Errorf("after it was removed the agent has\n%s", got)
	}
	if got := late.log(); got != "register main, unregister main" || late.over {
		t.Errorf("the extension got the calls %q, and closed is %t", got, late.over)
	}
}

// When an agent is closed, it also closes the extensions that were added later.
//
// SPEC E-11
func TestAnAgentClosesWhatWasAdded(t *testing.T) {
	t.Parallel()
	agent := belaytest.New(t, belaytest.Script(), nil)
	kept, gone := newEverything("kept"), newEverything("gone")
	addTo(t, agent, kept)
	lease := addTo(t, agent, gone)
	if err := errors.Join(lease.Close(), agent.Close(t.Context()), lease.Close()); err != nil {
		t.Fatal(err)
	}
	<-kept.ended
	if !kept.over || gone.over || kept.log() != "register main, unregister main" || gone.log() != kept.log() {
		t.Errorf("closed: %t and %t, told: %q and %q", kept.over, gone.over, kept.log(), gone.log())
	}
	if _, err := agent.Add(t.Context(), newEverything("late")); !errors.Is(err, belay.ErrClosed) {
		t.Errorf("err = %v, want ErrClosed", err)
	}
}

// If an extension cannot be added, the agent is the same as before, wherever the failure
// happens.
//
// SPEC E-11
func TestExtensionsAreAddedAsAWhole(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	for kind, test := range map[string]struct {
		spoil func(*everything)
		want  string
	}{
		"name":      {func(e *everything) { e.name = "old" }, `two extensions have the name "old"`},
		"tool":      {func(e *everything) { e.clash = "tool" }, `the name "taken"`},
		"step tool": {func(e *everything) { e.clash = "step tool" }, `tool "taken"`},
		"directive": {func(e *everything) { e.clash = "directive" }, `directive "taken"`},
		"hook":      {func(e *everything) { e.clash = "hook" }, `"taken"`},
		"build":     {func(e *everything) { e.build = func(*belay.AgentConfig) error { return no } }, "no"},
		"panic":     {func(e *everything) { e.build = func(*belay.AgentConfig) error { panic("oh") } }, "it panicked: oh"},
		"id":        {func(e *everything) { e.build = func(c *belay.AgentConfig) error { c.ID = "x"; return nil } }, "may change only Instructions and Resources"},
		"renamed":   {func(e *everything) { e.build = func(c *belay.AgentConfig) error { c.Name = "x"; return nil } }, "may change only Instructions and Resources"},
		"instructions": {func(e *everything) {
			e.build = func(c *belay.AgentConfig) error { c.Instructions = "x"; return nil }
		}, "only New and Replace"},
		"traits": {func(e *everything) { e.tools = []belay.Tool{panicky{}} }, "panicked"},
		"resources": {func(e *everything) {
			e.build = func(c *belay.AgentConfig) error { c.Resources["old"] = []string{"x"}; return nil }
		}, "only New and Replace"},
		"register": {func(e *everything) { e.refuses = func(belay.AgentConfig) error { return no } }, "no"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			agent := belaytest.New(t, belaytest.Script(belaytest.Says("one"), belaytest.Says("two")), &belay.Options{
				Tools: []belay.Tool{belaytest.NewTool("taken")}, Extensions: []belay.Extension{&subsystem{name: "old", tools: []belay.Tool{belaytest.NewTool("old_tool")}}},
				Directives: []belay.Directive{{Name: "taken", Run: func(context.Context, *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
					return belay.DirectiveOutcome{}, nil
				}}},
				Hooks: []hook.Subscription{belay.ToolPre.On("taken", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Pass, nil }, nil)},
			})
			before := shape(t, agent)
			good, bad := newEverything("good"), newEverything("bad")
			test.spoil(bad)
			if _, err := agent.Add(t.Context(), good, bad); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %v, want one with %q", err, test.want)
			}
			if after := shape(t, agent); after != before {
				t.Errorf("the agent had\n%s\nand has\n%s", before, after)
			}
			if len(good.have)+len(bad.have) > 0 {
				t.Errorf("still registered: %q, %q", good.log(), bad.log())
			}
		})
	}
}

// A running turn can use the tools of a new extension from its next step on.
//
// SPEC E-11, T-12
func TestAnExtensionIsAddedDuringATurn(t *testing.T) {
	t.Parallel()
	var agent *belaytest.Agent
	grow := anyTool("grow", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
		_, err := agent.Add(ctx, newEverything("late"))
		return belay.Result{Text: "grown"}, err
	}, nil)
	agent = belaytest.New(t, belaytest.Script(belaytest.Calls("grow", `{}`), belaytest.Calls("late_tool", `{}`), belaytest.Says("done")), &belay.Options{Tools: []belay.Tool{grow}})
	turn := agent.Say("go")
	turn.Request(2).Offers("grow", "late_tool")
	turn.Result("late_tool", "done")
}

// Extensions can be added and removed while turns run.
//
// SPEC E-11
func TestExtensionsComeAndGoWhileTurnsRun(t *testing.T) {
	t.Parallel()
	model := modelFunc(func(_ context.Context, _ *belay.Request, yield func(belay.Chunk, error) bool) {
		yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text("hello")}}}, nil)
	})
	agent := agentOf(t, model, &belay.Options{Extensions: []belay.Extension{&subsystem{name: "old"}}})
	var changing sync.WaitGroup
	for i := range 4 {
		changing.Go(func() {
			for range 25 {
				lease, err := agent.Add(t.Context(), newEverything(fmt.Sprint("late", i)))
				if err != nil {
					t.Error(err)
					return
				}
				agent.TypedNames()
				_ = lease.Close()
			}
		})
	}
	for i := range 40 {
		if _, err := agent.Session(fmt.Sprint(i)).Turn(t.Context(), "hello /late1"); err != nil {
			t.Error(err)
		}
	}
	changing.Wait()
	if got := agent.TypedNames(); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

// A call uses the interceptors that exist when the call begins.
//
// SPEC E-11
func TestInterceptorsAtAnyTime(t *testing.T) {
	t.Parallel()
	var saw diary
	around := func(name string) belay.Interceptor {
		return belay.Interceptor{
			Name: name, Tool: "*",
			Before: func(_ context.Context, call *belay.Invocation) (belay.Interception, error) {
				saw.notef("%s before %s", name, call.ID)
				return belay.Interception{}, nil
			},
			After: func(_ context.Context, call *belay.Invocation, r belay.Result) (belay.Result, error) {
				saw.notef("%s after %s", name, call.ID)
				return r, nil
			},
		}
	}
	var agent *belaytest.Agent
	var lease *belay.Lease
	swap := anyTool("swap", func(context.Context, *belay.Invocation) (r belay.Result, err error) {
		if lease == nil {
			lease, err = agent.Intercept(around("late"))
			return belay.Result{Text: "added"}, err
		}
		return belay.Result{Text: "removed"}, lease.Close()
	}, nil)
	agent = belaytest.New(t, belaytest.Script(
		belaytest.Calls("swap", `{"n":1}`), belaytest.Calls("swap", `{"n":2}`), belaytest.Calls("swap", `{"n":3}`), belaytest.Says("done"),
	), &belay.Options{Tools: []belay.Tool{swap}, Interceptors: []belay.Interceptor{around("old")}})
	turn := agent.Say("go")
	calls := turn.Calls()
	want := fmt.Sprintf("old before %[1]s, old after %[1]s, old before %[2]s, late before %[2]s, late after %[2]s, old after %[2]s, old before %[3]s, old after %[3]s", calls[0].ID, calls[1].ID, calls[2].ID)
	if got := strings.Join(saw.all(), ", "); got != want {
		t.Errorf("the interceptors saw\n%s\nwant\n%s", got, want)
	}
	if _, err := agent.Intercept(belay.Interceptor{Name: "x"}); err == nil || !strings.Contains(err.Error(), "Name or Tool is empty") {
		t.Errorf("err = %v", err)
	}
}
