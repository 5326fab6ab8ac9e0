package hook_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/hook"
)

// SPEC H-05
func TestOrder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		nodes []node
		want  string
	}{
		{"by id if nothing else is declared", []node{{id: "c"}, {id: "a"}, {id: "b"}}, "a b c"},
		{"ids compare by bytes", []node{{id: "a"}, {id: "B"}, {id: "a-b"}, {id: "a.b"}, {id: "10"}, {id: "9"}, {id: "_"}}, "10 9 B _ a a-b a.b"},
		{"a prefix comes first", []node{{id: "ab"}, {id: "a"}}, "a ab"},
		{"the smaller priority comes first", []node{{id: "a", priority: 1}, {id: "b", priority: -1}, {id: "c"}}, "b c a"},
		{"after beats priority", []node{{id: "a", priority: -9, after: []string{"b"}}, {id: "b", priority: 9}}, "b a"},
		{"before beats priority", []node{{id: "a", priority: 9, before: []string{"b"}}, {id: "b", priority: -9}}, "a b"},
		{
			"the smallest of all ready subscriptions is next, whatever its level",
			[]node{{id: "a", priority: 1}, {id: "b", priority: 5}, {id: "c", priority: 2, after: []string{"a"}}},
			"a c b",
		},
		{
			"a subscription that waits for a late one does not delay the others",
			[]node{{id: "a", after: []string{"z"}}, {id: "m"}, {id: "z"}},
			"m z a",
		},
		{"rewriters come first", []node{{id: "a"}, {id: "z", rewrites: true}, {id: "b", priority: -5}}, "z b a"},
		{
			"rewriters are ordered among themselves",
			[]node{{id: "x", rewrites: true, after: []string{"y"}}, {id: "y", rewrites: true, priority: 3}, {id: "z", rewrites: true, priority: 1}},
			"z y x",
		},
		{
			"a rewriter that becomes ready comes before others that were ready earlier",
			[]node{{id: "a"}, {id: "y", rewrites: true, priority: 9}, {id: "z", rewrites: true, after: []string{"y"}}},
			"y z a",
		},
		{"a dependency that both sides declare counts once", []node{{id: "a", after: []string{"b"}}, {id: "b", before: []string{"a"}}}, "b a"},
		{"a dependency that is declared twice counts once", []node{{id: "a", after: []string{"b", "b"}}, {id: "b"}}, "b a"},
		{"the edges of a disabled subscription do not count", []node{{id: "a"}, {id: "b"}, {id: "c", disabled: true, after: []string{"a"}, before: []string{"ghost", "a"}}}, "a b"},
		{"extreme priorities", []node{{id: "a", priority: 1<<63 - 1}, {id: "b", priority: -1 << 63}}, "b a"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			for _, nodes := range [][]node{test.nodes, reversed(test.nodes)} {
				rt, err := installNodes(t, nodes)
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "plan", strings.Join(planOf(t, rt, rewritePhase), " "), test.want)
			}
		})
	}
}

// The order equals the order of a slow and simple reference. It does not depend on the
// order of registration.
//
// SPEC H-05, H-06
func TestOrderAgainstReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		nodes := drawNodes(rt)
		want, problems := referenceOrder(nodes)
		runtime, err := installNodes(rt, rapid.Permutation(nodes).Draw(rt, "registration"))
		if len(problems) > 0 {
			compareProblems(rt, nodes, err, problems)
			return
		}
		if err != nil {
			rt.Fatalf("install: %v", err)
		}
		plan, err := runtime.Plan(rewritePhase.Name())
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		levels := referenceLevels(nodes)
		edges := referenceEdges(nodes)
		for i, e := range plan.Entries {
			got = append(got, e.ID)
			if e.Position != i+1 || e.Level != levels[e.ID] {
				rt.Fatalf("%s: position %d, level %d; want %d, %d", e.ID, e.Position, e.Level, i+1, levels[e.ID])
			}
			for _, id := range want {
				if slices.Contains(e.After, id) != edges[[2]string{id, e.ID}] {
					rt.Fatalf("%s: its predecessors are said to be %v, %s is wrong", e.ID, e.After, id)
				}
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("plan: got %v, want %v", got, want)
		}
	})
}

// Installing subscriptions one by one gives the same plan as installing all at once.
//
// SPEC H-05
func TestOrderDoesNotDependOnHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		nodes := drawSoundNodes(rt)
		want, _ := referenceOrder(nodes)
		runtime, err := hook.NewRuntime(allPhases, nil)
		if err != nil {
			rt.Fatal(err)
		}
		// Install one node at a time, with its edges to the nodes that are already
		// installed. The later node of an edge gets the dependency.
		for i, n := range nodes {
			var after, before []string
			for e := range referenceEdges(nodes[:i+1]) {
				switch n.id {
				case e[1]:
					after = append(after, e[0])
				case e[0]:
					before = append(before, e[1])
				}
			}
			n.after, n.before = after, before
			if _, err := runtime.Install(n.subscription()); err != nil {
				rt.Fatal(err)
			}
		}
		plan, err := runtime.Plan(rewritePhase.Name())
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		for _, e := range plan.Entries {
			got = append(got, e.ID)
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("plan: got %v, want %v", got, want)
		}
	})
}

// SPEC H-06
func TestCycles(t *testing.T) {
	t.Parallel()
	ring := func(n int) []node {
		nodes := make([]node, n)
		for i := range nodes {
			nodes[i] = node{id: fmt.Sprintf("n%02d", (i*7+3)%n), before: []string{fmt.Sprintf("n%02d", ((i+1)*7+3)%n)}}
		}
		return nodes
	}
	fifty := make([]string, 50)
	for i := range fifty {
		fifty[i] = fmt.Sprintf("n%02d", i*7%50)
	}
	for _, test := range []struct {
		rule  string
		nodes []node
		want  []string
	}{
		{"two, each after the other", []node{{id: "b", after: []string{"a"}}, {id: "a", after: []string{"b"}}}, []string{"a", "b"}},
		{"two, by after and before", []node{{id: "a", after: []string{"b"}, before: []string{"b"}}, {id: "b"}}, []string{"a", "b"}},
		{
			"three, each before the next, from the smallest id",
			[]node{{id: "b", before: []string{"a"}}, {id: "a", before: []string{"c"}}, {id: "c", before: []string{"b"}}},
			[]string{"a", "c", "b"},
		},
		{
			"subscriptions that only wait for the cycle, or lead to it, are not members of it",
			[]node{
				{id: "a", before: []string{"m"}},
				{id: "m", before: []string{"n"}},
				{id: "n", before: []string{"m"}},
				{id: "b", after: []string{"n"}},
				{id: "c", after: []string{"b"}},
				{id: "d"},
			},
			[]string{"m", "n"},
		},
		{"fifty", ring(50), fifty},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			for _, nodes := range [][]node{test.nodes, reversed(test.nodes)} {
				_, err := installNodes(t, nodes)
				problems := installProblems(t, err)
				cycle, ok := errors.AsType[*hook.CycleError](problems[0])
				if len(problems) != 1 || !ok {
					t.Fatalf("got %v, want one *CycleError", err)
				}
				equal(t, "phase", cycle.Phase, "test.rewrite")
				same(t, "members", cycle.Members, test.want)
				if text := strings.Join(test.want, " -> ") + " -> " + test.want[0]; !strings.Contains(err.Error(), text) {
					t.Errorf("the error does not show the circle %s: %v", text, err)
				}
			}
		})
	}
}

// A cycle of one node is a dependency on itself, which has its own error.
//
// SPEC H-06
func TestCycleOfOneIsADependencyOnItself(t *testing.T) {
	t.Parallel()
	for _, n := range []node{{id: "a", after: []string{"a"}}, {id: "a", before: []string{"a"}}} {
		_, err := installNodes(t, []node{n})
		problems := installProblems(t, err)
		self, ok := errors.AsType[*hook.DependencyError](problems[0])
		if len(problems) != 1 || !ok || self.Subscription != "a" || self.Dependency != "a" || self.Phase != "test.rewrite" || n.after != nil != (self.Field == "after") {
			t.Errorf("%+v: got %v, want one *DependencyError", n, err)
		}
	}
}

// SPEC H-05, H-06
func TestChainOfAThousand(t *testing.T) {
	t.Parallel()
	nodes := make([]node, 1000)
	want := make([]string, 1000)
	for i := range nodes {
		want[i] = fmt.Sprintf("n%04d", 999-i)
		nodes[i] = node{id: want[i], priority: 1000 - i}
		if i > 0 {
			nodes[i].after = []string{want[i-1]}
		}
	}
	began := time.Now()
	rt, err := installNodes(t, nodes)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "plan", planOf(t, rt, rewritePhase), want)
	plan, _ := rt.Plan(rewritePhase.Name())
	equal(t, "level of the last", plan.Entries[999].Level, 999)
	nodes[0].after = []string{want[999]}
	_, err = installNodes(t, nodes)
	cycle, ok := errors.AsType[*hook.CycleError](err)
	if !ok || len(cycle.Members) != 1000 {
		t.Errorf("closing the circle: got %v, want a *CycleError with 1000 members", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

// FuzzOrder makes a graph from bytes and compares its plan with the reference.
//
// SPEC H-05, H-06
func FuzzOrder(f *testing.F) {
	f.Add([]byte{3, 0, 1, 2})
	f.Add([]byte("a chain, a circle, a fork"))
	f.Add([]byte{9, 1, 0x80, 0x41, 3, 7, 0xff, 0, 0, 5, 5, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		nodes := nodesOf(data)
		want, problems := referenceOrder(nodes)
		rt, err := installNodes(t, nodes)
		if len(problems) > 0 {
			compareProblems(t, nodes, err, problems)
			return
		}
		if err != nil {
			t.Fatalf("install: %v", err)
		}
		same(t, "plan", planOf(t, rt, rewritePhase), want)
	})
}
