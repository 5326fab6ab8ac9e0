package belay

import (
	"sync"
	"time"
)

// turnOutbox sends the events of a turn to its stream and to the agent's watchers.
type turnOutbox struct {
	stream chan Event    // nil if the caller does not read events
	left   chan struct{} // closed when the caller has stopped reading
	parent *lineage      // gets the events of a child turn without a stream; nil for other turns
	mu     sync.Mutex    // held while an event is sent, so that events arrive in order
	held   heldEvents
	silent bool // emit does nothing
}

// emit sends an event to the turn's stream and to the watchers. It waits until the reader
// of the stream, and each lossless watcher, can take the event. The goroutines of the
// turn's calls may also call emit.
func (t *turn) emit(e Event) {
	if !t.hasAudience() {
		return
	}
	e.Time = time.Now()
	e.Session, e.Turn, e.Agent = t.scope.Session, t.state.ID, t.scope.Agent
	orDefault(&e.Step, t.state.Step)
	if e.stored = t.session.stored.Load(); e.Kind == EventTurnEnd {
		e.turns = t.session.state.Turns
	}
	if t.lineage != nil && e.Run == "" {
		e.Run, e.Parent, e.Depth = t.lineage.run, t.lineage.parent.runID(), t.lineage.depth
	}
	t.forward(&e)
}

// forward gives an event of this turn or of a child turn the next number and sends it.
func (t *turn) forward(e *Event) {
	if !t.hasAudience() {
		return
	}
	t.outbox.mu.Lock() // events must be sent in the order of their numbers
	defer t.outbox.mu.Unlock()
	t.session.seq++
	e.Seq = t.session.seq
	var full []*watcher
	if !t.watchedByParent() {
		full = t.agent.events.publish(t.agent, t.session.id, e)
	}
	if t.outbox.stream != nil {
		select {
		case t.outbox.stream <- *e:
		case <-t.outbox.left:
		}
	}
	if t.outbox.parent != nil {
		copied := *e // the parent's stream has its own numbers
		t.outbox.parent.forward(&copied)
	}
	for _, w := range full { // last, so that only the turn itself waits for them
		t.deliver(w, e)
	}
}

// watchedByParent reports whether a parent turn of the same agent already sends this turn's
// events to the watchers.
func (t *turn) watchedByParent() bool {
	for at := t.lineage.above(); at != nil; at = at.lineage.above() {
		if at.agent == t.agent {
			return true
		}
	}
	return false
}

// hasAudience reports whether anybody gets the events of the turn.
func (t *turn) hasAudience() bool {
	if t.outbox.silent {
		return false
	}
	return t.outbox.stream != nil || t.agent.events.count.Load() > 0 || t.outbox.parent != nil && t.outbox.parent.parent.hasAudience()
}
