package belay

import "time"

// turnRoom is room for values that nearly every turn needs. As parts of the turn they need no
// allocations of their own: that saves 3 of about 55 in a turn with one call.
type turnRoom struct {
	said   submitted
	silent batch          // the batch of a response without calls
	recent [4]fingerprint // turn.recent keeps three
}

// wait is what a turn needs to wait for a tool: a channel and a timer, which are 4
// allocations. The calls of a turn use one after the other. Sessions do not share waits: in
// a test with synctest, a channel of another bubble would stop the test's clock.
type wait struct {
	done  chan struct{} // gets one value when the tool has returned
	timer *time.Timer
}

// newWait returns a wait whose timer fires after a time.
func (s *Session) newWait(d time.Duration) *wait {
	w := s.wait.Swap(nil)
	if w == nil {
		return &wait{done: make(chan struct{}, 1), timer: time.NewTimer(d)}
	}
	w.timer.Reset(d)
	return w
}

// freeWait gives a wait back. It must not be called if the tool has not returned, because
// the tool's goroutine would then wake the next user of the wait.
func (s *Session) freeWait(w *wait) {
	w.timer.Stop()
	s.wait.CompareAndSwap(nil, w)
}
