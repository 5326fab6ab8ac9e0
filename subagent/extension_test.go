package subagent_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/subagent"
)

// SPEC S-01
func TestAddRefuses(t *testing.T) {
	t.Parallel()
	good := subagent.Subagent{Name: "good", Factory: answers("x")}
	for _, test := range []struct {
		rule string
		bad  subagent.Subagent
		want string
	}{
		{"a name that is empty", subagent.Subagent{Factory: answers("x")}, `subagent "": name: a name is 1 to 64`},
		{"a name with a space", subagent.Subagent{Name: "a b", Factory: answers("x")}, `subagent "a b": name`},
		{"a name with a slash", subagent.Subagent{Name: "a/b", Factory: answers("x")}, `subagent "a/b": name`},
		{"a name with a dot", subagent.Subagent{Name: "a.b", Factory: answers("x")}, `subagent "a.b": name`},
		{"a name that is too long", subagent.Subagent{Name: strings.Repeat("a", 65), Factory: answers("x")}, "name: a name is"},
		{"a name that is taken", subagent.Subagent{Name: "taken", Factory: answers("x")}, `subagent "taken": the name is already used`},
		{"a name that is given twice", good, `subagent "good": the name is already used`},
		{"no factory", subagent.Subagent{Name: "a"}, `subagent "a": the factory is nil`},
		{"a description that is no text", subagent.Subagent{Name: "a", Factory: answers("x"), Description: "\xff"}, "the description is not UTF-8"},
		{"an agent without a name", subagent.Subagent{Name: "a", Factory: answers("x"), Agents: []string{""}}, "agents: a name is empty"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			e := newExtension(t, nil, subagent.Subagent{Name: "taken", Factory: answers("x")})
			lease, err := e.Add(good, test.bad)
			if err == nil || lease != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
			if list := e.List(); len(list) != 1 {
				t.Errorf("there are %d subagents, want the one from before: all or none", len(list))
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := subagent.New(&subagent.Options{Parallel: -1}); err == nil {
		t.Error("a negative number of tasks is taken")
	}
	if _, err := subagent.New(&subagent.Options{Subagents: []subagent.Subagent{{Name: "x"}}}); err == nil || !strings.Contains(err.Error(), "factory") {
		t.Errorf("error = %v, want one about the factory", err)
	}
}

// SPEC S-01
func TestListAndLookup(t *testing.T) {
	t.Parallel()
	e, err := subagent.New(&subagent.Options{Subagents: []subagent.Subagent{{Name: "b", Factory: answers("b"), Agents: []string{"main"}}, {Name: "a", Factory: answers("a")}}})
	if err != nil {
		t.Fatal(err)
	}
	list := e.List()
	if len(list) != 2 || list[0].Name != "a" || list[1].Name != "b" {
		t.Fatalf("list = %+v", list)
	}
	list[1].Agents[0] = "other" // list is a copy
	if s, ok := e.Lookup("b"); !ok || s.Agents[0] != "main" {
		t.Errorf("lookup = %+v, %t", s, ok)
	}
	if _, ok := e.Lookup("c"); ok {
		t.Error("there is a subagent that nobody added")
	}
}

// SPEC S-01: subagents can be added and removed while other goroutines request the tools.
func TestTheSetIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	e := newExtension(t, nil)
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			for range 50 {
				lease, err := e.Add(subagent.Subagent{Name: name, Factory: answers(name)})
				if err != nil {
					t.Error(err)
					return
				}
				if tools := e.StepTools("main"); len(tools) != 1 {
					t.Errorf("there are %d tools while there are subagents", len(tools))
				}
				e.List()
				if err := lease.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if tools := e.StepTools("main"); tools != nil {
		t.Errorf("tools = %v when all are gone", tools)
	}
}

// A call outside a turn fails, because a subagent needs a parent turn.
func TestACallOutsideATurn(t *testing.T) {
	t.Parallel()
	e := newExtension(t, &subagent.Options{Delegate: true}, subagent.Subagent{Name: "a", Factory: answers("a")})
	for _, test := range []struct{ rule, input string }{{"invoke", `{"name":"a","prompt":"x"}`}, {"delegate", `{"tasks":[{"name":"a","prompt":"x"}]}`}} {
		for _, tool := range e.StepTools("main") {
			if !strings.HasPrefix(tool.Declaration().Name, test.rule) {
				continue
			}
			r, err := tool.Call(t.Context(), &belay.Invocation{ID: "1", Input: []byte(test.input), Agent: "main"})
			if err != nil || !r.IsError || !strings.Contains(r.Text, "outside") {
				t.Errorf("%s: %+v, %v", test.rule, r, err)
			}
		}
	}
}
