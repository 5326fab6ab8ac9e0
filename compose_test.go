package belay_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
)

// subsystem is an extension with everything that one can have.
type subsystem struct {
	name   string
	tools  []belay.Tool
	build  func(*belay.AgentConfig) error
	refuse error // by Register

	mu   sync.Mutex
	told []string
	have map[string]bool
	seen chan belay.EventKind
}

func (s *subsystem) Name() string        { return s.name }
func (s *subsystem) Tools() []belay.Tool { return s.tools }
func (s *subsystem) Fragment() string    { return s.name + " is here." }

func (s *subsystem) Hint(agent belay.AgentConfig) string {
	return fmt.Sprintf("%s has resources for %s.", s.name, agent.Name)
}

func (s *subsystem) Build(_ context.Context, agent *belay.AgentConfig) error {
	if s.build == nil {
		return nil
	}
	return s.build(agent)
}

func (s *subsystem) tell(what string, agent belay.AgentConfig, have bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.have == nil {
		s.have = make(map[string]bool)
	}
	s.told = append(s.told, what+" "+agent.Name)
	if s.have[agent.ID] = have; !have {
		delete(s.have, agent.ID)
	}
}

func (s *subsystem) Register(_ context.Context, agent belay.AgentConfig) error {
	if s.refuse != nil {
		return s.refuse
	}
	s.tell("register", agent, true)
	return nil
}

func (s *subsystem) Unregister(_ context.Context, agent belay.AgentConfig) error {
	s.tell("unregister", agent, false)
	return nil
}

func (s *subsystem) Watch(_ context.Context, events iter.Seq2[belay.Event, error]) {
	for e, err := range events {
		if err == nil && s.seen != nil {
			s.seen <- e.Kind
		}
	}
}

func (s *subsystem) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.told, ", ")
}

// narrower is a subsystem whose resources are groups of tools.
type narrower struct{ subsystem }

func (n *narrower) Narrow(_ belay.AgentConfig, allowed []string) (tools []string, line string) {
	for _, group := range allowed {
		tools = append(tools, group+"_*")
	}
	return tools, n.name + ": " + strings.Join(allowed, ", ")
}

// SPEC E-01, E-04
func TestThePromptIsBuiltInOrder(t *testing.T) {
	t.Parallel()
	model := belaytest.Script(belaytest.Says("one"), belaytest.Says("two"))
	day := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	one, two := &subsystem{name: "one"}, &narrower{subsystem{name: "two"}}
	one.build = func(c *belay.AgentConfig) error {
		c.Instructions += " Be brief."
		return nil
	}
	agent := belaytest.New(t, model, &belay.Options{
		Instructions: "You help.", Extensions: []belay.Extension{one, two}, Scope: []string{"read"}, Resources: map[string][]string{"two": {"a", "b"}},
		Environment: &belay.Environment{Dir: "/srv/app", Shell: "/bin/bash", Now: func() time.Time { return day }},
	})
	system := agent.Say("hello").Request(1).System
	at := -1
	for _, want := range []string{
		"You help. Be brief.", "<environment>\nOperating system: ", "Shell: /bin/bash\nWorking directory: /srv/app\nDate: 2026-03-01\n</environment>",
		"one is here.", "two is here.", "one has resources for main.", "two has resources for main.",
		"<scope>\nYou may use these tools only: read.\ntwo: a, b\n</scope>",
	} {
		i := strings.Index(system, want)
		if i <= at {
			t.Errorf("%q is not in its place in:\n%s", want, system)
		}
		at = i
	}
	day = day.AddDate(0, 0, 1)
	if next := agent.Say("and now?").Request(1).System; next != strings.Replace(system, "2026-03-01", "2026-03-02", 1) {
		t.Errorf("a day later the prompt is\n%s", next)
	}
}

// Without any of it the request is what it was.
//
// SPEC E-02
func TestNothingLeavesNoTrace(t *testing.T) {
	t.Parallel()
	model := belaytest.Script(belaytest.Says("hello"))
	agent := belaytest.New(t, model, &belay.Options{Instructions: "You help."})
	if system := agent.Say("hello").Request(1).System; system != "You help." {
		t.Errorf("the prompt is %q", system)
	}
}

// SPEC E-03
func TestTwoOwnersOfATool(t *testing.T) {
	t.Parallel()
	tool := belaytest.NewTool("search", "found")
	for _, test := range []struct {
		opts *belay.Options
		want []string
	}{
		{&belay.Options{Extensions: []belay.Extension{&subsystem{name: "web", tools: []belay.Tool{tool}}, &subsystem{name: "memory", tools: []belay.Tool{tool}}}}, []string{`"search"`, `extension "web"`, `extension "memory"`}},
		{&belay.Options{Tools: []belay.Tool{tool}, Extensions: []belay.Extension{&subsystem{name: "web", tools: []belay.Tool{tool}}}}, []string{"the agent's own tools", `extension "web"`}},
	} {
		_, err := belay.New(belaytest.Script(), test.opts)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %s in it", err, want)
			}
		}
	}
}

// SPEC E-06
func TestResourcesNarrowWhatAnExtensionBrings(t *testing.T) {
	t.Parallel()
	tools := func() []belay.Tool {
		return []belay.Tool{belaytest.NewTool("git_log", "log"), belaytest.NewTool("git_push", "pushed"), belaytest.NewTool("web_get", "got")}
	}
	for name, test := range map[string]struct {
		extension belay.Extension
		resources map[string][]string
		offers    []string
	}{
		"all":             {&subsystem{name: "x", tools: tools()}, nil, []string{"git_log", "git_push", "web_get"}},
		"none":            {&subsystem{name: "x", tools: tools()}, map[string][]string{"x": {}}, nil},
		"by name":         {&subsystem{name: "x", tools: tools()}, map[string][]string{"x": {"git_log", "web_*"}}, []string{"git_log", "web_get"}},
		"as it says":      {&narrower{subsystem{name: "x", tools: tools()}}, map[string][]string{"x": {"git"}}, []string{"git_log", "git_push"}},
		"none as it says": {&narrower{subsystem{name: "x", tools: tools()}}, map[string][]string{"x": {}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := belaytest.New(t, belaytest.Script(belaytest.Calls("web_get", `{}`), belaytest.Says("done")), &belay.Options{
				Extensions: []belay.Extension{test.extension}, Resources: test.resources,
			})
			turn := agent.Say("go")
			turn.Request(1).Offers(test.offers...)
			ran := turn.Calls()[0].Result
			if allowed := slices.Contains(test.offers, "web_get"); allowed == ran.IsError {
				t.Errorf("web_get came out as %+v", ran)
			}
		})
	}
	if _, err := belay.New(belaytest.Script(), &belay.Options{Resources: map[string][]string{"mpc": {}}, Extensions: []belay.Extension{&subsystem{name: "mcp"}}}); err == nil || !strings.Contains(err.Error(), `there is no extension "mpc": there are "mcp"`) {
		t.Errorf("the error is %v", err)
	}
}

// SPEC E-05
func TestExtensionsKnowAnAgentWhileItIsThere(t *testing.T) {
	t.Parallel()
	one, two, three := &subsystem{name: "one"}, &subsystem{name: "two"}, &subsystem{name: "three"}
	all := []belay.Extension{one, two, three}
	agent, err := belay.New(belaytest.Script(), &belay.Options{Name: "a", Extensions: all})
	if err != nil || one.log() != "register a" {
		t.Fatal(one.log(), err)
	}
	if err := agent.Close(t.Context()); err != nil || one.log() != "register a, unregister a" {
		t.Fatal(one.log(), err)
	}
	three.refuse = errors.New("the index is gone")
	if _, err := belay.New(belaytest.Script(), &belay.Options{Name: "b", Extensions: all}); err == nil || !strings.Contains(err.Error(), `extension "three": the index is gone`) {
		t.Errorf("the error is %v", err)
	}
	for _, s := range []*subsystem{one, two} {
		if got := s.log(); !strings.HasSuffix(got, "register b, unregister b") || len(s.have) != 0 {
			t.Errorf("%s was told %s, and has %v", s.name, got, s.have)
		}
	}
	two.build = func(*belay.AgentConfig) error { panic("oops") }
	if _, err := belay.New(belaytest.Script(), &belay.Options{Name: "c", Extensions: all}); err == nil || !strings.Contains(err.Error(), `extension "two": it panicked: oops`) {
		t.Errorf("the error is %v", err)
	}
	if strings.Contains(one.log(), "register c") {
		t.Errorf("an agent that was not made is registered: %s", one.log())
	}
}

// SPEC E-05
func TestRegistry(t *testing.T) {
	t.Parallel()
	var r belay.Registry
	ext := &subsystem{name: "one"}
	opts := func(instructions string) *belay.Options {
		return &belay.Options{Name: "a", Instructions: instructions, Extensions: []belay.Extension{ext}}
	}
	first, err := r.Add(t.Context(), belaytest.Script(), opts("first"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Add(t.Context(), belaytest.Script(), opts("again")); !errors.Is(err, belay.ErrExists) {
		t.Errorf("adding twice: %v", err)
	}
	second, err := r.Replace(t.Context(), belaytest.Script(), opts("second"))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Lookup("a"); got != second || got == first {
		t.Error("the old one is still there")
	}
	if got := ext.log(); got != "register a, unregister a, register a" {
		t.Errorf("told: %s", got)
	}
	ext.refuse = errors.New("no room")
	if _, err := r.Replace(t.Context(), belaytest.Script(), opts("third")); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("the error is %v", err)
	}
	if got, _ := r.Lookup("a"); got != second {
		t.Error("the old one is gone though the new one was not made")
	}
	ext.refuse = nil
	if err := r.Remove(t.Context(), "b"); !errors.Is(err, belay.ErrNotFound) {
		t.Errorf("removing what is not there: %v", err)
	}
	if err := r.Close(t.Context()); err != nil || len(r.Names()) != 0 || len(ext.have) != 0 {
		t.Errorf("closing: %v, left %v, registered %v", err, r.Names(), ext.have)
	}
}

// fickle fails for some agents.
type fickle struct {
	subsystem
	visible func(name string) bool
	t       *testing.T
}

func (f *fickle) Register(ctx context.Context, agent belay.AgentConfig) error {
	if strings.HasSuffix(agent.Name, "3") {
		return errors.New("not this one")
	}
	if f.visible(agent.Name) {
		f.t.Errorf("%s is visible before it is registered", agent.Name)
	}
	return f.subsystem.Register(ctx, agent)
}

func (f *fickle) Unregister(ctx context.Context, agent belay.AgentConfig) error {
	if f.visible(agent.Name) {
		f.t.Errorf("%s is visible when it is unregistered", agent.Name)
	}
	return f.subsystem.Unregister(ctx, agent)
}

// SPEC E-05
func TestAHundredRegistrationsAtATime(t *testing.T) {
	t.Parallel()
	var r belay.Registry
	ext := &fickle{subsystem: subsystem{name: "one"}, t: t, visible: func(name string) bool { _, ok := r.Lookup(name); return ok }}
	late := &subsystem{name: "two"}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			name := fmt.Sprintf("agent-%d", i)
			_, err := r.Add(t.Context(), belaytest.Script(), &belay.Options{Name: name, Extensions: []belay.Extension{late, ext}})
			if fails := strings.HasSuffix(name, "3"); fails != (err != nil) {
				t.Errorf("%s: %v", name, err)
			}
			if i%2 == 0 && err == nil {
				if err := r.Remove(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := len(r.Names()); n != 40 || len(ext.have) != n || len(late.have) != n {
		t.Errorf("%d agents are there, %d and %d are registered: want 40 of each", n, len(ext.have), len(late.have))
	}
	if err := r.Close(t.Context()); err != nil || len(late.have) != 0 {
		t.Errorf("closing: %v, registered %v", err, late.have)
	}
}

// SPEC E-01
func TestAnExtensionWatches(t *testing.T) {
	t.Parallel()
	ext := &subsystem{name: "one", seen: make(chan belay.EventKind, 100)}
	agent := belaytest.New(t, belaytest.Script(belaytest.Says("hello")), &belay.Options{Extensions: []belay.Extension{ext}})
	agent.Say("hello")
	for kind := range ext.seen {
		if kind == belay.EventTurnEnd {
			break
		}
	}
}
