package belay

import (
	"fmt"
	"slices"
)

// overspent returns which budget is used up, the agent's own or a parent's. It returns ""
// if no budget is used up.
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

// permits reports whether a child of the parent may use a tool. The parent's scope and
// resources must allow the tool. If the parent has a tool of the same name, that tool must
// be in scope.
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

// limitedTools is a toolset in which the tools that a parent may not use are out of
// scope. The agent reuses it until the tools or the parents change.
type limitedTools struct {
	of  *toolset
	by  []limiter
	set *toolset
}

// mostLimited is how many limited toolsets an agent caches. It is enough for two parents,
// with and without step tools.
const mostLimited = 4

// limited returns the toolset in which the tools that a parent may not use are out of
// scope.
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

// cut returns the tools, and marks the tools that a parent may not use as out of scope.
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
