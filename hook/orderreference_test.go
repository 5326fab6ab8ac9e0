package hook_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/hook"
)

// node has the fields of a subscription that affect the order.
type node struct {
	id                 string
	priority           int
	after, before      []string
	rewrites, disabled bool
}

func (n node) subscription() hook.Subscription {
	o := hook.Options{Priority: n.priority, After: n.after, Before: n.before, Disabled: n.disabled}
	if n.rewrites {
		o.Capabilities = hook.CanRewriteInput
	}
	return rewritePhase.On(n.id, says(edit{}), &o)
}

func reversed(nodes []node) []node {
	nodes = slices.Clone(nodes)
	slices.Reverse(nodes)
	return nodes
}

// elsewhere is the id of a subscription that exists only on another phase.
const elsewhere = "elsewhere"

// installNodes installs the nodes in one call, in a new runtime.
func installNodes(t rapid.TB, nodes []node) (*hook.Runtime, error) {
	rt, err := hook.NewRuntime(allPhases, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Install(gatePhase.On(elsewhere, func(context.Context, call) (verdict, error) { return verdict{}, nil }, nil)); err != nil {
		t.Fatal(err)
	}
	subs := make([]hook.Subscription, len(nodes))
	for i, n := range nodes {
		subs[i] = n.subscription()
	}
	_, err = rt.Install(subs...)
	return rt, err
}

// referenceOrder places one node after the other: always the smallest node whose
// predecessors are placed. If there are problems, it returns the problems instead. A cycle
// is the problem "cycle".
func referenceOrder(nodes []node) (order, problems []string) {
	if problems = referenceProblems(nodes); len(problems) > 0 {
		return nil, problems
	}
	var left []node
	for _, n := range nodes {
		if !n.disabled {
			left = append(left, n)
		}
	}
	edges := referenceEdges(nodes)
	for len(left) > 0 {
		var ready []node
		for _, n := range left {
			if !slices.ContainsFunc(left, func(other node) bool { return edges[[2]string{other.id, n.id}] }) {
				ready = append(ready, n)
			}
		}
		if len(ready) == 0 {
			return nil, []string{"cycle"}
		}
		next := slices.MinFunc(ready, func(a, b node) int {
			rank := func(n node) int {
				if n.rewrites {
					return 0
				}
				return 1
			}
			return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.priority, b.priority), slices.Compare([]byte(a.id), []byte(b.id)))
		})
		order = append(order, next.id)
		left = slices.DeleteFunc(left, func(n node) bool { return n.id == next.id })
	}
	return order, nil
}

// referenceEdges returns the edges between enabled nodes that exist.
func referenceEdges(nodes []node) map[[2]string]bool {
	enabled := map[string]bool{}
	for _, n := range nodes {
		enabled[n.id] = !n.disabled
	}
	edges := map[[2]string]bool{}
	for _, n := range nodes {
		if n.disabled {
			continue
		}
		for _, id := range n.after {
			if enabled[id] {
				edges[[2]string{id, n.id}] = true
			}
		}
		for _, id := range n.before {
			if enabled[id] {
				edges[[2]string{n.id, id}] = true
			}
		}
	}
	return edges
}

// referenceLevels returns the length of the longest chain before each node. It tries all
// chains.
func referenceLevels(nodes []node) map[string]int {
	edges := referenceEdges(nodes)
	levels := map[string]int{}
	var level func(id string) int
	level = func(id string) int {
		longest := 0
		for e := range edges {
			if e[1] == id {
				longest = max(longest, level(e[0])+1)
			}
		}
		return longest
	}
	for _, n := range nodes {
		levels[n.id] = level(n.id)
	}
	return levels
}

// referenceProblems returns the dependencies that are impossible, except for cycles.
func referenceProblems(nodes []node) []string {
	byID := map[string]node{}
	for _, n := range nodes {
		byID[n.id] = n
	}
	found := map[string]bool{}
	for _, n := range nodes {
		if n.disabled {
			continue
		}
		check := func(field, id string, first, then node) {
			other, known := byID[id]
			switch {
			case id == n.id:
				found[fmt.Sprintf("self %s %s", n.id, field)] = true
			case !known && id == elsewhere:
				found[fmt.Sprintf("phase %s %s %s", n.id, field, id)] = true
			case !known:
				found[fmt.Sprintf("missing %s %s %s", n.id, field, id)] = true
			case other.disabled:
				found[fmt.Sprintf("disabled %s %s %s", n.id, field, id)] = true
			case then.rewrites && !first.rewrites:
				found[fmt.Sprintf("rewriter %s %s", then.id, first.id)] = true
			}
		}
		for _, id := range n.after {
			check("after", id, byID[id], n)
		}
		for _, id := range n.before {
			check("before", id, n, byID[id])
		}
	}
	var problems []string
	for problem := range found {
		problems = append(problems, problem)
	}
	slices.Sort(problems)
	return problems
}

// dependencyProblem formats an error like the problems of the reference.
func dependencyProblem(p *hook.DependencyError) string {
	switch p.Kind {
	case "self":
		return fmt.Sprintf("self %s %s", p.Subscription, p.Field)
	case "other_phase":
		return fmt.Sprintf("phase %s %s %s", p.Subscription, p.Field, p.Dependency)
	default:
		return fmt.Sprintf("%s %s %s %s", p.Kind, p.Subscription, p.Field, p.Dependency)
	}
}

// compareProblems compares the problems of Install with the reference.
func compareProblems(t rapid.TB, nodes []node, err error, want []string) {
	t.Helper()
	var got []string
	for _, problem := range installProblems(t, err) {
		switch p := problem.(type) { //nolint:errorlint // Install wraps none of them
		case *hook.DependencyError:
			got = append(got, dependencyProblem(p))
		case *hook.RewriterOrderError:
			got = append(got, fmt.Sprintf("rewriter %s %s", p.Rewriter, p.After))
		case *hook.CycleError:
			got = append(got, "cycle")
			checkCycle(t, nodes, p.Members)
		default:
			t.Fatalf("an error of type %T: %v", problem, problem)
		}
	}
	slices.Sort(got)
	got = slices.Compact(got)
	if !slices.Contains(want, "cycle") { // A cycle can be reported although the reference stopped at another problem. checkCycle has checked it above.
		got = slices.DeleteFunc(got, func(problem string) bool { return problem == "cycle" })
	}
	if !slices.Equal(got, want) {
		t.Fatalf("problems: got %v, want %v", got, want)
	}
}

// checkCycle checks the members of a reported cycle: each has an edge to the next, and the
// smallest id is first.
func checkCycle(t rapid.TB, nodes []node, members []string) {
	t.Helper()
	edges := referenceEdges(nodes)
	for i, id := range members {
		if next := members[(i+1)%len(members)]; !edges[[2]string{id, next}] {
			t.Fatalf("cycle %v: %s is not ordered before %s", members, id, next)
		}
	}
	if len(members) < 2 || members[0] != slices.Min(members) {
		t.Fatalf("cycle %v: it does not begin at the smallest id", members)
	}
	sorted := slices.Sorted(slices.Values(members))
	if len(slices.Compact(sorted)) != len(members) {
		t.Fatalf("cycle %v: a member is there twice", members)
	}
}

var nodeIDs = []string{"a", "B", "a-b", "a.b", "ab", "10", "9", "_", "z", "Z:1", "a/b"}

// drawNodes draws any graph, with every kind of mistake.
func drawNodes(t *rapid.T) []node {
	if rapid.Bool().Draw(t, "sound") {
		return drawSoundNodes(t)
	}
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom(nodeIDs), 1, 7, rapid.ID[string]).Draw(t, "ids")
	edge := rapid.OneOf(rapid.SampledFrom(ids), rapid.SampledFrom(ids), rapid.SampledFrom([]string{"ghost", elsewhere, ids[0]}))
	nodes := make([]node, len(ids))
	for i, id := range ids {
		nodes[i] = node{
			id: id, priority: rapid.IntRange(-1, 1).Draw(t, "priority"),
			after:    rapid.SliceOfN(edge, 0, 1).Draw(t, "after"),
			before:   rapid.SliceOfN(edge, 0, 1).Draw(t, "before"),
			rewrites: rapid.IntRange(0, 4).Draw(t, "rewrites") == 0, disabled: rapid.IntRange(0, 5).Draw(t, "disabled") == 0,
		}
	}
	return nodes
}

// drawSoundNodes draws a graph without mistakes. All edges go forward in one random order,
// in which the rewriters come first.
func drawSoundNodes(t *rapid.T) []node {
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom(nodeIDs), 1, len(nodeIDs), rapid.ID[string]).Draw(t, "ids")
	rewriters := rapid.IntRange(0, len(ids)).Draw(t, "rewriters")
	nodes := make([]node, len(ids))
	for i, id := range ids {
		nodes[i] = node{id: id, priority: rapid.IntRange(-2, 2).Draw(t, "priority"), rewrites: i < rewriters}
		for j := range i {
			switch rapid.IntRange(0, 5).Draw(t, "edge") {
			case 0:
				nodes[i].after = append(nodes[i].after, ids[j])
			case 1:
				nodes[j].before = append(nodes[j].before, id)
			}
		}
	}
	return nodes
}

// nodesOf makes a graph from bytes.
func nodesOf(data []byte) []node {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	nodes := make([]node, 1+next()%len(nodeIDs))
	targets := append(slices.Clone(nodeIDs[:len(nodes)]), "ghost", elsewhere)
	for i := range nodes {
		b := next()
		nodes[i] = node{id: nodeIDs[i], priority: b%5 - 2, rewrites: b&0x40 != 0, disabled: b >= 0xf0}
		for range next() % 3 {
			nodes[i].after = append(nodes[i].after, targets[next()%len(targets)])
		}
		for range next() % 3 {
			nodes[i].before = append(nodes[i].before, targets[next()%len(targets)])
		}
	}
	return nodes
}
