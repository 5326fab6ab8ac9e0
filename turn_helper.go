package belay

import (
	"math"
	"os"
	"runtime"
	"time"
)

// helper is a goroutine for code that a turn may have to abandon: the stream of a model, or
// a tool. The turn's goroutine waits for it, but not forever. A turn uses one helper for all
// its requests and calls, one after the other. So it starts one goroutine, whose stack grows
// once. Calls that run in parallel have helpers of their own.
//
// Turns do not share helpers: in a test with synctest, a channel of another bubble would
// stop the test's clock.
type helper struct {
	jobs  chan job
	done  chan struct{} // gets one value for each job that has ended
	timer *time.Timer   // nil until a job does not end at once
	gone  bool          // a job has ended the goroutine; read it only after done
}

// never is a bound that no job reaches: about 292 years.
const never = time.Duration(math.MaxInt64)

// job is what a helper does. do recovers from panics.
type job interface{ do() }

// newHelper returns a helper that has nothing to do.
func (s *Session) newHelper() *helper {
	if h := s.helper.Swap(nil); h != nil {
		return h
	}
	h := &helper{jobs: make(chan job, 1), done: make(chan struct{}, 1)}
	go h.run() // ends when jobs is closed: see freeHelper, endHelper and abandon
	return h
}

// run does jobs until the channel is closed.
func (h *helper) run() {
	growStack()
	ended := true
	defer func() {
		if !ended { // the job called runtime.Goexit
			h.gone = true
			h.done <- struct{}{}
		}
	}()
	for j := range h.jobs {
		ended = false
		j.do()
		ended = true
		h.done <- struct{}{}
	}
}

// start gives the helper a job. It reports whether the job has already ended.
//
// It lets the helper run first. If the job ends at once, the turn needs no timer, and nobody
// has to wake the turn up.
func (h *helper) start(j job) bool {
	h.jobs <- j
	runtime.Gosched()
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// waitFor waits until the job has ended. It gives up if the job does not end within grace
// after the cancellation or after the bound, and then returns false.
func (h *helper) waitFor(cancelled <-chan struct{}, bound, grace time.Duration) bool {
	select {
	case <-h.done:
		return true
	case <-cancelled:
	case <-h.after(bound):
	}
	select {
	case <-h.done:
		return true
	case <-h.after(grace):
		return false
	}
}

// after returns a channel that gets a value after d. Only one such channel is valid at a
// time.
func (h *helper) after(d time.Duration) <-chan time.Time {
	if h.timer == nil {
		h.timer = time.NewTimer(d)
	} else {
		h.timer.Reset(d)
	}
	return h.timer.C
}

// freeHelper makes a helper available for the next request or call of the session. Call it
// only when the job has ended.
func (s *Session) freeHelper(h *helper) {
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.gone || !s.helper.CompareAndSwap(nil, h) {
		h.abandon()
	}
}

// endHelper ends the goroutine of a helper that has nothing to do.
func (s *Session) endHelper() {
	if h := s.helper.Swap(nil); h != nil {
		h.abandon()
	}
}

// abandon stops waiting for the helper. Its goroutine ends with its job.
func (h *helper) abandon() {
	if h.timer != nil {
		h.timer.Stop()
	}
	close(h.jobs)
}

// growStack makes the stack of a new goroutine larger while it is almost empty. Growing the
// stack later, while a tool decodes JSON, was most of the cost of calling a tool.
//
//go:noinline
func growStack() byte { //nolint:unparam // the result keeps the compiler from leaving the room out
	var room [6 << 10]byte
	return room[len(os.Args)&1]
}
