package hook

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay/hook/codes"
)

// The states of a run on its own goroutine. The run changes pending to finished, or the
// dispatch changes it to abandoned. The first change counts: the answer of an abandoned run
// is never used.
const (
	pending int32 = iota
	finished
	abandoned
)

// run is a handler on its own goroutine. A handler may keep only its context after it
// returns, so the run can be reused, unless it was abandoned.
type run struct {
	begin func()      // calls main; kept, so that starting the goroutine allocates nothing
	done  chan<- bool // the channel of its crew

	ctx    *runContext
	e      *entry
	snap   *Snapshot
	in     any
	out    Output
	err    error
	failed *Problem // a panic or Goexit
	state  atomic.Int32
	told   bool // its timeout has passed and its context was cancelled, but the dispatch still waits for it
	start  int64
	ended  int64
}

// crew holds what a stage needs to run handlers and wait for them. Crews belong to a plan
// and are reused.
type crew struct {
	waiter
	// runs are the current runs. The slice's capacity holds more: runs for reuse, or nil.
	runs []*run
}

// waiter lets a dispatch wait. Its channel gets true for each run that finishes in time,
// and false when the timer fires.
//
// The timer is not stopped when a dispatch ends, because most dispatches end long before
// the timer fires. The next dispatch resets the timer only if it would fire too late. A
// dispatch that gets the signal of an older timer finds no deadline that has passed, and
// sets the timer again.
type waiter struct {
	done      chan bool
	timer     *time.Timer
	rings     atomic.Int64 // when the timer fires, or 0 if it is not set
	stopClock func() bool  // stops the timer of a test's clock, which is used instead of timer
}

// newCrew returns a crew from the pool, or makes one.
func (p *phasePlan) newCrew() *crew {
	if c, ok := p.crews.Get().(*crew); ok {
		return c
	}
	c := &crew{runs: make([]*run, 0, p.widest)}
	c.done = make(chan bool, p.widest+1) // one place for each run, and one for the timer
	c.timer = time.AfterFunc(time.Hour, c.ring)
	c.timer.Stop()
	return c
}

// add adds a run to the crew and returns it.
func (c *crew) add() *run {
	n := len(c.runs)
	c.runs = c.runs[:n+1]
	if c.runs[n] == nil {
		r := &run{done: c.done}
		r.begin = r.main
		c.runs[n] = r
	}
	return c.runs[n]
}

// dismiss prepares a crew for reuse. It clears the crew's runs, and drops abandoned runs.
func (p *phasePlan) dismiss(c *crew) {
	for i, r := range c.runs {
		if r.state.Load() == abandoned {
			c.runs[i] = nil
			continue
		}
		*r = run{begin: r.begin, done: r.done}
	}
	c.runs = c.runs[:0]
	p.crews.Put(c)
}

// ring wakes the dispatch, unless a signal is already waiting.
func (w *waiter) ring() {
	w.rings.Store(0)
	select {
	case w.done <- false:
	default:
	}
}

// overlap starts the handlers of a stage, waits for each up to its timeout, and handles
// their answers in plan order.
func (d *dispatch) overlap(st *stage) {
	if st.from > 0 { // otherwise begin has just read the clock
		d.mark = d.rt.now()
	}
	var c *crew
	for i := st.from; i < st.to; i++ {
		if !d.startable(i) {
			continue
		}
		if c == nil {
			c = d.plan.newCrew()
		}
		c.add().e = &d.plan.entries[i]
	}
	if c == nil {
		return
	}
	for _, r := range c.runs { // startable has written the started records by now
		r.ctx = &runContext{parent: d.ctx, rt: d.rt}
		r.snap, r.in, r.start = d.snap, d.in, d.mark
		if timeout := r.e.sub.opts.Timeout; timeout > 0 {
			r.ctx.deadline = later(d.mark, timeout)
		}
		go r.begin() // the goroutine ends when the handler returns
	}
	d.await(c)
	for _, r := range c.runs {
		d.collect(r)
	}
	d.plan.dismiss(c)
	if st.to < len(d.plan.entries) {
		d.mark = d.rt.now()
	}
}

// startable reports whether the handler at an index may start. If the handler matches but
// may not start, startable records that. A panic of the phase's own functions counts as a
// failure of the handler.
func (d *dispatch) startable(at int) (ok bool) {
	e := &d.plan.entries[at]
	defer func() {
		if v := recover(); v != nil {
			ok = false
			d.fail(e, d.mark, 0, panicked(v))
		}
	}()
	if e.pos > d.stop || d.cancelled() {
		d.skip(e)
		return false
	}
	if !d.matches(e) {
		return false
	}
	if alive := e.abandoned.Load(); alive >= int32(d.rt.opts.Abandoned) {
		d.fail(e, d.mark, 0, Problem{
			Code: codes.Quarantined, Err: fmt.Errorf("not started: %d earlier runs did not stop after their timeout and still run", alive),
		})
		return false
	}
	return d.evidence(at)
}

// main runs the handler.
func (r *run) main() {
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
		done := r.done // read r.done before the signal: after it, the crew may reuse the run
		if r.state.CompareAndSwap(pending, finished) {
			done <- true // never blocks: the channel has room for every run
		} else {
			r.e.abandoned.Add(-1)
			r.snap.drop()
		}
	}()
	r.out, r.err = r.e.handle(r.ctx, r.in)
	returned = true
}

// await waits until every run has finished or was abandoned.
func (d *dispatch) await(c *crew) {
	left := len(c.runs)
	// Let the handlers run first. If they return at once, as most do, nobody has to wake this
	// goroutine up.
	runtime.Gosched()
	for len(c.done) > 0 {
		if <-c.done {
			left--
		}
	}
	if left == 0 {
		return
	}
	cancelled := d.ctx.Done()
	now := d.mark // overlap has just read the clock
	for left > 0 {
		d.alarm(c, now)
		over := false // a run has finished
		if cancelled == nil {
			over = <-c.done
		} else {
			select {
			case over = <-c.done:
			case <-cancelled:
				// The dispatch still waits for blocking handlers, whose context is
				// cancelled. It abandons the handlers with a deadline.
				cancelled = nil
				left -= d.forsake(c.runs)
			}
		}
		c.stop()
		if over {
			left--
		}
		if left == 0 {
			return
		}
		now = d.rt.now()
		left -= d.expire(c.runs, now)
	}
}

// forsake abandons the runs of handlers with a deadline, and returns how many it abandoned.
func (d *dispatch) forsake(runs []*run) (left int) {
	for _, r := range runs {
		if r.e.sub.opts.Execution == Deadline && r.abandon(context.Cause(d.ctx)) {
			left++
		}
	}
	return left
}

// expire abandons the runs whose deadline has passed, and returns how many it abandoned. It
// cancels the context of a blocking handler, and the dispatch still waits for that handler.
func (d *dispatch) expire(runs []*run, now int64) (left int) {
	for _, r := range runs {
		if r.ctx.deadline == 0 || now < r.ctx.deadline || r.told {
			continue
		}
		late := &timeoutError{r.e.sub.opts.Timeout}
		if r.e.sub.opts.Execution == Blocking {
			r.told = true
			r.ctx.cancel(late)
		} else if r.abandon(late) {
			left++
		}
	}
	return left
}

// alarm makes sure that the timer fires no later than the earliest deadline of the pending
// runs.
func (d *dispatch) alarm(c *crew, now int64) {
	var earliest int64
	for _, r := range c.runs {
		if r.ctx.deadline != 0 && !r.told && r.state.Load() == pending && (earliest == 0 || r.ctx.deadline < earliest) {
			earliest = r.ctx.deadline
		}
	}
	if earliest == 0 {
		return
	}
	wait := time.Duration(max(earliest-now, 0))
	if d.rt.clock != nil {
		c.stopClock = d.rt.clock.AfterFunc(wait, c.ring)
		return
	}
	if rings := c.rings.Load(); rings == 0 || rings > earliest {
		c.rings.Store(earliest)
		c.timer.Reset(wait)
	}
}

// stop stops the timer of a test's clock.
func (w *waiter) stop() {
	if w.stopClock != nil {
		w.stopClock()
		w.stopClock = nil
	}
}

// abandon abandons a run, and reports whether the run was still pending.
func (r *run) abandon(cause error) bool {
	if r.state.Load() != pending {
		return false
	}
	r.e.abandoned.Add(1)
	r.snap.retain() // the run holds the snapshot until its handler returns
	if !r.state.CompareAndSwap(pending, abandoned) {
		r.e.abandoned.Add(-1)
		r.snap.drop()
		return false
	}
	r.ctx.cancel(cause)
	return true
}

// collect handles the outcome of a run that finished or was abandoned. If the output's
// Answer method panics, the handler has failed.
func (d *dispatch) collect(r *run) {
	defer func() {
		if v := recover(); v != nil {
			d.fail(r.e, r.start, r.ended-r.start, panicked(v))
		}
	}()
	if r.state.Load() == abandoned {
		p := Problem{Code: codes.Canceled, Err: errors.New("the turn was cancelled")}
		why := r.ctx.why()
		if late, ok := errors.AsType[*timeoutError](why); ok && why != context.Cause(d.ctx) { //nolint:errorlint // is it the turn's very cause
			p = Problem{Code: codes.Timeout, Err: late}
		}
		d.fail(r.e, r.start, d.rt.now()-r.start, p)
		return
	}
	took := r.ended - r.start
	r.ctx.cancel(nil)
	switch {
	case r.failed != nil:
		d.fail(r.e, r.start, took, *r.failed)
	case r.ctx.deadline != 0 && r.ended >= r.ctx.deadline:
		d.fail(r.e, r.start, took, Problem{Code: codes.Timeout, Err: &timeoutError{r.e.sub.opts.Timeout}})
	case d.quick && d.started == nil && r.err == nil && r.out == nil:
		d.room.next().set(r.e.installed, d.scope, d.room.base, d.room.seq(), r.start, took)
	default:
		d.answer(r.e, r.start, took, r.out, r.err)
	}
}
