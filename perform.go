package belay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay/hook"
)

// perform runs the calls that may run, and stores their results. A call that has
// to wait parks the turn, once those are done that need not wait for it.
func (t *turn) perform(b *batch) EndReason {
	if err := t.approveHere(b); err != nil {
		return t.failed(err)
	}
	if err := t.runCalls(b); err != nil {
		return t.failed(err)
	}
	for _, c := range b.calls[b.free():] {
		if c.state == CallStarted { // it was about to, and did not
			c.state = CallJudged
		}
	}
	t.gather(b)
	if t.ctx.Err() != nil {
		b.abort("The turn was aborted before this call was answered.")
		t.cancelled(b, "the turn was aborted before it was decided")
		t.gather(b)
	}
	t.letGo(b)
	t.tellResults(b)
	t.tellShown()
	if !b.settled() {
		return t.park(b)
	}
	end := t.after(b)
	t.closing(end)
	if err := t.commit(t.withAppended(append(t.carried[:0], b.results())), b.records(false), b.approvals()); err != nil {
		return t.failed(err)
	}
	return end
}

// after says how the turn ends with these results, if it does.
func (t *turn) after(b *batch) EndReason {
	if t.ctx.Err() != nil {
		return t.failed(context.Cause(t.ctx))
	}
	stuck := t.circling(b)
	final := false
	for _, c := range b.calls {
		if c.failure != nil { // a hook that fails closed ends the turn, when what was done is stored
			return t.failed(c.failure)
		}
		if c.halted {
			return EndBlocked
		}
		final = final || c.result.Final
	}
	switch {
	case final:
		return EndTurn
	case stuck:
		return EndStuck
	default:
		return ""
	}
}

// park stores what is done and ends the turn until someone resumes it.
func (t *turn) park(b *batch) EndReason {
	t.state.Parked = true
	for _, c := range b.calls {
		if c.result == nil && c.approval != nil && c.approval.Decided == nil {
			t.waits = append(t.waits, t.question(c))
		}
	}
	if err := t.commit(nil, b.records(false), b.approvals()); err != nil {
		return t.failed(err)
	}
	t.err = t.childMissing() // it waits for nobody to decide
	return EndParked
}

// serial reports whether the call is a barrier. One that waits may be, if its tool is not
// there to tell.
func (c *call) serial() bool {
	if c.tool == nil {
		return c.state == CallParked
	}
	return c.tool.traits.Serial
}

// each does something for several calls at a time, each on a goroutine of its
// own, and returns when all are done. One call needs none: it has the turn's. A
// call that comes to a sudden end is told so.
func (t *turn) each(calls []*call, do func(*turn, *call), sudden func(*call, any)) {
	switch len(calls) {
	case 0:
	case 1:
		t.guard(calls[0], do, sudden)
	default:
		t.eachOf(calls, do, sudden)
	}
}

func (t *turn) eachOf(calls []*call, do func(*turn, *call), sudden func(*call, any)) {
	var wg sync.WaitGroup
	room := make(chan struct{}, t.agent.opts.Limits.Parallel)
	for _, c := range calls {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			t.guard(c, do, sudden)
		})
	}
	wg.Wait()
}

func (t *turn) guard(c *call, do func(*turn, *call), sudden func(*call, any)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		p := recover()
		if p == nil {
			p = "runtime.Goexit was called"
		}
		sudden(c, p)
	}()
	do(t, c)
	returned = true
}

// runOne runs a call and everything that follows on it: interceptors, tool.post, the
// bound on its size. Its event follows with tellResult.
func (t *turn) runOne(c *call) {
	if t.ctx.Err() != nil {
		c.answer(Failed(ClassAborted, "The turn was aborted before this call started."))
		return
	}
	if !t.stillThere(c) {
		return
	}
	start := time.Now()
	c.begun = false
	result, err := t.invoke(c)
	if park, ok := errors.AsType[*ParkError](err); ok {
		c.state, c.Wait, c.Resumes, c.begun = CallParked, park.Wait, park.Wait, true
		return
	}
	result.Text = validText(result.Text)
	took := time.Since(start)
	result = t.interceptResult(c, result)
	if len(result.Text) <= t.resultLimit(c) && t.keepsBeforePost(c) {
		kept := t.fit(c, result)
		c.returned = &kept
		c.keep(c)
	}
	c.answer(t.askAfter(c, result, took))
}

// keepsBeforePost reports whether the call's result is stored before tool.post is asked
// about it: a hook there may take long, and a process that is killed meanwhile must not
// lose what the tool did. Where a hook may rewrite results, nothing is stored that it has
// not seen.
func (t *turn) keepsBeforePost(c *call) bool {
	return ToolPost.Slow(t.snap) &&
		ToolPost.Slow(t.snap, ToolResult{newInput(t.scope, toolResult{ID: c.ID, Tool: c.Tool})}) &&
		!slices.ContainsFunc(ToolPost.Plan(t.snap).Entries, func(e hook.PlanEntry) bool { return e.Rewrites })
}

// tellResult emits the event of a result, unless it was emitted before.
func (t *turn) tellResult(c *call) {
	if c.result != nil && !c.told {
		c.told = true
		t.emit(Event{Kind: EventToolUseResult, Call: c.part, Result: c.result})
	}
}

// flight is a tool's run on a goroutine of its own.
type flight struct {
	ctx  boundContext
	tool Tool
	call Invocation // the tool's to keep
	over Controls   // the turn
	done chan struct{}
	returned
}

// returned is what came back from a tool.
type returned struct {
	result Result
	err    error
}

// invoke calls the tool on a goroutine of its own, which is left behind if the
// tool heeds neither its timeout nor an abort.
func (t *turn) invoke(c *call) (Result, error) {
	parent, bound := t.ctx, c.tool.traits.Timeout
	if bound <= 0 {
		bound = math.MaxInt64 // 292 years
	}
	if c.tool.traits.MustFinish {
		parent = t.base
	}
	f := &flight{tool: c.tool, call: c.Invocation, done: make(chan struct{})}
	f.call.Input = bytes.Clone(c.Input)
	f.over.turn, f.over.call = t, c.ID
	f.call.controls = &f.over
	defer f.over.close()
	f.ctx.bind(parent, bound)
	defer f.ctx.end()
	late := time.NewTimer(bound)
	defer late.Stop()
	go f.fly()
	select {
	case <-f.done:
		return f.understand(&f.ctx, parent, bound)
	case <-parent.Done():
	case <-late.C:
	}
	late.Reset(t.agent.opts.Limits.Grace)
	select {
	case <-f.done:
		return f.understand(&f.ctx, parent, bound)
	case <-late.C:
		return returned{err: context.Cause(&f.ctx)}.understand(&f.ctx, parent, bound)
	}
}

// growStack makes room on a fresh stack while there is next to nothing on it to
// copy: growing it later, in the middle of a tool that decodes JSON, is what
// calling a tool mostly cost.
//
//go:noinline
func growStack() byte { //nolint:unparam // the result keeps the compiler from leaving the room out
	var room [6 << 10]byte
	return room[len(os.Args)&1]
}

var errGoexit = errors.New("the tool ended its goroutine: runtime.Goexit was called")

// fly calls the tool and survives what it does.
func (f *flight) fly() {
	growStack()
	f.err = errGoexit
	defer func() {
		if p := recover(); p != nil {
			f.returned = returned{err: fmt.Errorf("the tool panicked: %v", p)}
		}
		close(f.done)
	}()
	f.result, f.err = f.tool.Call(&f.ctx, &f.call)
}

// understand makes a result of whatever a tool returned.
func (r returned) understand(ctx, turn context.Context, bound time.Duration) (Result, error) {
	_, parks := errors.AsType[*ParkError](r.err)
	switch {
	case r.err == nil && (ctx.Err() == nil || turn.Err() != nil): // it finished, be it while it was being cancelled
		if r.result.IsError && r.result.Class == "" {
			r.result.Class = ClassFailed
		}
		return r.result, nil
	case parks:
		return Result{}, r.err
	case ctx.Err() != nil && turn.Err() != nil:
		return Failed(ClassAborted, "The turn was aborted while this call was running. Whether it had an effect is not known."), nil //nolint:nilerr // the result tells
	case ctx.Err() != nil:
		return Failed(ClassTimeout, fmt.Sprintf("The tool did not answer within %s and was cancelled. Whether it had an effect is not known.", bound)), nil //nolint:nilerr // likewise
	default:
		return Failed(ClassFailed, r.err.Error()), nil
	}
}

// askAfter asks tool.post about a result. Where a hook rewrites it, what it does
// not know of goes too.
func (t *turn) askAfter(c *call, r Result, took time.Duration) Result {
	if !ToolPost.Active(t.snap) {
		return r
	}
	ctx, cancel := t.afterAbort()
	defer cancel()
	outcome, err := ToolPost.Dispatch(ctx, t.snap, ToolResult{newInput(t.scope, toolResult{
		ID: c.ID, Tool: c.Tool, Input: rawJSON(c.Input), Text: r.Text, IsError: r.IsError, Class: r.Class, Latency: took, soFar: t.so(),
	})})
	c.pending = t.aside(c.pending, outcome.Output.Aside)
	c.diagnostics = append(c.diagnostics, t.showFailures(outcome.Diagnostics)...)
	if outcome.Output.Result != nil {
		r.Text, r.Media, r.Render = validText(*outcome.Output.Result), nil, nil
	}
	if _, ok := errors.AsType[*hook.FailureError](err); ok {
		c.failure = err
	}
	return r
}
