package belay

import "time"

// turnRoom has space for values that nearly every turn needs. Because they are part of
// the turn, they need no allocations: that saves 3 of about 55 in a turn with one call.
type turnRoom struct {
	said   submitted
	silent batch          // the batch of a response without calls
	recent [4]fingerprint // turn.recent keeps three
}

// wait has a channel and a timer, with which a turn waits for a tool. Making one needs 4
// allocations, so the calls of a turn reuse it one after the other. Sessions do not share
// waits: in a test with synctest, a channel of another bubble would stop the test's
// clock.
type wait struct {
	done  chan struct{} // gets one value when the tool has returned
	timer *time.Timer
}

// newWait returns a wait whose timer fires after d.
func (s *Session) newWait(d time.Duration) *wait {
	w := s.wait.Swap(nil)
	if w == nil {
		return &wait{done: make(chan struct{}, 1), timer: time.NewTimer(d)}
	}
	w.timer.Reset(d)
	return w
}

// freeWait makes a wait available for reuse. Call it only after the tool has returned.
// Otherwise the tool's goroutine could later wake the next user of the wait.
func (s *Session) freeWait(w *wait) {
	w.timer.Stop()
	s.wait.CompareAndSwap(nil, w)
}
