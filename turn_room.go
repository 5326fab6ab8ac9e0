package belay

import (
	"sync"
	"time"

	"github.com/belay-run/belay/hook"
)

// turnRoom has space for values that a turn needs, and that nobody keeps after the turn.
// Turns of all sessions reuse it. So a turn allocates a fourteenth less memory, and the
// garbage collector runs less often.
type turnRoom struct {
	commit  Commit      // the next commit: a store does not keep it after Commit
	carried [3]*Message // room for the messages of a commit
	said    submitted
	silent  batch          // the batch of a response without calls
	recent  [4]fingerprint // turn.recent keeps three
}

var turnRooms = sync.Pool{New: func() any { return new(turnRoom) }}

// freeRoom makes the turn's room available for reuse. Call it only after everything else. A
// turn that panicked does not free its room.
func (t *turn) freeRoom() {
	room := t.room
	t.room, t.recent = nil, nil
	*room = turnRoom{}
	turnRooms.Put(room)
}

// stepScopes is how many scopes are allocated together. A turn with one call needs three.
const stepScopes = 3

// newScope returns a new scope of the turn.
func (t *turn) newScope() *hook.Scope {
	if len(t.scopes) == 0 {
		t.scopes = make([]hook.Scope, stepScopes)
	}
	scope := &t.scopes[0]
	t.scopes = t.scopes[1:]
	return scope
}

// wait has a channel and a timer, with which a turn waits for a tool. The calls of a turn
// reuse it one after the other. Sessions do not share waits: in a test with synctest, a
// channel of another bubble would stop the test's clock.
type wait struct {
	done  chan struct{} // gets one value when the tool has returned
	timer *time.Timer   // nil until a tool does not return at once
}

// newWait returns a wait without a running timer.
func (s *Session) newWait() *wait {
	if w := s.wait.Swap(nil); w != nil {
		return w
	}
	return &wait{done: make(chan struct{}, 1)}
}

// startTimer makes the timer fire after d.
func (w *wait) startTimer(d time.Duration) {
	if w.timer == nil {
		w.timer = time.NewTimer(d)
		return
	}
	w.timer.Reset(d)
}

// freeWait makes a wait available for reuse. Call it only after the tool has returned.
// Otherwise the tool's goroutine could later wake the next user of the wait.
func (s *Session) freeWait(w *wait) {
	if w.timer != nil {
		w.timer.Stop()
	}
	s.wait.CompareAndSwap(nil, w)
}
