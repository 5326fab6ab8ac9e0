package hook

import (
	"fmt"
	"slices"
	"strconv"
)

// Inherit adds the subscriptions of another snapshot, of any runtime: a child's turn has
// the subscriptions of its parent. They are ordered together with the subscriptions of this
// snapshot, and this snapshot collects their records. Their jobs and background work go to
// the runtime where they were installed.
//
// Inherit leaves out subscriptions with NoInherit. A subscription that both snapshots have
// runs once. If another subscription here has the same id, the inherited one gets the id
// inherited:ID, so that nobody can replace a gate by using its name.
//
// Call Inherit before the first dispatch on the snapshot. It returns ErrReleased if the
// other snapshot was released.
func (s *Snapshot) Inherit(parent *Snapshot) error {
	if !parent.acquire() {
		return fmt.Errorf("inherit: %w", ErrReleased)
	}
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	old, theirs := s.gen.Load(), parent.gen.Load()
	s.parents = append(s.parents, inherited{parent, theirs}) // drop releases the parent together with this snapshot
	if last := s.rt.heirs.Load(); last != nil && last.own == old && last.theirs == theirs {
		s.gen.Store(last.joined)
		return nil
	}
	next := old
	for _, phase := range parent.rt.phases {
		c := phase.core()
		plan := theirs.find(c)
		if plan == nil || !s.rt.knows(c) {
			continue
		}
		mine := old.find(c)
		joined := inheritPlan(c, mine, plan, parent.rt)
		if joined == mine {
			continue
		}
		if next == old {
			next = &generation{number: old.number, table: old.table, slots: slices.Clone(old.slots), idle: old.idle}
		}
		next.slots[s.rt.table.slot(c)] = joined
	}
	s.gen.Store(next)
	s.rt.heirs.Store(&heirs{old, theirs, next})
	return nil
}

// heirs caches the last result of Inherit, because a parent often has several children in a
// row and nothing changes between them.
type heirs struct{ own, theirs, joined *generation }

// inheritPlan adds the parent's plan to mine, which may be nil. It returns mine if there is
// nothing to add.
func inheritPlan(core *phaseCore, mine, parents *phasePlan, from *Runtime) *phasePlan {
	all := &members{index: make(map[string]int32)}
	if mine != nil {
		all = mine.all.clone(len(parents.order))
	}
	own := len(all.list)
	for _, e := range parents.order {
		if !e.sub.opts.NoInherit {
			all.adopt(e, from)
		}
	}
	if len(all.list) == own {
		return mine
	}
	inherited := make(map[string]bool)
	for _, e := range all.list[own:] {
		inherited[e.id] = true
	}
	return orderTogether(core, all, func(id string) bool { return inherited[id] })
}

// orderTogether orders members that were installed separately. If they cannot be ordered,
// the members for which loose reports true lose their dependencies: they are ordered by
// priority and id. No member is lost.
func orderTogether(core *phaseCore, all *members, loose func(id string) bool) *phasePlan {
	nowhere := func(string) []string { return nil }
	plan, problems := orderPhase(core, all, nowhere, nil)
	if len(problems) > 0 {
		plan, problems = orderPhase(core, all, nowhere, loose)
	}
	if len(problems) > 0 { // the other members have a cycle: all members lose their dependencies
		plan, _ = orderPhase(core, all, nowhere, func(string) bool { return true })
	}
	plan.compile()
	return plan
}

// adopt adds a member of another runtime, unless m already has the member.
func (m *members) adopt(e *installed, from *Runtime) {
	if slices.ContainsFunc(m.list, func(o *installed) bool { return o.origin() == e.origin() }) {
		return
	}
	taken := m.find(e.id)
	heir := &installed{
		sub: e.sub, caps: e.caps, rewrites: e.rewrites, overlaps: e.overlaps, background: e.background, disabled: e.disabled, shadow: e.shadow,
		plain: e.plain, evident: e.evident, picks: e.picks, priority: e.priority, id: e.id, handler: e.handler, abandoned: e.abandoned, home: e.home, of: e.origin(),
	}
	if heir.home == nil {
		heir.home = from
	}
	if taken != nil {
		sub := *e.sub
		sub.id = m.unused("inherited:" + e.id)
		heir.sub, heir.id = &sub, sub.id
	}
	m.add(heir)
}

// origin returns the subscription as it was installed: for an inherited member, the
// original.
func (e *installed) origin() *subscription {
	if e.of != nil {
		return e.of
	}
	return e.sub
}

// Inherited reports whether the subscription with this id was added by [Snapshot.Inherit].
func (s *Snapshot) Inherited(phase AnyPhase, id string) bool {
	plan := s.gen.Load().find(phase.core())
	if plan == nil {
		return false
	}
	e := plan.all.find(id)
	return e != nil && e.home != nil
}

// unused returns the id, with a suffix if a member already has it.
func (m *members) unused(id string) string {
	const longest = 128
	for n := 1; ; n++ {
		candidate, suffix := id, ""
		if n > 1 {
			suffix = ":" + strconv.Itoa(n)
		}
		if over := len(candidate) + len(suffix) - longest; over > 0 {
			candidate = candidate[:len(candidate)-over]
		}
		if candidate += suffix; m.find(candidate) == nil {
			return candidate
		}
	}
}

// at returns the runtime whose queue and job handlers the member uses: the runtime where it
// was installed.
func (e *installed) at(rt *Runtime) *Runtime {
	if e.home != nil {
		return e.home
	}
	return rt
}
