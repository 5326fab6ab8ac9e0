package subagent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/subagent"
)

// An agent that is restricted to some subagents can list and call only those, with both
// tools. It does not matter whether the agent or a parent has the restriction.
//
// SPEC E-10, E-06
func TestAnAgentCallsOnlyTheSubagentsOfItsResources(t *testing.T) {
	t.Parallel()
	only := func(names ...string) map[string][]string {
		return map[string][]string{"subagents": append([]string{}, names...)}
	}
	everybody := []string{"adder", "asker", "writer"}
	for rule, test := range map[string]struct {
		own, parent map[string][]string
		want        []string
	}{
		"all, by default":       {nil, nil, everybody},
		"by name":               {only("writer"), nil, []string{"writer"}},
		"by a pattern":          {only("a*"), nil, []string{"adder", "asker"}},
		"none":                  {only(), nil, nil},
		"by its parent":         {nil, only("middle", "adder"), []string{"adder"}},
		"by both":               {only("a*"), only("middle", "asker", "writer"), []string{"asker"}},
		"by both, nothing left": {only("a*"), only("middle", "writer"), nil},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			var subagents []subagent.Subagent
			for _, name := range everybody {
				subagents = append(subagents, subagent.Subagent{Name: name, Description: "About " + name + ".", Factory: answers("I am " + name)})
			}
			var invokes, tasks []string
			for _, name := range everybody {
				invokes = append(invokes, name)
				tasks = append(tasks, fmt.Sprintf(`{"name":%q,"prompt":"go"}`, name))
			}
			steps := calls(invoke(invokes[0], "go"), invoke(invokes[1], "go"), invoke(invokes[2], "go"))
			model := script(steps, calls(call("delegate", `{"tasks":[`+strings.Join(tasks, ",")+`]}`)), says("done"))
			own := &belay.Options{Extensions: []belay.Extension{newExtension(t, &subagent.Options{Delegate: true}, subagents...)}, Resources: test.own, Store: memstore.New(nil)}
			if test.parent == nil {
				take(t, newAgent(t, model, own).Session("s").Run(t.Context(), "go"))
			} else {
				middle := subagent.Subagent{Name: "middle", Factory: subagent.Agent(model, own)}
				parent := newAgent(t, script(calls(invoke("middle", "go")), says("done")), &belay.Options{
					Extensions: []belay.Extension{newExtension(t, nil, append(subagents, middle)...)}, Resources: test.parent, Store: memstore.New(nil),
				})
				take(t, parent.Session("s").Run(t.Context(), "go"))
			}
			requests := model.Requests()
			var listed []string
			for _, d := range requests[0].Tools {
				for _, name := range everybody {
					if strings.Contains(d.Description, name) {
						listed = append(listed, name)
					}
				}
			}
			if !slices.Equal(listed, test.want) {
				t.Errorf("the tools list %q, want %q", listed, test.want)
			}
			for i, tool := range []string{"invoke_subagent", "delegate"} {
				text := strings.Join(results(requests[i+1].Messages), "\n")
				var ran []string
				for _, name := range everybody {
					if strings.Contains(text, "I am "+name) {
						ran = append(ran, name)
					}
					if !slices.Contains(test.want, name) && strings.Contains(text, "there are "+name) {
						t.Errorf("%s tells of %s: %s", tool, name, text)
					}
				}
				if !slices.Equal(ran, test.want) {
					t.Errorf("%s ran %q, want %q: %s", tool, ran, test.want, text)
				}
			}
		})
	}
}

// The error for an unknown name lists only the subagents that the agent may call.
//
// SPEC E-10
func TestAnErrorNamesOnlyTheSubagentsOfTheResources(t *testing.T) {
	t.Parallel()
	model := script(calls(invoke("writr", "go")), says("done"))
	agent := newAgent(t, model, &belay.Options{
		Extensions: []belay.Extension{newExtension(t, nil, subagent.Subagent{Name: "writer", Factory: answers("x")}, subagent.Subagent{Name: "reader", Factory: answers("x")})},
		Resources:  map[string][]string{"subagents": {"reader"}},
	})
	take(t, agent.Session("s").Run(t.Context(), "go"))
	if text := results(model.Requests()[1].Messages)[0]; !strings.Contains(text, `there is no subagent "writr": available are reader`) {
		t.Errorf("the result is %s", text)
	}
}

// A resumed turn keeps to the resources of its agent and of the agent's parents. The
// agent's resources at the time of the resume apply.
//
// SPEC E-10, S-10
func TestAResumedTurnKeepsToItsResources(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		before, own, parent map[string][]string // the resources of the child at first, of the child when it is resumed, and of the parent
		want                string              // which subagents run; empty if the turn cannot be resumed because the tool is gone
	}{
		"without restriction": {nil, nil, nil, "adder writer"},
		"by its own":          {nil, map[string][]string{"subagents": {"adder"}}, nil, "adder"},
		"by its parent's":     {nil, nil, map[string][]string{"subagents": {"middle", "writer"}}, "writer"},
		"wider than it was":   {map[string][]string{"subagents": {"adder"}}, nil, nil, "adder writer"},
		"by both, to nothing": {nil, map[string][]string{"subagents": {"adder"}}, map[string][]string{"subagents": {"middle", "writer"}}, ""},
		"to none by its own":  {nil, map[string][]string{"subagents": {}}, nil, ""},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			path := newFile(t)
			ask := belay.ToolPre.On("ask", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Ask("may it?"), nil }, &hook.Options{NoInherit: true})
			everybody := []subagent.Subagent{{Name: "adder", Factory: answers("I am adder")}, {Name: "writer", Factory: answers("I am writer")}}
			start := func(store belay.Store, own, parent map[string][]string) *belay.Agent {
				middle := subagent.Subagent{Name: "middle", Factory: subagent.Agent(script(calls(invoke("adder", "go"), invoke("writer", "go")), tells("middle")), &belay.Options{
					Extensions: []belay.Extension{newExtension(t, nil, everybody...)}, Resources: own, Hooks: []hook.Subscription{ask}, OnAsk: belay.AskPark,
				})}
				agent, err := belay.New(script(calls(invoke("middle", "go")), tells("main")), &belay.Options{
					Extensions: []belay.Extension{newExtension(t, nil, append(slices.Clone(everybody), middle)...)}, Resources: parent, Store: store, OnAsk: belay.AskPark,
				})
				if err != nil {
					t.Fatal(err)
				}
				return agent
			}
			store := openFile(t, path)
			agent := start(store, test.before, nil)
			h := take(t, agent.Session("s").Run(t.Context(), "go"))
			h.ended(t, belay.EndParked)
			if err := errors.Join(agent.Close(t.Context()), store.Close()); err != nil {
				t.Fatal(err)
			}
			agent = start(openFile(t, path), test.own, test.parent)
			t.Cleanup(func() { _ = agent.Close(context.Background()) })
			allow(t, agent, h)
			h = take(t, agent.Session("s").Resume(t.Context()))
			end := belay.EndTurn
			if test.want == "" {
				end = belay.EndParked
			}
			h.ended(t, end)
			var ran []string
			for _, one := range everybody {
				if strings.Contains(h.end.Text, "I am "+one.Name) {
					ran = append(ran, one.Name)
				}
			}
			if got := strings.Join(ran, " "); got != test.want {
				t.Errorf("these ran: %q, want %q: %s", got, test.want, h.end.Text)
			}
		})
	}
}
