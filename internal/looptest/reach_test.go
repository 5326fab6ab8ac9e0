package looptest_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
)

// shelf is an extension with resources called things. It has a tool for each thing and
// handles the typed names of things. Its hook notes which things a turn may use.
type shelf struct {
	things []string
	tools  map[string]belay.Tool
	seen   *diary
	panics bool
}

func newShelf(seen *diary, things ...string) *shelf {
	s := &shelf{things: things, tools: make(map[string]belay.Tool), seen: seen}
	for _, thing := range things {
		s.tools[thing] = belaytest.NewTool("take_"+thing, "taken", "taken", "taken", "taken")
	}
	return s
}

func (*shelf) Name() string        { return "shelf" }
func (*shelf) Resources() []string { return []string{"things"} }

func (s *shelf) For(reach belay.Reach) belay.Extension {
	if s.panics {
		panic("oops")
	}
	return &shelfFor{s, reach}
}

func (s *shelf) StepTools(string) []belay.Tool                { panic("asked without a reach") }
func (s *shelf) Binds(string, string) bool                    { panic("asked without a reach") }
func (s *shelf) TypedNames(string) []belay.TypedName          { panic("asked without a reach") }
func (s *shelf) allowed(reach belay.Reach, thing string) bool { return reach.Allows("things", thing) }

func (s *shelf) Expand(_ context.Context, in belay.Submission) (belay.Expansion, error) {
	for _, name := range in.Names {
		s.seen.notef("typed %s", name)
	}
	return belay.Expansion{}, nil
}

func (s *shelf) Hooks() []hook.Subscription {
	return []hook.Subscription{belay.TurnPrePromptCompile.On("shelf", func(ctx context.Context, _ belay.TurnSoFar) (belay.PromptSections, error) {
		for _, thing := range s.things {
			if s.allowed(belay.ReachOf(ctx), thing) {
				s.seen.notef("hook %s", thing)
			}
		}
		return belay.PromptSections{}, nil
	}, &hook.Options{NoInherit: true})}
}

// shelfFor is the part of a shelf that a reach allows.
type shelfFor struct {
	*shelf
	reach belay.Reach
}

func (s *shelfFor) StepTools(string) (tools []belay.Tool) {
	for _, thing := range s.things {
		if s.allowed(s.reach, thing) {
			tools = append(tools, s.tools[thing])
		}
	}
	return tools
}

func (s *shelfFor) Binds(_, name string) bool {
	return slices.Contains(s.things, name) && s.allowed(s.reach, name)
}

func (s *shelfFor) TypedNames(string) (names []belay.TypedName) {
	for _, thing := range s.things {
		if s.allowed(s.reach, thing) {
			names = append(names, belay.TypedName{Name: thing})
		}
	}
	return names
}

var (
	_ belay.ResourceExtension = (*shelf)(nil)
	_ belay.StepToolExtension = (*shelf)(nil)
	_ belay.NameExtension     = (*shelf)(nil)
	_ belay.StepToolExtension = (*shelfFor)(nil)
	_ belay.NameExtension     = (*shelfFor)(nil)
)

// observer is an extension that has only hooks.
type observer struct{}

func (observer) Name() string               { return "observer" }
func (observer) Hooks() []hook.Subscription { return nil }

// New rejects a kind of resources that no extension enforces. Otherwise the prompt would
// name a restriction that does not exist.
//
// SPEC E-10
func TestNewRefusesResourcesThatNobodyEnforces(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		extensions []belay.Extension
		kind       string
		want       string // part of the error; empty: no error
	}{
		"no extension at all":                {nil, "skills", `resources: no extension enforces the kind "skills": known kinds are none`},
		"a typing error":                     {[]belay.Extension{newShelf(nil), answersTo{"b"}}, "tings", `resources: no extension enforces the kind "tings" (did you mean "things"?): known kinds are "answers", "things"`},
		"an extension with hooks alone":      {[]belay.Extension{observer{}}, "observer", `no extension enforces the kind "observer": known kinds are none`},
		"the name of one that names kinds":   {[]belay.Extension{newShelf(nil)}, "shelf", `no extension enforces the kind "shelf": known kinds are "things"`},
		"a kind that an extension names":     {[]belay.Extension{newShelf(nil)}, "things", ""},
		"an extension with tools":            {[]belay.Extension{&subsystem{name: "x"}}, "x", ""},
		"an extension with step tools":       {[]belay.Extension{&stepping{name: "x"}}, "x", ""},
		"an extension that narrows":          {[]belay.Extension{&narrower{subsystem{name: "x"}}}, "x", ""},
		"an extension that answers to names": {[]belay.Extension{answersTo{"b"}}, "answers", ""},
	} {
		for _, allowed := range [][]string{{"a"}, {}, nil} {
			_, err := belay.New(belaytest.Script(), &belay.Options{Extensions: test.extensions, Resources: map[string][]string{test.kind: allowed}})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s: the error is %v, want %q", rule, err, test.want)
			}
		}
	}
}

// A restriction of an agent applies to its tools, to typed names, to hooks and to its
// subagents. It does not matter whether the agent itself or a parent has the restriction.
//
// SPEC E-10, E-06
func TestResourcesHoldForEverythingAnExtensionBrings(t *testing.T) {
	t.Parallel()
	only := func(names ...string) map[string][]string {
		return map[string][]string{"things": append([]string{}, names...)}
	}
	for rule, test := range map[string]struct {
		own, parent, above map[string][]string
		want               []string
	}{
		"by nobody":                   {nil, nil, nil, []string{"cup", "jar", "jug"}},
		"by itself":                   {only("jug"), nil, nil, []string{"jug"}},
		"by itself, with a pattern":   {only("j*"), nil, nil, []string{"jar", "jug"}},
		"by itself, to nothing":       {only(), nil, nil, nil},
		"by its parent":               {nil, only("jug"), nil, []string{"jug"}},
		"by its parent, to nothing":   {nil, only(), nil, nil},
		"by an agent further above":   {nil, nil, only("cup"), []string{"cup"}},
		"by all, each in its own way": {only("j*"), only("jug", "cup"), only("*"), []string{"jug"}},
		"by two, with nothing left":   {only("jar"), nil, only("cup"), nil},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			var seen diary
			child, model := newAgent(t, &belay.Options{Name: "child", Extensions: []belay.Extension{newShelf(&seen, "cup", "jar", "jug")}, Resources: test.own}, calls("take_cup", "take_jar", "take_jug"))
			var other diary // what the shelves of the parents note
			run := func(ctx context.Context, id, text string) {
				takeTurn(t, child.Session(id).Run(ctx, text), belay.EndTurn)
			}
			parent, _ := newAgent(t, &belay.Options{
				Name: "parent", Tools: []belay.Tool{childTyping("child", child, "/cup /jar /jug")}, Extensions: []belay.Extension{newShelf(&other, "cup", "jar", "jug")}, Resources: test.parent,
			}, calls("child"))
			above, _ := newAgent(t, &belay.Options{
				Name: "above", Tools: []belay.Tool{childOf("parent", parent)}, Extensions: []belay.Extension{newShelf(&other, "cup", "jar", "jug")}, Resources: test.above,
			}, calls("parent"))
			if test.parent == nil && test.above == nil {
				run(t.Context(), "s", "/cup /jar /jug")
			} else {
				takeTurn(t, above.Session("s").Run(t.Context(), "go"), belay.EndTurn)
			}
			var typed, hooked, offered, ran []string
			for _, entry := range seen.all() {
				if name, ok := strings.CutPrefix(entry, "typed "); ok {
					typed = append(typed, name)
				} else {
					hooked = append(hooked, strings.TrimPrefix(entry, "hook "))
				}
			}
			requests := model.Requests()
			for _, d := range requests[0].Tools {
				offered = append(offered, strings.TrimPrefix(d.Name, "take_"))
			}
			for _, m := range requests[1].Messages {
				for _, p := range m.Parts {
					if p.Result != nil && !p.Result.IsError {
						ran = append(ran, strings.TrimPrefix(p.Result.Tool, "take_"))
					}
				}
			}
			for what, got := range map[string][]string{"what is typed": typed, "what a hook sees": hooked, "what is offered": offered, "what ran": ran} {
				if !slices.Equal(got, test.want) {
					t.Errorf("%s: %q, want %q", what, got, test.want)
				}
			}
			var listed []string
			for _, n := range child.TypedNames() {
				listed = append(listed, n.Name)
			}
			if test.parent == nil && test.above == nil && !slices.Equal(listed, test.want) {
				t.Errorf("the typed names are %q, want %q", listed, test.want)
			}
		})
	}
}

// childTyping returns a tool that runs a turn of an agent with the given text.
func childTyping(name string, agent *belay.Agent, text string) belay.Tool {
	return anyTool(name, func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
		turn, err := call.Controls().Child(ctx, belay.Child{Name: name, Prompt: text}, func(ctx context.Context) iter.Seq2[belay.Event, error] {
			return agent.Session(call.Session+"/"+name).Run(ctx, text)
		})
		if err != nil {
			return belay.Result{}, fmt.Errorf("child: %w", err)
		}
		return belay.Result{Text: turn.Text}, nil
	}, nil)
}

// A restriction of a parent applies only while the agent is a child of that parent, and
// not under its next parent.
//
// SPEC E-10
func TestAParentsResourcesHoldForItsOwnTasksAlone(t *testing.T) {
	t.Parallel()
	var seen diary
	child, model := newAgent(t, &belay.Options{Name: "child", Extensions: []belay.Extension{newShelf(&seen, "cup", "jug")}}, says("one"), says("two"), says("three"), says("four"))
	parent := func(resources map[string][]string) *belay.Agent {
		agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{childOf("child", child)}, Extensions: []belay.Extension{newShelf(&diary{}, "cup", "jug")}, Resources: resources}, calls("child"))
		return agent
	}
	narrow, wide := parent(map[string][]string{"things": {"jug"}}), parent(nil)
	takeTurn(t, narrow.Session("a").Run(t.Context(), "go"), belay.EndTurn)
	takeTurn(t, wide.Session("b").Run(t.Context(), "go"), belay.EndTurn)
	takeTurn(t, child.Session("c").Run(t.Context(), "go"), belay.EndTurn)
	var offered []string
	for _, r := range model.Requests() {
		var names []string
		for _, d := range r.Tools {
			names = append(names, d.Name)
		}
		offered = append(offered, strings.Join(names, " "))
	}
	if want := []string{"take_jug", "take_cup take_jug", "take_cup take_jug"}; !slices.Equal(offered, want) {
		t.Errorf("the child is offered %q, want %q", offered, want)
	}
}

// If an extension does not implement ResourceExtension, the loop itself enforces
// Options.Resources for the extension's tools and typed names.
//
// SPEC E-10, E-06
func TestTheLoopKeepsNamesThatUsersTypeToTheResources(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		own, parent map[string][]string
		want        []string
	}{
		"all":           {nil, nil, []string{"one", "two"}},
		"some":          {map[string][]string{"names": {"t*"}}, nil, []string{"two"}},
		"none":          {map[string][]string{"names": {}}, nil, nil},
		"by its parent": {nil, map[string][]string{"names": {"one"}}, []string{"one"}},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			var typed diary
			child, _ := newAgent(t, &belay.Options{Extensions: []belay.Extension{names{[]string{"one", "two"}, &typed}}, Resources: test.own})
			parent, _ := newAgent(t, &belay.Options{
				Tools: []belay.Tool{childTyping("child", child, "/one /two")}, Extensions: []belay.Extension{names{[]string{"one", "two"}, &diary{}}}, Resources: test.parent,
			}, calls("child"))
			takeTurn(t, parent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
			var got []string
			for _, entry := range typed.all() {
				name, _, _ := strings.Cut(strings.TrimPrefix(entry, "skill "), ":")
				got = append(got, name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the extension answers to %q, want %q", got, test.want)
			}
		})
	}
}

// If an extension panics in its For method, it adds nothing, and the process continues.
//
// SPEC E-10, E-01
func TestAnExtensionThatPanicsOverAReach(t *testing.T) {
	t.Parallel()
	var seen diary
	s := newShelf(&seen, "jug")
	agent, model := newAgent(t, &belay.Options{Extensions: []belay.Extension{s}}, says("one"))
	s.panics = true
	if _, err := agent.Session("s").Turn(t.Context(), "/jug"); err == nil || !strings.Contains(err.Error(), `extension "shelf": it panicked: oops`) {
		t.Errorf("the error is %v", err)
	}
	if n := len(model.Requests()); n > 0 {
		t.Errorf("the model was asked %d times", n)
	}
	if names := agent.TypedNames(); len(names) > 0 {
		t.Errorf("users can type %v", names)
	}
	if _, err := belay.New(belaytest.Script(), &belay.Options{Extensions: []belay.Extension{s}}); err == nil || !strings.Contains(err.Error(), `extension "shelf": it panicked: oops`) {
		t.Errorf("New: the error is %v", err)
	}
}
