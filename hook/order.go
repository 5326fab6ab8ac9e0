package hook

import (
	"cmp"
	"maps"
	"slices"
)

// phasePlan is the resolved order of one phase: what Install compiles and a
// dispatch walks. It is immutable.
type phasePlan struct {
	core *phaseCore
	// all holds every member by id, the disabled ones too.
	all map[string]*installed
	// order holds the enabled members in plan order.
	order []*installed
	// level is the longest chain of edges leading to each.
	level []int
	// preds are the positions of the direct predecessors.
	preds [][]int
	// stages is the order of execution, over positions in order.
	stages []stage
	// typed is the *typedPlan of the phase's types.
	typed any
}

// stage is a stretch of a plan that runs together: either handlers that run
// inline one after the other, or handlers that overlap.
type stage struct {
	positions []int
	overlap   bool
}

// orderPhase resolves the order of the members of one phase. elsewhere tells
// on which other phases an id is known; the edges of members that are loose do
// not count.
func orderPhase(core *phaseCore, all map[string]*installed, elsewhere func(id string) []string, loose func(id string) bool) (*phasePlan, []error) {
	g := newGraph(core, all)
	g.link(elsewhere, loose)
	plan, cycle := g.plan() // of the edges that can be, so that a cycle shows beside other problems
	if g.problems = append(g.problems, cycle...); len(g.problems) > 0 {
		return nil, g.problems
	}
	return plan, nil
}

// place is what orders members that no dependency orders: rewriters first,
// then (priority, id). It is kept beside the member, because sorting ten
// thousand of them is mostly waiting for memory.
type place struct {
	follows  bool // it does not rewrite
	priority int
	id       string
	member   *installed
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

// graph holds the enabled members, sorted by place, and the edges between
// them.
type graph struct {
	core     *phaseCore
	all      map[string]*installed
	nodes    []*installed
	index    map[string]int
	edges    []edge
	preds    adjacency
	succs    adjacency
	problems []error
}

type edge struct{ from, to int32 }

// adjacency holds the neighbours of each node in one stretch of memory. An edge
// that was asked for twice is there twice, which does no harm.
type adjacency struct {
	start []int32
	nodes []int32
}

func (a adjacency) of(i int) []int32 { return a.nodes[a.start[i]:a.start[i+1]] }

// newAdjacency collects, for each node by key, the values of its edges.
func newAdjacency(n int, edges []edge, key, value func(edge) int32) adjacency {
	a := adjacency{make([]int32, n+1), make([]int32, len(edges))}
	for _, e := range edges {
		a.start[key(e)+1]++
	}
	for i := range n {
		a.start[i+1] += a.start[i]
	}
	next := slices.Clone(a.start)
	for _, e := range edges {
		k := key(e)
		a.nodes[next[k]] = value(e)
		next[k]++
	}
	return a
}

func newGraph(core *phaseCore, all map[string]*installed) *graph {
	places := make([]place, 0, len(all))
	for id, e := range all {
		if !e.disabled {
			places = append(places, place{!e.rewrites, e.priority, id, e})
		}
	}
	slices.SortFunc(places, comparePlace)
	g := &graph{core: core, all: all, nodes: make([]*installed, len(places)), index: make(map[string]int, len(places))}
	for i, p := range places {
		g.nodes[i] = p.member
		g.index[p.id] = i
	}
	return g
}

// link turns after and before into edges, and reports those that cannot be.
func (g *graph) link(elsewhere func(id string) []string, loose func(id string) bool) {
	asked := 0
	for _, e := range g.nodes {
		asked += len(e.sub.opts.After) + len(e.sub.opts.Before)
	}
	g.edges = make([]edge, 0, asked)
	for i, e := range g.nodes {
		if loose != nil && loose(e.sub.id) {
			continue
		}
		for _, id := range e.sub.opts.After {
			if j, ok := g.resolve(e, "after", id, elsewhere); ok {
				g.edge(j, i, "after", e)
			}
		}
		for _, id := range e.sub.opts.Before {
			if j, ok := g.resolve(e, "before", id, elsewhere); ok {
				g.edge(i, j, "before", e)
			}
		}
	}
	from, to := func(e edge) int32 { return e.from }, func(e edge) int32 { return e.to }
	g.preds = newAdjacency(len(g.nodes), g.edges, to, from)
	g.succs = newAdjacency(len(g.nodes), g.edges, from, to)
}

func (g *graph) resolve(e *installed, field, id string, elsewhere func(id string) []string) (int, bool) {
	s := e.sub
	if id == s.id {
		g.problems = append(g.problems, &SelfDependencyError{s.id, g.core.name, field, s.opts.Origin})
		return 0, false
	}
	if j, ok := g.index[id]; ok {
		return j, true
	}
	if _, ok := g.all[id]; ok {
		g.problems = append(g.problems, &DisabledDependencyError{s.id, g.core.name, field, id, s.opts.Origin})
		return 0, false
	}
	if phases := elsewhere(id); len(phases) > 0 {
		g.problems = append(g.problems, &OtherPhaseError{s.id, g.core.name, field, id, s.opts.Origin, phases})
		return 0, false
	}
	suggestion := ""
	if len(g.problems) < 20 { // looking for near names is slow, and nobody reads more
		suggestion = didYouMean(id, slices.Sorted(maps.Keys(g.all)))
	}
	g.problems = append(g.problems, &MissingDependencyError{s.id, g.core.name, field, id, suggestion, s.opts.Origin})
	return 0, false
}

// edge orders node from before node to. said is the member that asked for it.
func (g *graph) edge(from, to int, field string, said *installed) {
	first, then := g.nodes[from], g.nodes[to]
	if then.rewrites && !first.rewrites {
		g.problems = append(g.problems, &RewriterOrderError{then.sub.id, g.core.name, first.sub.id})
		return
	}
	if first.background && !then.background {
		g.problems = append(g.problems, &OptionError{
			Subscription: said.sub.id, Phase: g.core.name, Origin: said.sub.opts.Origin, Field: field,
			Reason: then.sub.opts.Execution.String() + " work cannot come after background work (" + first.sub.id + "), which runs later",
		})
		return
	}
	g.edges = append(g.edges, edge{int32(from), int32(to)})
}

// plan places the nodes: among those whose predecessors are all placed, the
// smallest is next. Nodes are sorted, so the smallest index is the smallest
// node.
func (g *graph) plan() (*phasePlan, []error) {
	n := len(g.nodes)
	p := &phasePlan{
		core: g.core, all: g.all,
		order: make([]*installed, 0, n), level: make([]int, 0, n), preds: make([][]int, 0, n),
	}
	flat := make([]int, 0, len(g.edges)) // the memory of p.preds
	waiting := make([]int, n)
	position := make([]int, n)
	ready := make(minHeap, 0, n)
	for i := range g.nodes {
		waiting[i] = len(g.preds.of(i))
		if waiting[i] == 0 {
			ready.push(int32(i))
		}
	}
	for len(ready) > 0 {
		i := int(ready.pop())
		position[i] = len(p.order)
		p.order = append(p.order, g.nodes[i])
		level, from := 0, len(flat)
		for _, j := range g.preds.of(i) {
			flat = append(flat, position[j])
			level = max(level, p.level[position[j]]+1)
		}
		preds := flat[from:len(flat):len(flat)]
		slices.Sort(preds)
		preds = slices.Compact(preds)
		p.level, p.preds = append(p.level, level), append(p.preds, preds)
		for _, j := range g.succs.of(i) {
			if waiting[j]--; waiting[j] == 0 {
				ready.push(j)
			}
		}
	}
	if len(p.order) < n {
		return nil, []error{&CycleError{g.core.name, g.cycle(waiting)}}
	}
	p.stages = p.schedule()
	return p, nil
}

// cycle finds one cycle among the nodes that could not be placed. Each of them
// waits for another of them, so walking backwards must come round.
func (g *graph) cycle(waiting []int) []string {
	stuck := func(i int32) bool { return waiting[i] > 0 }
	at := slices.IndexFunc(waiting, func(w int) bool { return w > 0 })
	seen := make(map[int]int)
	var walk []int
	for {
		if first, ok := seen[at]; ok {
			walk = walk[first:]
			break
		}
		seen[at] = len(walk)
		walk = append(walk, at)
		preds := g.preds.of(at)
		at = int(preds[slices.IndexFunc(preds, stuck)])
	}
	slices.Reverse(walk) // walked from each to one before it
	members := make([]string, len(walk))
	for i, node := range walk {
		members[i] = g.nodes[node].sub.id
	}
	smallest := slices.Index(members, slices.Min(members))
	return append(slices.Clone(members[smallest:]), members[:smallest]...)
}

// schedule groups the plan into stages. Inline handlers keep plan order. When
// the plan comes to a handler that may overlap, every handler of its level
// that may overlap and whose predecessors are placed joins it.
func (p *phasePlan) schedule() []stage {
	var stages []stage
	n := len(p.order)
	placed := make([]bool, n)
	missing := make([]int32, n) // predecessors not yet placed
	deepest, edges := 0, make([]edge, 0, n)
	for i, preds := range p.preds {
		missing[i] = int32(len(preds))
		deepest = max(deepest, p.level[i])
		for _, j := range preds {
			edges = append(edges, edge{int32(j), int32(i)})
		}
	}
	succs := newAdjacency(n, edges, func(e edge) int32 { return e.from }, func(e edge) int32 { return e.to })
	ready := make([]minHeap, deepest+1) // by level: may overlap, and nothing is missing
	offer := func(i int) {
		if missing[i] == 0 && p.order[i].overlaps {
			ready[p.level[i]].push(int32(i))
		}
	}
	for i := range n {
		offer(i)
	}
	place := func(i int) {
		placed[i] = true
		for _, j := range succs.of(i) {
			missing[j]--
			offer(int(j))
		}
	}
	for i, e := range p.order {
		switch {
		case placed[i]:
		case e.overlaps:
			var group []int
			for heap := &ready[p.level[i]]; len(*heap) > 0; {
				group = append(group, int(heap.pop()))
			}
			for part := range slices.Chunk(group, p.core.overlap) {
				stages = append(stages, stage{part, true})
			}
			for _, j := range group {
				place(j)
			}
		case e.sub.opts.Execution == Deadline: // a rewriter with a deadline runs alone
			stages = append(stages, stage{[]int{i}, true})
			place(i)
		default:
			if n := len(stages); n > 0 && !stages[n-1].overlap {
				stages[n-1].positions = append(stages[n-1].positions, i)
			} else {
				stages = append(stages, stage{[]int{i}, false})
			}
			place(i)
		}
	}
	return stages
}

// minHeap is a heap of node indexes, the smallest first.
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
