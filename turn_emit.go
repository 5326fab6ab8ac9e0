package belay

import (
	"time"
)

// emit tells the outside what happens: the turn's stream, which sets the pace,
// and the watchers, which do not. It may be called by the turn's calls too.
func (t *turn) emit(e Event) {
	if !t.heeded() {
		return
	}
	e.Time = time.Now()
	e.Session, e.Turn, e.Agent = t.scope.Session, t.state.ID, t.scope.Agent
	orDefault(&e.Step, t.state.Step)
	if t.lineage != nil && e.Run == "" {
		e.Run, e.Parent, e.Depth = t.lineage.run, t.lineage.parent.runID(), t.lineage.depth
	}
	t.pass(&e)
}

// pass hands on an event, of this turn or of a child, under the next number.
func (t *turn) pass(e *Event) {
	if !t.heeded() {
		return
	}
	t.emitting.Lock() // so that events come in the order of their numbers
	defer t.emitting.Unlock()
	t.session.seq++
	e.Seq = t.session.seq
	if !t.told() {
		t.agent.watchers.tell(t.session.id, e)
	}
	if t.out != nil {
		select {
		case t.out <- *e:
		case <-t.left:
		}
	}
}

// told reports whether those who watch the agent hear of the turn through a parent
// of the same agent.
func (t *turn) told() bool {
	for at := t.lineage.above(); at != nil; at = at.lineage.above() {
		if at.agent == t.agent {
			return true
		}
	}
	return false
}

// heeded reports whether anybody is there to be told.
func (t *turn) heeded() bool {
	return !t.silent && (t.out != nil || t.agent.watchers.count.Load() > 0)
}
