package belay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay/hook"
)

// runBatch runs the calls that may run and stores their results. If a call must wait,
// runBatch first runs the calls that need not wait for it, and then parks the turn.
func (t *turn) runBatch(b *batch) EndReason {
	if err := t.approveHere(b); err != nil {
		return t.fail(err)
	}
	for again := true; again; {
		err := t.runCalls(b)
		if err == nil {
			again, err = t.askForTools(b)
		}
		if err != nil {
			return t.fail(err)
		}
	}
	b.unstart()
	t.gather(b)
	if t.ctx.Err() != nil {
		b.abort("The turn was aborted before this call started.")
		t.cancelled(b, "the turn was aborted before anybody decided")
		t.gather(b)
	}
	t.abandonCalls(b)
	t.emitResults(b)
	t.emitHeld()
	if !b.settled() {
		return t.park(b)
	}
	end := t.endAfter(b)
	t.markEnd(end)
	if err := t.commit(t.withAppended(append(t.room.carried[:0], b.results())), b.records(false), b.approvals()); err != nil {
		return t.fail(err)
	}
	return end
}

// endAfter returns how the turn ends after these results. It returns "" if the turn
// continues.
func (t *turn) endAfter(b *batch) EndReason {
	if t.ctx.Err() != nil {
		return t.fail(context.Cause(t.ctx))
	}
	stuck := t.isStuck(b)
	final := false
	for _, c := range b.calls {
		if c.failure != nil { // if a hook failed closed, the turn ends after the results are stored
			return t.fail(c.failure)
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

// park stores the results so far and ends the turn parked.
func (t *turn) park(b *batch) EndReason {
	t.state.Parked = true
	for _, c := range b.calls {
		switch {
		case c.result != nil:
		case c.approval != nil && c.approval.Decided == nil:
			t.waits = append(t.waits, t.question(c))
		case c.state == CallParked && !slices.Contains(t.askedBelow, c.ID):
			t.waits = append(t.waits, t.question(c))
			t.state.Waits = append(t.state.Waits, ParkedCall{Call: c.ID, Tool: c.Tool, Wait: c.Wait})
		}
	}
	if err := t.commit(nil, b.records(false), b.approvals()); err != nil {
		return t.fail(err)
	}
	t.end.err = t.childMissing() // a child that misses a tool is an error, not a question
	return EndParked
}

// serial reports whether the call must run alone. A parked call whose tool is missing may
// be serial, so serial reports true to be safe.
func (c *call) serial() bool {
	if c.tool == nil {
		return c.state == CallParked
	}
	return c.tool.traits.Serial
}

// forEach runs the function do for all tool calls in parallel, and returns when all have
// ended. For a single tool call it runs do on the turn's goroutine. If do panics, it runs
// onPanic.
func (t *turn) forEach(calls []*call, do func(*turn, *call), onPanic func(*turn, *call, any)) {
	switch len(calls) {
	case 0:
	case 1:
		t.callGuarded(calls[0], do, onPanic)
	default:
		t.forEachParallel(calls, do, onPanic)
	}
}

func (t *turn) forEachParallel(calls []*call, do func(*turn, *call), onPanic func(*turn, *call, any)) {
	var wg sync.WaitGroup
	room := make(chan struct{}, t.agent.opts.Limits.Parallel)
	for _, c := range calls {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			growStack()
			t.callGuarded(c, do, onPanic)
		})
	}
	wg.Wait()
}

func (t *turn) callGuarded(c *call, do func(*turn, *call), onPanic func(*turn, *call, any)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		p := recover()
		if p == nil {
			p = "runtime.Goexit was called"
		}
		onPanic(t, c, p)
	}()
	do(t, c)
	returned = true
}

// runOne runs a call: the tool, the interceptors, tool.post and the limit on the result's
// size. The caller emits the event of the result.
func (t *turn) runOne(c *call) {
	if t.ctx.Err() != nil {
		c.answer(Failed(ClassAborted, "The turn was aborted before this call started."))
		return
	}
	if !t.stillThere(c) {
		return
	}
	start := time.Now()
	ctx, span := t.followCall(t.contextOf(c), c)
	c.begun = false
	result, took, err := t.invoke(ctx, c, start)
	park, parks := errors.AsType[*parkError](err)
	if span != nil {
		returned := result // the copy is made only if somebody follows the turn
		span.Result, span.Suspended = &returned, parks || errors.Is(context.Cause(ctx), ErrHandedOver)
		t.endSpan(ctx, span)
		span.free()
	}
	if parks {
		c.state, c.Wait, c.Resumes, c.begun, c.question = CallParked, park.Wait, park.Wait, true, park.question
		return
	}
	result.Text = validText(result.Text)
	result = t.interceptResult(c, result)
	if len(result.Text) <= t.resultLimit(c) && t.keepsBeforePost(c) {
		kept := t.fit(c, result)
		c.returned = &kept
		c.keep(t)
	}
	c.answer(t.askAfter(c, result, took))
}

// keepsBeforePost reports whether the call's result is stored before tool.post fires. A
// hook of tool.post may be slow, and a killed process must not lose the result. If a hook
// may rewrite results, the result is stored only after the hook has run.
func (t *turn) keepsBeforePost(c *call) bool {
	return ToolPost.Slow(t.snap) &&
		ToolPost.Slow(t.snap, ToolResult{newInput(t.scope, toolResult{ID: c.ID, Tool: c.Tool})}) &&
		!slices.ContainsFunc(ToolPost.Plan(t.snap).Entries, func(e hook.PlanEntry) bool { return e.Rewrites })
}

// emitResult emits the event of a result once.
func (t *turn) emitResult(c *call) {
	if c.result != nil && !c.told {
		c.told = true
		t.reportResult(c)
		t.emit(Event{Kind: EventToolUseResult, Call: c.part, Result: c.result, unstored: c.direct})
	}
}

// flight is a run of a tool on the goroutine of a helper.
type flight struct {
	ctx  boundContext
	tool Tool
	call Invocation // the tool may keep it
	over Controls   // the controls of the turn
	returned
}

// returned is what a tool returned.
type returned struct {
	result Result
	err    error
}

// contextOf returns the context in which the call's tool runs.
func (t *turn) contextOf(c *call) context.Context {
	if c.tool.traits.MustFinish {
		return t.base
	}
	return t.ctx
}

// invoke calls the tool on the goroutine of a helper. If the tool ignores its timeout or an
// abort, invoke stops waiting for the goroutine. start is the present time. invoke returns
// how long the tool took.
func (t *turn) invoke(parent context.Context, c *call, start time.Time) (Result, time.Duration, error) {
	bound := c.tool.traits.Timeout
	if bound <= 0 {
		bound = never
	}
	f := &flight{tool: c.tool, call: c.Invocation}
	f.call.Input = bytes.Clone(c.Input)
	f.over.turn, f.over.call = t, c.ID
	f.call.controls = &f.over
	defer f.over.close()
	f.ctx.bind(parent, start, bound)
	f.ctx.call = &f.call
	defer f.ctx.end()
	f.err = errGoexit
	h := t.session.newHelper()
	if h.start(f) || h.waitFor(parent.Done(), bound, t.agent.opts.Limits.Grace) {
		t.session.freeHelper(h)
		now := time.Now()
		result, err := f.classify(parent, &f.ctx, now, bound)
		return result, now.Sub(start), err
	}
	h.abandon()
	now := time.Now()
	result, err := returned{err: context.Cause(&f.ctx)}.classify(parent, &f.ctx, now, bound)
	return result, now.Sub(start), err
}

var errGoexit = errors.New("the tool ended its goroutine: runtime.Goexit was called")

// do calls the tool and recovers from its panic.
func (f *flight) do() {
	defer func() {
		if p := recover(); p != nil {
			f.returned = returned{err: fmt.Errorf("the tool panicked: %v", p)}
		}
	}()
	f.result, f.err = f.tool.Call(&f.ctx, &f.call)
}

// classify converts the result and the error of a tool into a result for the model.
func (r returned) classify(turn context.Context, ctx *boundContext, now time.Time, bound time.Duration) (Result, error) {
	_, parks := errors.AsType[*parkError](r.err)
	switch {
	case r.err == nil && (ctx.errAt(now) == nil || turn.Err() != nil): // the tool finished, even if it was being cancelled
		if r.result.IsError && r.result.Class == "" {
			r.result.Class = ClassFailed
		}
		return r.result, nil
	case parks:
		return Result{}, r.err
	case ctx.errAt(now) != nil && turn.Err() != nil:
		return Failed(ClassAborted, "The turn was aborted while this call was running. The call may or may not have had an effect."), nil //nolint:nilerr // the result tells
	case ctx.errAt(now) != nil:
		return Failed(ClassTimeout, fmt.Sprintf("The tool did not return within %s and was cancelled. The call may or may not have had an effect.", bound)), nil //nolint:nilerr // likewise
	default:
		return Failed(ClassFailed, r.err.Error()), nil
	}
}

// askAfter fires tool.post with a result. If a hook rewrites the text, askAfter removes the
// media and the render data of the result, because the hook has not seen them.
func (t *turn) askAfter(c *call, r Result, took time.Duration) Result {
	if !ToolPost.Active(t.snap) {
		return r
	}
	ctx, cancel := t.afterAbort()
	defer cancel()
	outcome, err := ToolPost.Dispatch(ctx, t.snap, ToolResult{newInput(t.scope, toolResult{
		ID: c.ID, Tool: c.Tool, Input: rawJSON(c.Input), Text: r.Text, IsError: r.IsError, Class: r.Class, Latency: took, soFar: t.soFar(),
	})})
	c.pending = t.addAside(c.pending, outcome.Output.Aside)
	c.diagnostics = append(c.diagnostics, t.showFailures(outcome.Diagnostics)...)
	if outcome.Output.Result != nil {
		r.Text, r.Media, r.Render = validText(*outcome.Output.Result), nil, nil
	}
	if _, ok := errors.AsType[*hook.FailureError](err); ok {
		c.failure = err
	}
	return r
}
