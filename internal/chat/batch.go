package chat

import (
	"sync"

	"github.com/belay-run/belay"
)

// batchMost is how many events may wait for the loop. If there are more, put blocks the
// turn.
const batchMost = 4096

// batch collects the events that arrive while the loop is busy, so that a turn does not
// wait until each event is drawn.
type batch struct {
	mu      sync.Mutex
	changed *sync.Cond
	events  []belay.Event
	closed  bool
}

func newBatch() *batch {
	b := new(batch)
	b.changed = sync.NewCond(&b.mu)
	return b
}

// put adds an event. It blocks only if batchMost events wait.
func (b *batch) put(e belay.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.events) >= batchMost {
		b.changed.Wait()
	}
	b.events = append(b.events, e)
	b.changed.Broadcast()
}

// take waits for events and returns all of them. It returns nil after close, when no events
// are left.
func (b *batch) take() []belay.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.events) == 0 && !b.closed {
		b.changed.Wait()
	}
	events := b.events
	b.events = nil
	b.changed.Broadcast()
	return events
}

// close tells take that no more events will come.
func (b *batch) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.changed.Broadcast()
}
