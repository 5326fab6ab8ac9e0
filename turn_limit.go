package belay

import (
	"fmt"
	"slices"
)

// spend adds usage to the turn and to all its parents.
func (t *turn) spend(u Usage) {
	t.state.Usage = t.state.Usage.add(u)
	if t.lineage != nil {
		t.lineage.charge(t.state.ID, u)
	}
}

// charge adds the usage of a child's turn to all its parents. turn is the id of the child's
// turn. It is empty if another program ran the turn: then only the sum is counted.
func (l *lineage) charge(turn string, u Usage) {
	for ; l != nil && u != (Usage{}); l = l.parent.lineage {
		u = l.parent.wishes.count(turn, u)
		turn = l.parent.state.ID
	}
}

// catchUp adds usage from before a child's turn was resumed or abandoned, if the parent has
// not counted it yet. The parent's process may have been killed before it stored that
// usage.
func (l *lineage) catchUp(child *TurnState) {
	w := &l.parent.wishes
	w.mu.Lock()
	have := w.children[child.ID]
	if ahead := have.minus(child.Usage); ahead != (Usage{}) {
		if w.ahead == nil {
			w.ahead = make(map[string]Usage)
		}
		w.ahead[child.ID] = ahead
	}
	w.mu.Unlock()
	l.charge(child.ID, child.Usage.minus(have))
}

// count adds the usage of a child's turn and returns the new part of it. After catchUp of a
// grandchild, this turn may have counted usage that the child itself has not counted yet.
func (w *wishes) count(turn string, u Usage) Usage {
	w.mu.Lock()
	defer w.mu.Unlock()
	if turn != "" {
		if ahead, ok := w.ahead[turn]; ok {
			u, w.ahead[turn] = u.minus(ahead), ahead.minus(u)
		}
		if w.children == nil {
			w.children = make(map[string]Usage)
		}
		w.children[turn] = w.children[turn].add(u)
	}
	w.spent = w.spent.add(u)
	return u
}

// overspent returns which budget is used up: the agent's own or a parent's. It returns ""
// if there is none.
func (t *turn) overspent() string {
	if why := t.agent.opts.Budget.spent(t.state.Usage, t.session.state.Usage.add(t.state.Usage)); why != "" {
		return why
	}
	for l := t.lineage; l != nil; l = l.parent.lineage {
		w := &l.parent.wishes
		w.mu.Lock()
		turn := l.turn.add(w.spent)
		w.mu.Unlock()
		if why := l.parent.agent.opts.Budget.spent(turn, l.session.add(turn)); why != "" {
			return fmt.Sprintf("agent %s, with its subagents: %s", l.parent.agent.opts.Name, why)
		}
	}
	return ""
}

// limiter is a parent that may use only some tools.
type limiter struct {
	agent    *Agent
	composed *composition
	tools    *toolset
}

// permits reports whether a child of the parent may use a tool. The parent must be allowed
// to use the tool, by its name and by its owner. The parent must not have a tool of the
// same name that is out of scope.
func (l limiter) permits(b *boundTool) bool {
	if !l.agent.inScope(b.name) || !l.composed.narrowed.allows(b.owner, b.name) {
		return false
	}
	own := l.tools.byName[b.name]
	return own == nil || own.inScope
}

// limiters returns all parents, at any level, that may use only some tools.
func (t *turn) limiters(all []limiter) []limiter {
	for at := t.lineage.above(); at != nil; at = at.lineage.above() {
		a := at.agent
		if composed := a.composed.Load(); a.opts.Scope != nil || len(composed.narrowed) > 0 {
			all = append(all, limiter{a, composed, a.allTools()})
		}
	}
	return all
}

// limitedTools is a toolset without the tools that parents may not use. The agent reuses it
// until the tools or the parents change.
type limitedTools struct {
	of  *toolset
	by  []limiter
	set *toolset
}

// mostLimited is how many limited toolsets an agent caches. It is enough for two parents,
// with and without step tools.
const mostLimited = 4

// limited returns the tools without those that a parent may not use.
func (t *turn) limited(tools *toolset) *toolset {
	if t.lineage == nil {
		return tools
	}
	var room [4]limiter
	by := t.limiters(room[:0])
	if len(by) == 0 {
		return tools
	}
	var kept []*limitedTools
	if known := t.agent.limited.Load(); known != nil {
		kept = *known
	}
	for _, k := range kept {
		if k.of == tools && slices.Equal(k.by, by) {
			return k.set
		}
	}
	now := &limitedTools{tools, slices.Clone(by), newToolset(cut(tools.tools, by))}
	next := append([]*limitedTools{now}, kept[:min(len(kept), mostLimited-1)]...)
	t.agent.limited.Store(&next)
	return now.set
}

// cut returns the tools. Those that a parent may not use are out of scope.
func cut(tools []*boundTool, by []limiter) []*boundTool {
	tools = slices.Clone(tools)
	for i, b := range tools {
		if b.inScope && slices.ContainsFunc(by, func(l limiter) bool { return !l.permits(b) }) {
			out := *b
			out.inScope = false
			tools[i] = &out
		}
	}
	return tools
}
