package hook

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// The states of a run on its own goroutine. Whoever leaves pending first owns
// the outcome: a run that finishes after it was abandoned is late, and its
// answer is never used.
const (
	pending int32 = iota
	finished
	abandoned
)

// run is a handler on a goroutine of its own. It is the handler's context too,
// which saves an allocation.
type run[In any, Out Output] struct {
	runContext
	e      *entry[In, Out]
	snap   *Snapshot
	in     In
	out    Out
	err    error
	failed *Problem // a panic or Goexit
	state  atomic.Int32
	index  int32 // among the runs of its stage
	start  int64
	ended  int64
	told   bool // its timeout passed and it is still waited for
	wake   *waiter
}

// waiter is what a dispatch waits with: one channel on which runs that finish
// in time send their index, and the alarm sends ring.
//
// Waiters are reused, and so is their alarm: it is left running when a dispatch
// ends and set again only if it would ring too late, because most dispatches
// end long before it does. Whoever hears an alarm that is not theirs looks at
// the deadlines, finds none due and sets it again.
type waiter struct {
	done      chan int32
	timer     *time.Timer
	rings     atomic.Int64 // when the timer rings, or 0 if it may not
	stopClock func() bool  // in place of timer, with a clock of the test's
}

const ring = -1

// newWaiter takes the snapshot's waiter, or makes one.
func (s *Snapshot) newWaiter(n int) *waiter {
	if w := s.spare.Swap(nil); w != nil && cap(w.done) > n {
		return w
	}
	if w, ok := s.rt.waiters.Get().(*waiter); ok && cap(w.done) > n {
		return w
	}
	w := &waiter{done: make(chan int32, max(n, 16)+1)}
	w.timer = time.AfterFunc(time.Hour, w.ring)
	w.timer.Stop()
	return w
}

// ring wakes the dispatch, unless it has something to wake up for already.
func (w *waiter) ring() {
	w.rings.Store(0)
	select {
	case w.done <- ring:
	default:
	}
}

// overlap starts the handlers of a stage, waits for them as long as each may
// take, and takes their answers in plan order.
func (d *dispatch[In, Out]) overlap(st *typedStage) {
	var few [1]*run[In, Out]
	runs := few[:0]
	var w *waiter
	if st.from > 0 { // else the dispatch has just read the clock
		d.mark = d.rt.now()
	}
	for i := st.from; i < st.to; i++ {
		e := &d.plan.entries[i]
		if !d.startable(e) {
			continue
		}
		if w == nil {
			w = d.snap.newWaiter(st.to - st.from)
		}
		r := &run[In, Out]{e: e, snap: d.snap, in: d.in, start: d.mark, wake: w, index: int32(len(runs))}
		r.parent = d.ctx //nolint:fatcontext // each run has its own
		if timeout := e.sub.opts.Timeout; timeout > 0 {
			r.deadline = later(d.mark, timeout)
			r.rt = d.rt
		}
		runs = append(runs, r)
		go r.main() // owned by the run: it ends when the handler returns
	}
	if w == nil {
		return
	}
	d.await(w, runs)
	if !d.snap.spare.CompareAndSwap(nil, w) { // dispatches overlap: another has put its own there
		d.rt.waiters.Put(w)
	}
	for _, r := range runs {
		d.collect(r)
	}
	if st.to < len(d.plan.entries) {
		d.mark = d.rt.now()
	}
}

// startable reports whether a handler is to be started, and records it if it
// is not though it might have been. A panic of the phase's own functions counts
// as the handler's.
func (d *dispatch[In, Out]) startable(e *entry[In, Out]) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			ok = false
			d.fail(e, d.mark, 0, panicked(v))
		}
	}()
	if e.pos > d.stop || d.done != nil && d.cancelled() {
		d.skip(e)
		return false
	}
	if !d.matches(e) {
		return false
	}
	if alive := e.abandoned.Load(); alive >= int32(d.rt.opts.Abandoned) {
		d.fail(e, d.mark, 0, Problem{
			Code: CodeQuarantined, Err: fmt.Errorf("%d abandoned runs are still alive", alive),
		})
		return false
	}
	return true
}

// main runs the handler. It is the goroutine's first frame.
func (r *run[In, Out]) main() {
	returned := false
	defer func() {
		if !returned {
			problem := goexited()
			if v := recover(); v != nil {
				problem = panicked(v)
			}
			r.failed = &problem
		}
		r.ended = r.snap.rt.now()
		wake, index := r.wake, r.index
		if r.state.CompareAndSwap(pending, finished) {
			wake.done <- index // never blocks: there is room for every run
		} else {
			r.e.abandoned.Add(-1)
			r.snap.drop()
		}
	}()
	r.out, r.err = r.e.handle(r, r.in)
	returned = true
}

// await waits until every run has finished or was abandoned.
func (d *dispatch[In, Out]) await(w *waiter, runs []*run[In, Out]) {
	left := len(runs)
	cancelled := d.done
	now := d.mark // just read
	for left > 0 {
		d.alarm(w, runs, now)
		var token int32
		if cancelled == nil {
			token = <-w.done
		} else {
			select {
			case token = <-w.done:
			case <-cancelled:
				// Handlers that must be waited for see their context cancelled
				// and are waited for; the others are left behind.
				cancelled, token = nil, ring
				left -= d.forsake(runs)
			}
		}
		w.stop()
		if token != ring {
			left--
		}
		if left == 0 {
			return
		}
		now = d.rt.now()
		left -= d.expire(runs, now)
	}
}

// forsake abandons the runs that need not be waited for, and counts them.
func (d *dispatch[In, Out]) forsake(runs []*run[In, Out]) (left int) {
	for _, r := range runs {
		if r.e.sub.opts.Execution == Deadline && r.abandon(context.Cause(d.ctx)) {
			left++
		}
	}
	return left
}

// expire gives up the runs whose deadline has passed, and counts them. Blocking
// ones are told and still waited for.
func (d *dispatch[In, Out]) expire(runs []*run[In, Out], now int64) (left int) {
	for _, r := range runs {
		if r.deadline == 0 || now < r.deadline || r.told {
			continue
		}
		late := &TimeoutError{r.e.sub.opts.Timeout}
		if r.e.sub.opts.Execution == Blocking {
			r.told = true
			r.cancel(late)
		} else if r.abandon(late) {
			left++
		}
	}
	return left
}

// alarm sees to it that the alarm rings at the earliest deadline of the runs
// still pending, or before.
func (d *dispatch[In, Out]) alarm(w *waiter, runs []*run[In, Out], now int64) {
	var earliest int64
	for _, r := range runs {
		if r.deadline != 0 && !r.told && r.state.Load() == pending && (earliest == 0 || r.deadline < earliest) {
			earliest = r.deadline
		}
	}
	if earliest == 0 {
		return
	}
	wait := time.Duration(max(earliest-now, 0))
	if d.rt.clock != nil {
		w.stopClock = d.rt.clock.AfterFunc(wait, w.ring)
		return
	}
	if rings := w.rings.Load(); rings == 0 || rings > earliest {
		w.rings.Store(earliest)
		w.timer.Reset(wait)
	}
}

// stop ends an alarm on the test's clock.
func (w *waiter) stop() {
	if w.stopClock != nil {
		w.stopClock()
		w.stopClock = nil
	}
}

// abandon gives a pending run up, and reports whether it was still pending.
func (r *run[In, Out]) abandon(cause error) bool {
	if r.state.Load() != pending {
		return false
	}
	r.e.abandoned.Add(1)
	r.snap.retain() // until it returns, it holds what it was started with
	if !r.state.CompareAndSwap(pending, abandoned) {
		r.e.abandoned.Add(-1)
		r.snap.drop()
		return false
	}
	r.cancel(cause)
	return true
}

// collect takes the outcome of a run that finished or was abandoned. An output
// that panics when it is asked for its answer is a failure of the handler.
func (d *dispatch[In, Out]) collect(r *run[In, Out]) {
	defer func() {
		if v := recover(); v != nil {
			d.fail(r.e, r.start, r.ended-r.start, panicked(v))
		}
	}()
	if r.state.Load() == abandoned {
		p := Problem{Code: CodeCanceled, Err: errors.New("the turn was cancelled")}
		why := r.why()
		if late, ok := errors.AsType[*TimeoutError](why); ok && why != context.Cause(d.ctx) { //nolint:errorlint // is it the turn's very cause
			p = Problem{Code: CodeTimeout, Err: late}
		}
		d.fail(r.e, r.start, d.rt.now()-r.start, p)
		return
	}
	took := r.ended - r.start
	r.cancel(nil)
	switch {
	case r.failed != nil:
		d.fail(r.e, r.start, took, *r.failed)
	case r.deadline != 0 && r.ended >= r.deadline:
		d.fail(r.e, r.start, took, Problem{Code: CodeTimeout, Err: &TimeoutError{r.e.sub.opts.Timeout}})
	default:
		d.answer(r.e, r.start, took, r.out, r.err)
	}
}
