package hook

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay/internal/near"
)

// phasePlan is the resolved order of one phase. Install compiles it, and dispatches use it.
// A phasePlan never changes.
type phasePlan struct {
	core *phaseCore
	slow bool // an entry is slow: see Phase.Slow
	all  *members
	// order holds the enabled members in plan order.
	order []*installed
	// level has, for each member of order, the length of the longest chain of dependencies
	// before it.
	level []int32
	// preds has, for each member of order, the positions of its direct predecessors.
	preds adjacency
	// sequence is the order of execution. Its values are positions in order.
	sequence []int32
	// turn has, for each member of all.list, its index in sequence, or -1 if the member is
	// disabled.
	turn   []int32
	stages []stage
	// rewriters is the number of rewriters. They are at the start of sequence, and no stage
	// contains both rewriters and other handlers.
	rewriters int
	// entries are the enabled members in order of execution, in the form that a dispatch uses.
	entries []entry
	widest  int       // the maximum number of handlers in a stage that overlaps
	crews   sync.Pool // of *crew
}

// stage is the part [from, to) of a plan's sequence. Its handlers run inline one after the
// other or, if overlap is true, in parallel.
type stage struct {
	from, to int
	overlap  bool
}

// orderPhase resolves the order of the members of one phase. elsewhere returns the names of
// the phases that have a subscription with the given id. If loose is not nil, it selects
// members whose dependencies are ignored.
func orderPhase(core *phaseCore, all *members, elsewhere func(id string) []string, loose func(id string) bool) (*phasePlan, []error) {
	g := newGraph(core, all)
	g.link(elsewhere, loose)
	plan, cycle := g.plan() // plan uses the valid edges, so that one call reports a cycle and the other problems
	if g.problems = append(g.problems, cycle...); len(g.problems) > 0 {
		return nil, g.problems
	}
	return plan, nil
}

// place is the sort key of a member: rewriters first, then (priority, id). It copies the
// values, because sorting ten thousand members through pointers would mostly wait for
// memory.
type place struct {
	follows  bool  // the member does not rewrite
	member   int32 // index in the list of members
	priority int
	id       string
}

func comparePlace(a, b place) int {
	switch {
	case a.follows != b.follows:
		if b.follows {
			return -1
		}
		return 1
	case a.priority != b.priority:
		return cmp.Compare(a.priority, b.priority)
	default:
		return compareBytes(a.id, b.id)
	}
}

// graph holds the enabled members, sorted by place, and the edges between them.
type graph struct {
	core     *phaseCore
	all      *members
	nodes    []*installed
	node     []int32 // for each member of all.list, its index in nodes, or -1 if the member is disabled
	edges    []edge
	preds    adjacency
	succs    adjacency
	problems []error
}

type edge struct{ from, to int32 }

// adjacency holds the neighbours of all nodes in one block of memory. If a dependency is
// declared twice, the neighbour is there twice, which does no harm.
type adjacency struct {
	start []int32
	nodes []int32
}

func (a adjacency) of(i int) []int32 { return a.nodes[a.start[i]:a.start[i+1]] }

// counts returns how many neighbours each node has.
func (a adjacency) counts() []int32 {
	counts := make([]int32, len(a.start)-1)
	for i := range counts {
		counts[i] = a.start[i+1] - a.start[i]
	}
	return counts
}

// newAdjacency groups the edges by key and keeps the value of each edge.
func newAdjacency(n int, edges []edge, key, value func(edge) int32) adjacency {
	a := adjacency{make([]int32, n+1), make([]int32, len(edges))}
	for _, e := range edges {
		a.start[key(e)]++
	}
	for i := range n {
		a.start[i+1] += a.start[i]
	}
	for _, e := range edges { // start[k] is the end of the group, and moves down to its beginning
		k := key(e)
		a.start[k]--
		a.nodes[a.start[k]] = value(e)
	}
	return a
}

func newGraph(core *phaseCore, all *members) *graph {
	g := &graph{core: core, all: all, node: make([]int32, len(all.list))}
	places := make([]place, 0, len(all.list))
	for k, e := range all.list {
		g.node[k] = -1
		if !e.disabled {
			places = append(places, place{!e.rewrites, int32(k), e.priority, e.id})
		}
	}
	slices.SortFunc(places, comparePlace)
	g.nodes = make([]*installed, len(places))
	for i := range places {
		k := places[i].member
		g.nodes[i] = all.list[k]
		g.node[k] = int32(i)
	}
	return g
}

// link makes edges from After and Before. It reads the members in memory order, which is
// fast, but reports problems in the order of the nodes.
func (g *graph) link(elsewhere func(id string) []string, loose func(id string) bool) {
	g.edges = make([]edge, 0, 2*len(g.nodes)) // an estimate
	var faulty []int32
	for k, e := range g.all.list {
		i := g.node[k]
		if i < 0 || loose != nil && loose(e.sub.id) {
			continue
		}
		sound := true
		for _, id := range e.sub.opts.After {
			sound = g.edge(g.find(id), i) && sound
		}
		for _, id := range e.sub.opts.Before {
			sound = g.edge(i, g.find(id)) && sound
		}
		if !sound {
			faulty = append(faulty, i)
		}
	}
	slices.Sort(faulty)
	for _, i := range faulty {
		g.report(g.nodes[i], elsewhere)
	}
	from, to := func(e edge) int32 { return e.from }, func(e edge) int32 { return e.to }
	g.preds = newAdjacency(len(g.nodes), g.edges, to, from)
	g.succs = newAdjacency(len(g.nodes), g.edges, from, to)
}

// find returns the node of an enabled member, or -1.
func (g *graph) find(id string) int32 {
	if k, ok := g.all.index[id]; ok {
		return g.node[k]
	}
	return -1
}

// edge adds the edge from-to if it is allowed, and reports whether it is.
func (g *graph) edge(from, to int32) bool {
	if from < 0 || to < 0 || from == to || !mayPrecede(g.nodes[from], g.nodes[to]) {
		return false
	}
	g.edges = append(g.edges, edge{from, to})
	return true
}

// mayPrecede reports whether first may run before then: rewriters run before other
// handlers, and background work runs last.
func mayPrecede(first, then *installed) bool {
	return (first.rewrites || !then.rewrites) && (!first.background || then.background)
}

// report reports the problems of a member's dependencies.
func (g *graph) report(e *installed, elsewhere func(id string) []string) {
	for _, id := range e.sub.opts.After {
		if other := g.dependency(e, "after", id, elsewhere); other != nil {
			g.reportOrder(other, e, "after", e)
		}
	}
	for _, id := range e.sub.opts.Before {
		if other := g.dependency(e, "before", id, elsewhere); other != nil {
			g.reportOrder(e, other, "before", e)
		}
	}
}

// dependency returns the member that e names in After or Before. If there is no such
// member, it reports the problem and returns nil.
func (g *graph) dependency(e *installed, field, id string, elsewhere func(id string) []string) *installed {
	s := e.sub
	report := func(kind, format string, args ...any) {
		g.problems = append(g.problems, &DependencyError{s.id, g.core.name, field, id, s.opts.Origin, kind, fmt.Sprintf(format, args...)})
	}
	other := g.all.find(id)
	switch {
	case other == e:
		report("self", "the subscription names itself: remove the dependency")
	case other != nil && other.disabled:
		report("disabled", "%q is disabled: enable it or drop the dependency", id)
	case other != nil:
		return other
	default:
		if phases := elsewhere(id); len(phases) > 0 {
			report("other_phase", "%q is only on %s: a dependency must be on the same phase", id, strings.Join(phases, ", "))
			break
		}
		suggestion := ""
		if len(g.problems) < 20 { // searching for similar names is slow, and nobody reads more than 20 hints
			others := slices.DeleteFunc(slices.Sorted(maps.Keys(g.all.index)), func(other string) bool { return other == s.id })
			suggestion = near.Hint(id, others)
		}
		report("missing", "there is no subscription %q%s", id, suggestion)
	}
	return nil
}

// reportOrder reports the problem if first may not run before then. said is the member that
// declares the dependency.
func (g *graph) reportOrder(first, then *installed, field string, said *installed) {
	switch {
	case mayPrecede(first, then):
	case then.rewrites && !first.rewrites:
		g.problems = append(g.problems, &RewriterOrderError{then.sub.id, g.core.name, first.sub.id})
	default:
		g.problems = append(g.problems, &OptionError{
			Subscription: said.sub.id, Phase: g.core.name, Origin: said.sub.opts.Origin, Field: field,
			Reason: then.sub.opts.Execution.String() + " hooks cannot be ordered after a background hook (" + first.sub.id + "), which runs later",
		})
	}
}

// plan orders the nodes. The next node is always the smallest one whose predecessors all
// have a position. Nodes are sorted, so the smallest index is the smallest node.
func (g *graph) plan() (*phasePlan, []error) {
	n := len(g.nodes)
	p := &phasePlan{
		core: g.core, all: g.all, order: make([]*installed, 0, n), level: make([]int32, 0, n),
		preds: adjacency{make([]int32, 1, n+1), make([]int32, 0, len(g.edges))},
	}
	placed := make([]int32, 0, n) // nodes by position
	position := make([]int32, n)
	waiting := g.preds.counts()
	ready := make(minHeap, 0, n)
	for i, w := range waiting {
		if w == 0 {
			ready.push(int32(i))
		}
	}
	for len(ready) > 0 {
		i := ready.pop()
		position[i] = int32(len(placed))
		placed = append(placed, i)
		p.order = append(p.order, g.nodes[i])
		level, from := int32(0), len(p.preds.nodes)
		for _, j := range g.preds.of(int(i)) {
			p.preds.nodes = append(p.preds.nodes, position[j])
			level = max(level, p.level[position[j]]+1)
		}
		slices.Sort(p.preds.nodes[from:])
		p.preds.nodes = p.preds.nodes[:from+len(slices.Compact(p.preds.nodes[from:]))]
		p.preds.start = append(p.preds.start, int32(len(p.preds.nodes)))
		p.level = append(p.level, level)
		for _, j := range g.succs.of(int(i)) {
			if waiting[j]--; waiting[j] == 0 {
				ready.push(j)
			}
		}
	}
	if len(placed) < n {
		return nil, []error{&CycleError{g.core.name, g.cycle(waiting)}}
	}
	g.schedule(p, placed, position)
	return p, nil
}

// cycle finds one cycle among the nodes that got no position. Each of these nodes waits for
// another one, so a walk through the predecessors must come back to a node that it has
// visited.
func (g *graph) cycle(waiting []int32) []string {
	at := int32(slices.IndexFunc(waiting, func(w int32) bool { return w > 0 }))
	seen := make(map[int32]int)
	var walk []int32
	for {
		if first, ok := seen[at]; ok {
			walk = walk[first:]
			break
		}
		seen[at] = len(walk)
		walk = append(walk, at)
		next := int32(-1) // the smallest predecessor: the edges have no order, and the result must be stable
		for _, j := range g.preds.of(int(at)) {
			if waiting[j] > 0 && (next < 0 || j < next) {
				next = j
			}
		}
		at = next
	}
	slices.Reverse(walk) // now each node is before the next
	members := make([]string, len(walk))
	for i, node := range walk {
		members[i] = g.nodes[node].sub.id
	}
	smallest := slices.Index(members, slices.Min(members))
	return append(slices.Clone(members[smallest:]), members[:smallest]...)
}

// schedule groups the plan into stages. Handlers that run inline keep plan order. When
// schedule reaches a handler that may overlap, other handlers join its stage: those of the
// same level that may overlap and whose predecessors already have a stage.
//
// nodes are the nodes by position. position is the inverse: positions by node.
func (g *graph) schedule(p *phasePlan, nodes, position []int32) {
	n := len(nodes)
	p.sequence = make([]int32, 0, n)
	done := make([]bool, n)
	missing := g.preds.counts() // by node: number of predecessors without a stage
	deepest := int32(0)
	for _, level := range p.level {
		deepest = max(deepest, level)
	}
	ready := make([]minHeap, deepest+1) // by level: positions of handlers that may overlap and have no missing predecessor
	offer := func(node int32) {
		if missing[node] == 0 && g.nodes[node].overlaps {
			pos := position[node]
			ready[p.level[pos]].push(pos)
		}
	}
	for node := range nodes {
		offer(int32(node))
	}
	put := func(pos int32) {
		done[pos] = true
		p.sequence = append(p.sequence, pos)
		for _, j := range g.succs.of(int(nodes[pos])) {
			missing[j]--
			offer(j)
		}
	}
	for i, e := range p.order {
		from := len(p.sequence)
		if e.rewrites {
			p.rewriters++
		}
		switch {
		case done[i]:
		case e.overlaps:
			for heap := &ready[p.level[i]]; len(*heap) > 0; { // a handler that becomes ready in this loop has a higher level
				put(heap.pop())
			}
			for to := len(p.sequence); from < to; from += p.core.overlap {
				p.stages = append(p.stages, stage{from, min(from+p.core.overlap, to), true})
			}
		case e.rewrites && e.sub.opts.Execution == Deadline: // a rewriter with a deadline runs alone
			put(int32(i))
			p.stages = append(p.stages, stage{from, from + 1, true})
		default:
			put(int32(i))
			if k := len(p.stages); k > 0 && !p.stages[k-1].overlap && (e.rewrites || from > p.rewriters) {
				p.stages[k-1].to++
			} else {
				p.stages = append(p.stages, stage{from, from + 1, false})
			}
		}
	}
	turns := make([]int32, n) // by position
	for turn, pos := range p.sequence {
		turns[pos] = int32(turn)
	}
	p.turn = slices.Clone(g.node)
	for k, node := range g.node {
		if node >= 0 {
			p.turn[k] = turns[position[node]]
		}
	}
}

// minHeap is a heap of indexes. pop returns the smallest.
type minHeap []int32

func (h *minHeap) push(x int32) {
	s := append(*h, x)
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if s[parent] <= s[i] {
			break
		}
		s[parent], s[i] = s[i], s[parent]
		i = parent
	}
	*h = s
}

func (h *minHeap) pop() int32 {
	s := *h
	top := s[0]
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child+1 < last && s[child+1] < s[child] {
			child++
		}
		if child >= last || s[i] <= s[child] {
			break
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
	*h = s
	return top
}
