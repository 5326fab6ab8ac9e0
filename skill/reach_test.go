package skill_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/skill"
)

// house returns a catalog with three skills of each kind: one, two and three.
func house(t *testing.T) *skill.Catalog {
	t.Helper()
	var skills []skill.Skill
	for _, n := range []string{"one", "two", "three"} {
		skills = append(
			skills,
			skill.Skill{Name: "read-" + n, ID: "id-read-" + n, Description: "About " + n + ".", Body: "The text of read-" + n + "."},
			skill.Skill{Name: "call-" + n, ID: "id-call-" + n, Description: "About " + n + ".", Handler: computed("The answer of call-" + n + "."), Exposed: true},
			skill.Skill{Name: "trig-" + n, ID: "id-trig-" + n, Description: "About " + n + ".", Body: "The rule of trig-" + n + ".", Triggers: []skill.Trigger{{Pattern: "task"}}, AllowedTools: []string{"look-" + n}},
		)
	}
	return catalogOf(t, skills...)
}

// numbers are the suffixes of the skills of each kind in house.
var numbers = []string{"one", "two", "three"}

// turnBelow runs a turn of an agent that other agents started, all with skills. The first
// element of resources is for the agent itself, the next for its parent, and so on.
// turnBelow returns the agent's model requests.
func turnBelow(t *testing.T, e *skill.Extension, text string, steps []scripted.Step, resources ...map[string][]string) []belay.Request {
	t.Helper()
	var run func(ctx context.Context) iter.Seq2[belay.Event, error]
	var first *scripted.Model
	for i, r := range resources {
		opts := &belay.Options{Name: fmt.Sprint("agent", i), Extensions: []belay.Extension{e}, Resources: r}
		said, model := text, scripted.New(append(slices.Clone(steps), belaytest.Says("done")), nil)
		if below := run; below != nil {
			said, model = "go", scripted.New([]scripted.Step{belaytest.Calls("down", `{}`), belaytest.Says("done")}, nil)
			opts.Tools = []belay.Tool{belay.NewRawTool(belay.ToolDeclaration{Name: "down"}, func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
				_, err := call.Controls().Child(ctx, belay.Child{Name: fmt.Sprint("child", i), Prompt: text}, below)
				return belay.Result{Text: "done"}, err
			}, nil)}
		} else {
			first = model
		}
		agent, err := belay.New(model, opts)
		if err != nil {
			t.Fatal(err)
		}
		run = func(ctx context.Context) iter.Seq2[belay.Event, error] { return agent.Session("s").Run(ctx, said) }
	}
	for event, err := range run(t.Context()) {
		if err != nil || event.Kind == belay.EventToolUseResult && event.Call.Tool == "down" && event.Result.IsError {
			t.Fatalf("%+v: %v", event, err)
		}
	}
	return first.Requests()
}

// ways returns, for each way to use a skill, the skills that a turn can use.
func ways(t *testing.T, e *skill.Extension, resources ...map[string][]string) map[string][]string {
	t.Helper()
	got := make(map[string][]string)
	take := func(text string, steps ...scripted.Step) []belay.Request {
		return turnBelow(t, e, text, steps, resources...)
	}
	each := func(way string, shows func(n string) bool) {
		got[way] = slices.DeleteFunc(slices.Clone(numbers), func(n string) bool { return !shows(n) })
	}
	request := take("do it")[0]
	for _, list := range []struct{ tool, form string }{{skill.ReadTool, "read"}, {skill.ReadTool, "trig"}, {skill.InvokeTool, "call"}} {
		text, _ := declared(&request, list.tool)
		each(list.tool+" lists "+list.form, func(n string) bool { return strings.Contains(text, `"`+list.form+"-"+n+`"`) })
	}
	for _, by := range []string{"", "id-"} {
		for _, way := range []struct{ tool, form, text string }{{skill.ReadTool, "read", "The text of "}, {skill.ReadTool, "trig", "The rule of "}, {skill.InvokeTool, "call", "The answer of "}} {
			var step scripted.Step
			typed := ""
			for _, n := range numbers {
				step.Calls = append(step.Calls, scripted.Call{Tool: way.tool, Input: map[string]string{"name": by + way.form + "-" + n}})
				typed += "/" + by + way.form + "-" + n + " "
			}
			results := wire(t, &take("do it", step)[1])
			each(way.tool+" "+by+way.form, func(n string) bool { return strings.Contains(results, way.text+way.form+"-"+n+".") })
			front := strings.Join(injected(take(typed)[0].Messages), "\n")
			each("/"+by+way.form, func(n string) bool { return strings.Contains(front, way.text+way.form+"-"+n+".") })
		}
	}
	system := take("a task")[0].System
	each("a trigger", func(n string) bool { return strings.Contains(system, "The rule of trig-"+n+".") })
	system = take("skill:id-read-one skill:id-read-two skill:id-read-three")[0].System
	each("skill:ID", func(n string) bool { return strings.Contains(system, "The text of read-"+n+".") })
	return got
}

// An agent that is restricted to some skills can list, read, invoke, type and activate
// only those. It does not matter whether the agent or a parent has the restriction.
//
// SPEC E-10, E-06
func TestAnAgentUsesOnlyTheSkillsOfItsResources(t *testing.T) {
	t.Parallel()
	only := func(names ...string) map[string][]string {
		return map[string][]string{"skills": append([]string{}, names...)}
	}
	for rule, test := range map[string]struct {
		resources []map[string][]string // of the agent, then of its parents
		want      []string
	}{
		"all, by default":              {[]map[string][]string{nil}, numbers},
		"by name":                      {[]map[string][]string{only("read-two", "call-two", "trig-two")}, []string{"two"}},
		"by id":                        {[]map[string][]string{only("id-read-two", "id-call-two", "id-trig-two")}, []string{"two"}},
		"by a pattern":                 {[]map[string][]string{only("*-two")}, []string{"two"}},
		"none":                         {[]map[string][]string{only()}, nil},
		"by its parent":                {[]map[string][]string{nil, only("*-two")}, []string{"two"}},
		"by an agent further above":    {[]map[string][]string{nil, nil, only("*-two")}, []string{"two"}},
		"by all of them":               {[]map[string][]string{only("*-t[wh]*"), only("*-two", "*-one"), only("*")}, []string{"two"}},
		"to none by its parent":        {[]map[string][]string{only("*"), only()}, nil},
		"a parent without restriction": {[]map[string][]string{only("*-two"), nil}, []string{"two"}},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			got := ways(t, extensionOf(t, house(t), nil), test.resources...)
			if len(got) != 17 {
				t.Errorf("%d ways were tried, want 17", len(got))
			}
			for way, skills := range got {
				if !slices.Equal(skills, test.want) {
					t.Errorf("%s: %q, want %q", way, skills, test.want)
				}
			}
		})
	}
}

// A restricted agent sees no names of other skills, in lists or in errors. If a user
// types the name of such a skill, the text stays unchanged.
//
// SPEC E-10
func TestARestrictedAgentIsToldOfNoOtherSkill(t *testing.T) {
	t.Parallel()
	e := extensionOf(t, house(t), nil)
	for rule, allowed := range map[string][]string{"some": {"read-two", "call-two"}, "none": {}} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			agent := belaytest.New(t, belaytest.Script(
				belaytest.Calls("read_skill", `{"name":"read-on"}`, scripted.Call{Tool: "invoke_skill", Input: `{"name":"call-on"}`}), belaytest.Says("done"),
			), &belay.Options{Extensions: []belay.Extension{e}, Resources: map[string][]string{"skills": allowed}})
			turn := agent.Say("look at /read-one and the task")
			if text := wire(t, &turn.Requests[0]); !strings.Contains(text, "look at /read-one and the task") || strings.Contains(text, "[invoked_") {
				t.Errorf("the message does not stay as it was typed: %s", text)
			}
			for i := range turn.Requests {
				text := strings.ReplaceAll(wire(t, &turn.Requests[i]), "look at /read-one and the task", "")
				for _, other := range []string{"read-one", "call-one", "trig-one", "trig-two", "About one"} {
					if strings.Contains(text, other) {
						t.Errorf("request %d tells of %s: %s", i+1, other, text)
					}
				}
			}
			_, reads := declared(&turn.Requests[0], skill.ReadTool)
			if want := len(allowed) > 0; reads != want {
				t.Errorf("the tool is there: %v, want %v", reads, want)
			}
			var typed []string
			for _, n := range agent.TypedNames() {
				typed = append(typed, n.Name)
			}
			slices.Sort(typed)
			want := slices.Sorted(slices.Values(allowed))
			if !slices.Equal(typed, want) {
				t.Errorf("users can type %q, want %q", typed, want)
			}
		})
	}
}

// A skill that an agent must not use cannot be active, so it limits no tools.
//
// SPEC E-10, K-10
func TestASkillOutOfReachLimitsNoTools(t *testing.T) {
	t.Parallel()
	e := extensionOf(t, house(t), &skill.Options{EnforceAllowedTools: true})
	for rule, test := range map[string]struct {
		allowed []string
		text    string
		denied  bool
	}{
		"one that it may use":     {[]string{"trig-one"}, "a task", true},
		"one that it may not use": {[]string{"read-one"}, "a task", false},
		"one that it types":       {[]string{"trig-one"}, "/trig-one", true},
		"one that it cannot type": {[]string{"read-one"}, "/trig-one", false},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			agent := belaytest.New(t, belaytest.Script(belaytest.Calls("write", `{}`), belaytest.Says("done")), &belay.Options{
				Tools: []belay.Tool{belaytest.NewTool("write", "ok")}, Extensions: []belay.Extension{e}, Resources: map[string][]string{"skills": test.allowed},
			})
			if call := agent.Say(test.text).Calls()[0]; call.Result.IsError != test.denied {
				t.Errorf("the call gave %+v", call.Result)
			}
		})
	}
}

// Two agents that share an extension can have different skills.
//
// SPEC E-10
func TestAgentsOfOneNameHaveTheirOwnSkills(t *testing.T) {
	t.Parallel()
	e := extensionOf(t, house(t), nil)
	list := func(allowed ...string) string {
		opts := &belay.Options{Extensions: []belay.Extension{e}}
		if allowed != nil {
			opts.Resources = map[string][]string{"skills": allowed}
		}
		text, _ := declared(&belaytest.New(t, belaytest.Script(belaytest.Says("done")), opts).Say("go").Requests[0], skill.ReadTool)
		return text
	}
	for range 2 {
		if one, two, all := list("read-one"), list("read-two"), list(); strings.Contains(one, "read-two") || strings.Contains(two, "read-one") || !strings.Contains(all, "read-one") || !strings.Contains(all, "read-two") {
			t.Errorf("the lists are\n%s\n%s\n%s", one, two, all)
		}
	}
}
