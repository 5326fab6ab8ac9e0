package belay

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// resultWait is how long a finished result waits for its siblings before it is stored.
// A fast batch is one commit. A slow call never causes the results of finished calls to
// be lost.
const resultWait = 50 * time.Millisecond

// runCalls runs the calls of a batch that may run: those of one group in parallel, and a
// serial call alone. If it returns the error of a commit, running calls have ended and no
// other was started.
func (t *turn) runCalls(b *batch) error {
	if len(b.calls) == 1 { // it does not wait for others
		c := b.calls[0]
		if !c.mayRun() || b.free() == 0 {
			return nil
		}
		err := t.commitStarts(b, c)
		if err != nil {
			return err
		}
		c.keep = func(*call) { err = t.commitCalls(b) }
		t.callGuarded(c, (*turn).runOne, panicWhileRunning)
		t.emitResult(c)
		t.emitHeld()
		return err
	}
	r := &batchRun{turn: t, batch: b, progress: make(chan callProgress, 3*len(b.calls)), timer: time.NewTimer(resultWait)}
	r.timer.Stop()
	defer r.timer.Stop()
	defer r.drain()
	for from := 0; from < b.free() && r.err == nil; {
		to := from + 1
		if !b.calls[from].serial() {
			for to < b.free() && !b.calls[to].serial() {
				to++
			}
		}
		r.group(b.calls[from:to])
		from = to
	}
	return r.err
}

func panicWhileRunning(c *call, value any) {
	c.answer(Failed(ClassFailed, fmt.Sprintf("panic while running the call: %v", value)))
}

// mayRun reports whether the call has neither a result nor something to wait for.
func (c *call) mayRun() bool { return c.result == nil && c.state != CallParked }

// commitStarts stores calls as started that are not yet stored so: a call is recorded
// before it runs.
func (t *turn) commitStarts(b *batch, calls ...*call) error {
	if !slices.ContainsFunc(calls, func(c *call) bool { return c.state == CallJudged }) {
		return nil
	}
	for _, c := range calls {
		c.state = CallStarted
	}
	return t.commitCalls(b)
}

// batchRun runs the calls of a batch with several calls. It belongs to the turn's
// goroutine, which waits for the goroutines of the calls and stores their results.
type batchRun struct {
	*batch
	turn     *turn
	progress chan callProgress
	running  int
	timer    *time.Timer
	armed    bool
	err      error // of a commit: nothing more is started or stored
}

// callProgress reports the progress of a call.
type callProgress struct {
	*call
	at progressPoint
}

type progressPoint uint8

const (
	callReturned progressPoint = iota // its tool has returned, and it waits until that is stored
	callFinished                      // it has its result
	callTold                          // its event was emitted: its goroutine ends
)

// group runs calls in parallel, up to the limit, until all have ended.
func (r *batchRun) group(calls []*call) {
	waiting := slices.DeleteFunc(slices.Clone(calls), func(c *call) bool { return !c.mayRun() })
	for len(waiting) > 0 || r.running > 0 {
		if room := r.turn.agent.opts.Limits.Parallel - r.running; room > 0 && len(waiting) > 0 {
			n := min(room, len(waiting))
			r.start(waiting[:n])
			waiting = waiting[n:]
		}
		if r.err != nil {
			waiting = nil
			if r.running == 0 {
				return
			}
		}
		select {
		case p := <-r.progress:
			switch p.at {
			case callReturned:
				r.keepReturned(p.call)
			case callFinished:
				p.running = false
				r.arm()
			case callTold:
				r.running--
			}
		case <-r.timer.C:
			r.armed = false
			r.save()
		}
	}
}

// start runs each call on its own goroutine.
func (r *batchRun) start(calls []*call) {
	if r.err = r.turn.commitStarts(r.batch, calls...); r.err != nil {
		return
	}
	for _, c := range calls {
		c.running, c.ran, c.keep, c.kept = true, true, r.keep, make(chan struct{})
		r.running++
		go r.run(c) // ends with the call, and group waits for it
	}
	if slices.ContainsFunc(r.calls, (*call).notBegun) {
		r.arm()
	}
}

// run runs a call and reports its progress in every case, even if a hook calls
// runtime.Goexit.
func (r *batchRun) run(c *call) {
	defer func() {
		r.progress <- callProgress{c, callFinished}
		r.turn.emitResult(c)
		r.turn.emitHeld()
		r.progress <- callProgress{c, callTold}
	}()
	growStack()
	r.turn.callGuarded(c, (*turn).runOne, panicWhileRunning)
}

// keepReturned stores what a tool returned, and lets its call continue.
func (r *batchRun) keepReturned(c *call) {
	defer close(c.kept) // whatever the store does
	c.running = false   // it waits: nobody else changes it
	r.commit()
	c.running = true
}

// drain waits for the running calls if a panic of the store ends group early.
func (r *batchRun) drain() {
	for r.running > 0 {
		switch p := <-r.progress; p.at {
		case callReturned:
			close(p.kept)
		case callFinished:
		case callTold:
			r.running--
		}
	}
}

// keep lets the turn's goroutine store what a tool returned, and waits for that.
func (r *batchRun) keep(c *call) {
	r.progress <- callProgress{c, callReturned}
	<-c.kept
}

// arm schedules a call of save, unless one is scheduled.
func (r *batchRun) arm() {
	if !r.armed {
		r.armed = true
		r.timer.Reset(resultWait)
	}
}

// notBegun reports whether the call is recorded as started but has not started.
func (c *call) notBegun() bool {
	return !c.running && !c.ran && c.result == nil && c.state == CallStarted
}

// save stores finished results while other calls run, and records that waiting calls have
// not begun.
func (r *batchRun) save() {
	changed := false
	for i, c := range r.calls {
		if c.running {
			continue // its goroutine owns it
		}
		if c.notBegun() {
			c.state = CallJudged
		}
		changed = changed || c.state != r.stored[i].State || c.result != r.stored[i].Result
	}
	if changed {
		r.commit()
	}
}

// commit stores the calls as they are, unless an earlier commit failed.
func (r *batchRun) commit() {
	if r.err == nil {
		r.err = r.turn.commitCalls(r.batch)
	}
}

// commitCalls stores the calls of a batch while some of them run, with the effects of the
// finished ones on the session. The session's own state is updated when all are done, so
// that the effects are in call order.
func (t *turn) commitCalls(b *batch) error {
	if b.isDirect() {
		return nil
	}
	records := slices.Clone(b.stored)
	state, turn := t.session.state, *t.state
	state.Turn = &turn
	state.Pending, turn.Appended = slices.Clip(state.Pending), slices.Clip(turn.Appended)
	t.wishes.mu.Lock()
	turn.Usage, turn.Children = turn.Usage.add(t.wishes.spent), maps.Clone(t.wishes.children)
	for _, w := range t.wishes.injected {
		if b.finished(w.call) {
			turn.Appended = append(turn.Appended, w.Injection)
		}
	}
	for _, w := range t.wishes.pending {
		if b.finished(w.call) {
			state.Pending = append(state.Pending, w.PendingReminder)
		}
	}
	t.wishes.mu.Unlock()
	for i, c := range b.calls {
		if !c.running {
			if records[i] = b.record(c); c.result == nil {
				records[i].Result = c.returned
			}
			state.Pending = append(state.Pending, c.pending...)
		}
	}
	b.stored = records
	t.write.commit = Commit{Calls: records, Approvals: b.approvals(), State: &state}
	return t.store()
}

// finished reports whether a call of the batch has ended, by its id.
func (b *batch) finished(id string) bool {
	return slices.ContainsFunc(b.calls, func(c *call) bool { return c.ID == id && !c.running && c.result != nil })
}
