package hook

import (
	"context"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// slotTable finds the plan of a phase with one multiplication. It is a hash of the phase
// names that has no collisions among the runtime's phases.
type slotTable struct {
	factor uint64
	shift  uint
}

func newSlotTable(cores []*phaseCore) slotTable {
	size := max(bits.Len(uint(len(cores)*2)), 3)
	factor := uint64(0x9e3779b97f4a7c15)
	for tries := 1; ; tries++ {
		t := slotTable{factor | 1, uint(64 - size)}
		taken := make(map[uint64]bool, len(cores))
		for _, c := range cores {
			taken[t.slot(c)] = true
		}
		if len(taken) == len(cores) {
			return t
		}
		factor = factor*0xd1342543de82ef95 + 2
		if tries%256 == 0 {
			size++ // after many factors failed, try a larger table
		}
	}
}

func (t slotTable) slot(c *phaseCore) uint64 { return (c.hash * t.factor) >> (t.shift & 63) }
func (t slotTable) size() int                { return 1 << (64 - t.shift) }

// generation is one published set of plans. Snapshots hold generations. A lease is drained
// when no snapshot holds a generation that contains it.
type generation struct {
	number uint64
	table  slotTable
	slots  []*phasePlan
	// idle holds the plans of phases whose subscriptions are all disabled.
	idle map[*phaseCore]*phasePlan

	// Runtime.holding guards these fields.
	holders int
	retired bool
	drained chan struct{} // closed when the generation is retired and has no holders
}

// find returns the plan of a phase that has enabled subscriptions, or nil.
func (g *generation) find(c *phaseCore) *phasePlan {
	p := g.at(c.hash)
	if p == nil || p.core != c {
		return nil
	}
	return p
}

// at returns the plan in the slot of a hash, which may belong to another phase, or nil.
func (g *generation) at(hash uint64) *phasePlan {
	return g.slots[(hash*g.table.factor)>>(g.table.shift&63)]
}

// publish makes the plans current and returns the number of the new generation. The caller
// holds rt.changing.
func (rt *Runtime) publish(plans map[*phaseCore]*phasePlan) uint64 {
	next := &generation{
		number:  rt.current.number + 1,
		table:   rt.table,
		slots:   slices.Clone(rt.current.slots),
		idle:    maps.Clone(rt.current.idle),
		drained: make(chan struct{}),
	}
	for c, p := range plans {
		delete(next.idle, c)
		next.slots[rt.table.slot(c)] = p
		if len(p.order) == 0 {
			next.slots[rt.table.slot(c)] = nil
			next.idle[c] = p
		}
	}
	rt.holding.Lock()
	defer rt.holding.Unlock()
	old := rt.current
	rt.current = next
	rt.alive[next] = struct{}{}
	old.retired = true
	rt.settleGeneration(old)
	return next.number
}

// settleGeneration drops a generation that is retired and has no holders. The caller holds
// rt.holding.
func (rt *Runtime) settleGeneration(g *generation) {
	if g.retired && g.holders == 0 {
		if _, ok := rt.alive[g]; ok {
			delete(rt.alive, g)
			close(g.drained)
		}
	}
}

// Snapshot is the set of subscriptions that a turn uses. It does not change when others
// install or close subscriptions: only Refresh and Inherit add to it. It also collects the
// records of the turn's runs. Release it when the turn is over. A Snapshot is safe for
// concurrent use.
type Snapshot struct {
	rt   *Runtime
	gen  atomic.Pointer[generation] // the current plans: see Refresh
	refs atomic.Int64               // one for the owner, one for each dispatch and one for each detached run
	done atomic.Bool
	log  runLog

	attempts attempts

	refreshing sync.Mutex
	held       []*generation // guarded by Runtime.holding
	first      [1]*generation
	freed      bool        // guarded by Runtime.holding
	parents    []inherited // the snapshots that Inherit added
}

// inherited is a snapshot that Inherit added, and its generation when its guards were last
// joined.
type inherited struct {
	*Snapshot
	joined *generation
}

// Snapshot returns a snapshot of the current subscriptions.
func (rt *Runtime) Snapshot() *Snapshot {
	s := &Snapshot{rt: rt}
	s.refs.Store(1)
	s.log.rt = rt
	rt.setWall()
	rt.holding.Lock()
	defer rt.holding.Unlock()
	rt.current.holders++
	s.gen.Store(rt.current)
	s.first[0] = rt.current
	s.held = s.first[:]
	return s
}

// Refresh adds the new guards of the turn: the gates, and the hooks at phases that can
// rewrite an output, that were installed after the snapshot was made. Output hooks are
// guards because they may hide a secret. Refresh also adds the new guards of the snapshots
// that Inherit added.
//
// The loop calls Refresh between steps. Everything else stays as it was when the turn
// began: the turn keeps guards that were removed meanwhile. Running dispatches are not
// affected, and a released snapshot does not change.
func (s *Snapshot) Refresh() {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	for _, parent := range s.parents {
		parent.Refresh()
	}
	own := s.gen.Load()
	s.refresh()
	changed := s.gen.Load() != own
	for i := range s.parents {
		parent := &s.parents[i]
		if theirs := parent.gen.Load(); changed || theirs != parent.joined { // otherwise nothing is new, as at most steps
			s.joinGuards(parent.Snapshot, theirs)
			parent.joined = theirs
		}
	}
}

// guards reports whether hooks at the phase protect a turn. Refresh adds only such hooks.
func (def *phaseCore) guards() bool { return def.kind == Gate || def.caps&CanRewriteOutput != 0 }

// joinGuards adds the new guards of an inherited snapshot, which has the generation theirs.
func (s *Snapshot) joinGuards(parent *Snapshot, theirs *generation) {
	old := s.gen.Load()
	next := old
	for _, phase := range parent.rt.phases {
		c := phase.core()
		plan := theirs.find(c)
		if !c.guards() || plan == nil || !s.rt.knows(c) {
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
}

// refresh adds the new guards of the snapshot's own runtime. The caller holds s.refreshing.
func (s *Snapshot) refresh() {
	rt := s.rt
	rt.holding.Lock()
	latest := rt.current
	if s.freed || latest == s.held[len(s.held)-1] {
		rt.holding.Unlock()
		return
	}
	latest.holders++
	s.held = append(s.held, latest)
	rt.holding.Unlock()

	old := s.gen.Load()
	next := &generation{number: latest.number, table: rt.table, slots: slices.Clone(old.slots), idle: old.idle}
	for _, phase := range rt.phases {
		c := phase.core()
		mine, theirs := old.find(c), latest.find(c)
		if c.guards() && theirs != nil && mine != theirs {
			next.slots[rt.table.slot(c)] = joinPlans(mine, theirs)
		}
	}
	s.gen.Store(next)
}

// joinPlans adds the members of theirs to mine. If both plans have a member with the same
// id, it takes the member of theirs, which is newer. A gate that the turn began with is
// never lost: if the two plans cannot be ordered together, the members that only mine has
// lose their dependencies and are ordered by priority and id.
func joinPlans(mine, theirs *phasePlan) *phasePlan {
	if mine == nil {
		return theirs
	}
	all := theirs.all.clone(len(mine.all.list))
	for _, e := range mine.all.list {
		if e.home != nil {
			all.adopt(e, e.home)
		} else if all.find(e.sub.id) == nil {
			all.add(e)
		}
	}
	if len(all.list) == len(theirs.all.list) {
		return theirs
	}
	return orderTogether(mine.core, all, func(id string) bool { return theirs.all.find(id) == nil })
}

// Release ends the turn's use of its subscriptions and writes the records that were not
// taken. Later dispatches on the snapshot return ErrReleased. A second call does nothing.
// If the journal returns an error, the snapshot keeps the records, and Flush writes them.
func (s *Snapshot) Release(ctx context.Context) error {
	if s.done.Swap(true) {
		return nil
	}
	err := s.log.close(ctx)
	s.drop()
	return err
}

func (s *Snapshot) retain() { s.refs.Add(1) }

// acquire adds a reference for a dispatch. It reports false if the snapshot was released.
func (s *Snapshot) acquire() bool {
	s.retain()
	if s.done.Load() {
		s.drop()
		return false
	}
	return true
}

// drop removes one reference. The last drop frees the generations. It frees them only once,
// because a late acquire may raise the count from zero and drop it again.
func (s *Snapshot) drop() {
	if s.refs.Add(-1) > 0 {
		return
	}
	s.refreshing.Lock()
	parents := s.parents
	s.parents = nil
	s.refreshing.Unlock()
	for _, p := range parents {
		p.drop()
	}
	s.rt.holding.Lock()
	defer s.rt.holding.Unlock()
	if s.freed {
		return
	}
	s.freed = true
	for _, g := range s.held {
		g.holders--
		s.rt.settleGeneration(g)
	}
}

// Flush writes the records collected so far to the runtime's journal.
func (s *Snapshot) Flush(ctx context.Context) error { return s.log.flush(ctx) }

// Take returns the records collected since the last Take or Flush. Use it to store the
// records yourself, in one commit with your own data.
func (s *Snapshot) Take() []Run { return s.log.take() }

// Notable reports whether Take would return a run that did something: one that took at least
// limit, that did not complete, or that has an answer, a job or a diagnostic. It costs less than
// Take.
func (s *Snapshot) Notable(limit time.Duration) bool { return s.log.notable(limit) }

// Record writes records that Take returned and that the caller could not store. The
// snapshot keeps records that the journal does not accept, and Flush and Release retry
// them.
func (s *Snapshot) Record(ctx context.Context, runs []Run) error { return s.log.record(ctx, runs) }
