package belay

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// resultWait is how long a finished result waits for other calls of the batch before it
// is stored. So a fast batch needs one commit, and finished results are not lost if the
// process ends during a slow call.
const resultWait = 50 * time.Millisecond

// runCalls runs the calls of a batch that may run. Calls between two serial calls run in
// parallel, and a serial call runs alone. If a commit fails, runCalls starts no more
// calls, waits for the running ones and returns the error.
func (t *turn) runCalls(b *batch) error {
	if len(b.calls) == 1 { // a single call needs no other goroutine
		c := b.calls[0]
		if !c.mayRun() || b.free() == 0 {
			return nil
		}
		if err := t.commitStarts(b, b.calls); err != nil {
			return err
		}
		c.batch, c.run = b, nil
		t.callGuarded(c, (*turn).runOne, panicWhileRunning)
		t.emitResult(c)
		t.emitHeld()
		return b.unkept
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

func panicWhileRunning(_ *turn, c *call, value any) {
	c.answer(Failed(ClassFailed, fmt.Sprintf("panic while running the call: %v", value)))
}

// mayRun reports whether the call has no result and waits for nothing.
func (c *call) mayRun() bool { return c.result == nil && c.state != CallParked }

// commitStarts stores the calls as started, if necessary. A call must be stored as started
// before it runs.
func (t *turn) commitStarts(b *batch, calls []*call) error {
	if !slices.ContainsFunc(calls, func(c *call) bool { return c.state == CallJudged }) {
		return nil
	}
	for _, c := range calls {
		c.state = CallStarted
	}
	return t.commitCalls(b)
}

// batchRun runs a batch with several calls. It belongs to the turn's goroutine, which waits
// for the goroutines of the calls and stores their results.
type batchRun struct {
	*batch
	turn     *turn
	progress chan callProgress
	running  int
	timer    *time.Timer
	armed    bool
	err      error // the error of a commit; after an error, batchRun starts and stores nothing
}

// callProgress reports the progress of a call.
type callProgress struct {
	*call
	at progressPoint
}

type progressPoint uint8

const (
	callReturned progressPoint = iota // the tool has returned, and the call waits until its result is stored
	callFinished                      // the call has its result
	callTold                          // the goroutine has emitted the event of the result and ends
)

// group runs calls in parallel, up to Limits.Parallel, until all have ended.
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

// start stores the calls as started, if necessary. Then it runs each call on its own
// goroutine.
func (r *batchRun) start(calls []*call) {
	if r.err = r.turn.commitStarts(r.batch, calls); r.err != nil {
		return
	}
	for _, c := range calls {
		c.running, c.ran, c.batch, c.run = true, true, r.batch, r
		r.running++
		go r.run(c) // ends with the call; group waits for it
	}
	if slices.ContainsFunc(r.calls, (*call).notBegun) {
		r.arm()
	}
}

// run runs a call and reports its progress, even if a hook calls runtime.Goexit.
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

// keepReturned stores the result of a tool. Then the call's goroutine continues with
// tool.post.
func (r *batchRun) keepReturned(c *call) {
	defer close(c.kept) // even if the store panics
	c.running = false   // the call's goroutine is waiting, so nobody else changes the call
	r.commit()
	c.running = true
}

// drain waits for the running calls if the store panics and group ends early.
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

// keep stores the result of a tool. If the call has its own goroutine, keep asks the
// turn's goroutine to store the result, and waits.
func (c *call) keep(t *turn) {
	if c.run == nil {
		c.batch.unkept = t.commitCalls(c.batch)
		return
	}
	c.kept = make(chan struct{})
	c.run.progress <- callProgress{c, callReturned}
	<-c.kept
}

// arm schedules a call of save, if none is scheduled.
func (r *batchRun) arm() {
	if !r.armed {
		r.armed = true
		r.timer.Reset(resultWait)
	}
}

// notBegun reports whether the call is stored as started but has not started.
func (c *call) notBegun() bool {
	return !c.running && !c.ran && c.result == nil && c.state == CallStarted
}

// save stores finished results while other calls run. It also resets the stored state of
// calls that were stored as started but have not started.
func (r *batchRun) save() {
	changed := false
	for i, c := range r.calls {
		if c.running {
			continue // the call's goroutine owns it
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

// commit stores the calls, unless an earlier commit failed.
func (r *batchRun) commit() {
	if r.err == nil {
		r.err = r.turn.commitCalls(r.batch)
	}
}

// commitCalls stores the calls of a batch while some of them run, and the reminders and
// messages of the finished calls. It does not change the session's state in memory,
// because that changes only when all calls are done, in call order.
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
	t.room.commit = Commit{Calls: records, Approvals: b.approvals(), State: &state}
	return t.store()
}

// finished reports whether the call with this id has ended.
func (b *batch) finished(id string) bool {
	return slices.ContainsFunc(b.calls, func(c *call) bool { return c.ID == id && !c.running && c.result != nil })
}
