package looptest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// breaking is an extension that panics in one of its methods.
type breaking struct{ at string }

func (b breaking) breakAt(method string) {
	if b.at == method {
		panic("oops")
	}
}

func (b breaking) Name() string { b.breakAt("Name"); return "broken" }

func (b breaking) Tools() []belay.Tool { b.breakAt("Tools"); return nil }

func (b breaking) StepTools(string) []belay.Tool { b.breakAt("StepTools"); return nil }

func (b breaking) Hooks() []hook.Subscription { b.breakAt("Hooks"); return nil }

func (b breaking) Directives() []belay.Directive { b.breakAt("Directives"); return nil }

func (b breaking) Prompt(belay.AgentConfig) (fragment, resources string) {
	b.breakAt("Prompt")
	return "", ""
}

func (b breaking) Build(context.Context, *belay.AgentConfig) error { b.breakAt("Build"); return nil }

func (b breaking) Register(context.Context, belay.AgentConfig) error {
	b.breakAt("Register")
	return nil
}

func (b breaking) Unregister(context.Context, belay.AgentConfig) error {
	b.breakAt("Unregister")
	return nil
}

func (b breaking) Close(context.Context) error                          { b.breakAt("Close"); return nil }
func (b breaking) Watch(context.Context, iter.Seq2[belay.Event, error]) { b.breakAt("Watch") }
func (b breaking) Narrow(belay.AgentConfig, []string) ([]string, string) {
	b.breakAt("Narrow")
	return nil, ""
}

// SPEC E-01
func TestAnExtensionThatPanicsIsAnError(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"Name", "Tools", "StepTools", "Hooks", "Directives", "Prompt", "Build", "Register", "Narrow", "Unregister", "Close", "Watch"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			other := &closing{subsystem: subsystem{name: "other"}}
			want := []string{`extension "broken": it panicked: oops`}
			if at == "Name" {
				want = []string{`extension "2, a looptest_test.breaking": it panicked: oops`}
			}
			agent, err := belay.New(belaytest.Script(), &belay.Options{Extensions: []belay.Extension{other, breaking{at}}, Resources: map[string][]string{"broken": {"*"}}})
			if err == nil {
				err = agent.Close(t.Context())
				if other.times() != 1 {
					t.Errorf("the other extension is closed %d times", other.times())
				}
			}
			if at == "Watch" { // Watch returns no error, so neither New nor Close reports its panic
				want = nil
			}
			for _, want := range want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, want %s", err, want)
				}
			}
			if len(other.have) > 0 {
				t.Errorf("registered are %v", other.have)
			}
		})
	}
}

// moody is an extension that adds a tool or, if panics is set, panics.
type moody struct {
	tool   belay.Tool
	panics bool
}

func (*moody) Name() string { return "moody" }

func (m *moody) StepTools(string) []belay.Tool {
	if m.panics {
		panic("not now")
	}
	return []belay.Tool{m.tool}
}

// SPEC E-01
func TestStepToolsThatPanicInATurn(t *testing.T) {
	t.Parallel()
	ext := &moody{tool: belaytest.NewTool("look", "seen")}
	agent := belaytest.New(t, belaytest.Script(belaytest.Calls("look", `{}`), belaytest.Says("one"), belaytest.Says("two"), belaytest.Says("three")), &belay.Options{
		Extensions: []belay.Extension{ext}, Tools: []belay.Tool{belaytest.NewTool("own", "done")},
	})
	agent.Say("go").Request(1).Offers("own", "look")
	ext.panics = true
	turn := agent.Say("go")
	turn.Request(1).Offers("own")
	if d := turn.Diagnostics; len(d) != 1 || d[0].Code != codes.Panic || d[0].Subscription != "moody" {
		t.Errorf("the diagnostics are %+v", d)
	}
	ext.panics = false
	turn = agent.Say("go")
	turn.Request(1).Offers("own", "look")
	if len(turn.Diagnostics) > 0 {
		t.Errorf("the diagnostics are %+v", turn.Diagnostics)
	}
}

// SPEC E-01, E-03
func TestExtensionsNeedNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		extensions []belay.Extension
		want       string
	}{
		"nil":       {[]belay.Extension{&subsystem{name: "one"}, nil}, "extension 2 is nil: remove it from the list"},
		"no name":   {[]belay.Extension{&subsystem{}}, "extension 1, a *looptest_test.subsystem, has no name"},
		"blank":     {[]belay.Extension{&subsystem{name: " "}}, "has no name"},
		"one twice": {[]belay.Extension{&subsystem{name: "one"}, &subsystem{name: "one"}}, `two extensions have the name "one"`},
	} {
		if _, err := belay.New(belaytest.Script(), &belay.Options{Extensions: test.extensions}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v, want %s", rule, err, test.want)
		}
	}
}

// SPEC E-01, E-05
func TestExtensionsEndInReverse(t *testing.T) {
	t.Parallel()
	var d diary
	ext := func(name string) *ending { return &ending{name, &d} }
	agent, err := belay.New(belaytest.Script(), &belay.Options{Extensions: []belay.Extension{ext("one"), ext("two")}, Tools: []belay.Tool{belaytest.NewTool("look"), belaytest.NewTool("push")}, Scope: []string{"look"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second Close does nothing
		if err := agent.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wantEqual(t, "what they heard", d.all(), []string{
		"one: register [look]", "two: register [look]", "two: unregister [look]", "one: unregister [look]", "two: close", "one: close",
	})
}

// SPEC E-05
func TestARetiredAgentLeavesItsExtensionsOpen(t *testing.T) {
	t.Parallel()
	ext := &closing{subsystem: subsystem{name: "one"}}
	agent, err := belay.New(belaytest.Script(), &belay.Options{Extensions: []belay.Extension{ext}})
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Retire(t.Context()); err != nil || len(ext.have) > 0 || ext.times() != 0 {
		t.Errorf("retiring: %v, registered %v, closed %d times", err, ext.have, ext.times())
	}
	if _, err := agent.Session("s").Turn(t.Context(), "hello"); !errors.Is(err, belay.ErrClosed) {
		t.Errorf("it takes a turn: %v", err)
	}
}

// ending is an extension that notes when it is registered, unregistered and closed.
type ending struct {
	name  string
	diary *diary
}

func (e *ending) Name() string { return e.name }

func (e *ending) Register(_ context.Context, agent belay.AgentConfig) error {
	e.diary.notef("%s: register %v", e.name, agent.Tools)
	return nil
}

func (e *ending) Unregister(_ context.Context, agent belay.AgentConfig) error {
	e.diary.notef("%s: unregister %v", e.name, agent.Tools)
	return nil
}

func (e *ending) Close(context.Context) error {
	e.diary.notef("%s: close", e.name)
	return nil
}

// lingering is an extension that watches until it is released.
type lingering struct {
	release chan struct{}
	gone    bool
}

func (*lingering) Name() string { return "lingering" }

func (l *lingering) Watch(_ context.Context, events iter.Seq2[belay.Event, error]) {
	for range events {
	}
	<-l.release
	l.gone = true
}

// SPEC E-01
func TestClosingWaitsForThoseWhoWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ext := &lingering{release: make(chan struct{})}
		agent, err := belay.New(belaytest.Script(), &belay.Options{Extensions: []belay.Extension{ext}})
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- agent.Close(context.Background()) }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Errorf("it is closed though an extension still watches: %v", err)
		default:
		}
		close(ext.release)
		if err := <-closed; err != nil || !ext.gone {
			t.Errorf("closing: %v", err)
		}
	})
}

// SPEC E-01
func TestClosingWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck, other := &lingering{release: make(chan struct{})}, &closing{subsystem: subsystem{name: "other"}}
		defer synctest.Wait()
		defer close(stuck.release)
		agent, err := belay.New(belaytest.Script(), &belay.Options{Extensions: []belay.Extension{other, stuck}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := agent.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), `extension "lingering": its Watch method has not returned`) {
			t.Errorf("the error is %v", err)
		}
		if other.times() != 1 {
			t.Errorf("the other extension is closed %d times", other.times())
		}
	})
}

// An extension gets copies of values: if it changes them, the caller's options and other
// extensions do not change.
//
// SPEC E-05
func TestConfigsAreCopies(t *testing.T) {
	t.Parallel()
	opts := &belay.Options{Name: "a", Resources: map[string][]string{"one": {"look"}, "two": {"t*"}}}
	one, two := &subsystem{name: "one", tools: []belay.Tool{belaytest.NewTool("look"), belaytest.NewTool("push")}}, &narrower{subsystem{name: "two"}}
	spoil := func(c belay.AgentConfig) error {
		c.Resources["one"][0], c.Resources["two"] = "push", nil
		clear(c.Resources)
		if len(c.Tools) > 0 {
			c.Tools[0] = "spoilt"
		}
		return nil
	}
	var kept belay.AgentConfig
	one.build = func(c *belay.AgentConfig) error {
		kept = *c
		return nil
	}
	two.build = func(c *belay.AgentConfig) error {
		if c.Name != "a" || c.ID == "x" || len(c.Tools) > 0 || fmt.Sprint(c.Resources) != "map[one:[look] two:[t*]]" {
			t.Errorf("the config is %+v", c)
		}
		return spoil(kept)
	}
	one.refuses = spoil
	two.refuses = func(c belay.AgentConfig) error {
		if fmt.Sprint(c.Tools, c.Resources) != "[look] map[one:[look] two:[t*]]" {
			t.Errorf("the config is %+v", c)
		}
		return nil
	}
	opts.Extensions = []belay.Extension{one, two}
	agent := belaytest.New(t, belaytest.Script(belaytest.Says("hello")), opts)
	opts.Resources["one"][0], opts.Extensions[0] = "push", nil
	agent.Say("hello").Request(1).Offers("look")
	if got := fmt.Sprint(opts.Resources["two"]); got != "[t*]" {
		t.Errorf("the caller's map has %s", got)
	}
}

// SPEC E-06
func TestNamesThatMatchNoTool(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	tools := []belay.Tool{belaytest.NewTool("git_log"), belaytest.NewTool("git_push")}
	agent, err := belay.New(belaytest.Script(), &belay.Options{
		Tools: []belay.Tool{belaytest.NewTool("read_file")}, Scope: []string{"read_fiel", "git_*", "soon_*"}, Resources: map[string][]string{"x": {"git_lgo", "git_push"}, "y": {"whatever"}},
		Extensions: []belay.Extension{&subsystem{name: "x", tools: tools}, &narrower{subsystem{name: "y"}}}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range [][]string{
		{`did you mean \"read_file\"?`, "where=scope", "name=read_fiel"}, {"where=scope", "name=soon_*"}, {`did you mean \"git_log\"?`, `where="resources of x"`, "name=git_lgo"},
	} {
		for _, want := range want {
			if len(lines) != 3 || !strings.Contains(lines[i], want) || !strings.Contains(lines[i], "level=WARN") {
				t.Fatalf("the log is\n%s\nwant %s in line %d", log.String(), want, i+1)
			}
		}
	}
}
