package hook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/detach"
)

// inline runs the entries from d.at up to end on the caller's goroutine. The deferred guard
// recovers from a panic and records it. The dispatch then calls inline again for the
// entries after the handler that panicked.
func (d *dispatch) inline(end int) {
	defer d.guard()
	d.inside = true
	for ; d.at < end; d.at++ {
		e := &d.plan.entries[d.at]
		if e.pos > d.stop || d.cancelled() {
			d.skip(e)
			continue
		}
		if !e.plain {
			d.special(e)
			continue
		}
		out, err := e.handle(d.ctx, d.in)
		now := d.rt.now()
		start := d.mark
		d.mark = now
		if out == nil && err == nil && d.quick {
			d.room.next().set(e.installed, d.scope, d.room.base, d.room.seq(), start, now-start)
			continue
		}
		d.answer(e, start, now-start, out, err)
	}
	d.inside = false
}

// answer handles an error of a handler, or an answer that is not nil.
func (d *dispatch) answer(e *entry, start, took int64, out Output, err error) {
	if err != nil {
		work, continues := errors.AsType[*detach.Work](err)
		if !continues {
			d.fail(e, start, took, d.problem(err))
			return
		}
		if d.trace == nil {
			d.detach(e, start, work)
		} else { // an explanation starts nothing in the background
			d.traceStarted(e)
		}
		return
	}
	ans := answerOf(out)
	if d.started != nil && d.trace == nil && ans.empty() { // the new record may replace a started record
		d.record(e, Completed, start, took, nil)
		return
	}
	d.accept(e, start, took, out, ans)
}

// problem classifies a returned error.
func (d *dispatch) problem(err error) Problem {
	code := classify(err)
	if code == codes.Error && d.ctx.Err() != nil &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Cause(d.ctx))) {
		code = codes.Canceled
		err = errors.New("the turn was cancelled")
	}
	return Problem{Code: code, Err: err}
}

// guard runs when inline ends: normally, with a panic, or with Goexit.
func (d *dispatch) guard() {
	if !d.inside {
		return
	}
	d.inside = false
	start := d.mark
	d.mark = d.rt.now()
	e := &d.plan.entries[d.at]
	d.at++
	if r := recover(); r != nil {
		d.fail(e, start, d.mark-start, panicked(r))
		return
	}
	// The handler called runtime.Goexit: this goroutine ends, and nothing can prevent that.
	// Record the run, and record that the other handlers were not called.
	d.fail(e, start, d.mark-start, goexited())
	for ; d.at < len(d.plan.entries); d.at++ {
		d.skip(&d.plan.entries[d.at])
	}
}

// panicError is a handler's panic. Its text quotes the panic value, which may quote the
// input. So the text goes to the process's log and never into a record.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.value) }

func panicked(value any) Problem {
	return Problem{Code: codes.Panic, Err: &panicError{value, debug.Stack()}}
}

func goexited() Problem {
	return Problem{Code: codes.Goexit, Err: errors.New("the handler called runtime.Goexit")}
}

// special runs an entry that is not plain, on the caller's goroutine.
func (d *dispatch) special(e *entry) {
	if !d.matches(e) || !d.evidence(d.at) {
		return
	}
	switch e.sub.opts.Execution {
	case FireAndRecord:
		d.fire(e)
	case Background:
		d.background(e)
	default:
		if e.sub.opts.Timeout > 0 {
			d.timed(e)
			return
		}
		out, err := e.handle(d.ctx, d.in)
		d.returned(e, out, err)
	}
}

func (d *dispatch) returned(e *entry, out Output, err error) {
	start := d.mark
	d.mark = d.rt.now()
	d.answer(e, start, d.mark-start, out, err)
}

// timed runs a blocking handler with a timeout. After the timeout it cancels the handler's
// context, but the dispatch still waits for the handler. A late answer is not used.
func (d *dispatch) timed(e *entry) {
	timeout := e.sub.opts.Timeout
	late := &timeoutError{timeout}
	ctx, cancel := context.WithCancelCause(d.ctx)
	defer cancel(nil)
	start := d.rt.now() // read before the timer is set, so that a timeout never looks early
	d.mark = start
	stop := d.rt.after(timeout, func() { cancel(late) })
	defer stop()
	out, err := e.handle(ctx, d.in)
	if now := d.rt.now(); now-start >= int64(timeout) {
		d.mark = now
		d.fail(e, start, now-start, Problem{Code: codes.Timeout, Err: late})
		return
	}
	d.returned(e, out, err)
}

// timeoutError is the cause of a handler's cancelled context after its timeout.
type timeoutError struct{ After time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("no answer within %s", e.After) }

// Is reports that a timeoutError is a context.DeadlineExceeded.
func (e *timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout returns true. It is a method of net.Error.
func (e *timeoutError) Timeout() bool { return true }

// tellFailed calls RuntimeOptions.Failed for a failed run that nothing waits for. A
// cancelled run did not fail.
func (rt *Runtime) tellFailed(scope *Scope, p Problem) {
	if rt.opts.Failed == nil || p.Code == codes.Canceled {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			rt.opts.Logger.Error("panic in RuntimeOptions.Failed", "panic", v)
		}
	}()
	rt.opts.Failed(*scope, p)
}

// logFailure logs the details that a record must not contain.
func (rt *Runtime) logFailure(ctx context.Context, scope *Scope, p Problem) {
	attrs := []slog.Attr{
		slog.String("phase", p.Phase), slog.String("subscription", p.Subscription),
		slog.String("session", scope.Session), slog.String("turn", scope.Turn),
		slog.String("code", string(p.Code)), slog.Any("error", p.Err),
	}
	if pe, ok := errors.AsType[*panicError](p.Err); ok {
		attrs = append(attrs, slog.String("stack", string(pe.stack)))
	}
	level := slog.LevelWarn
	if p.Code.Level() == codes.LevelError {
		level = slog.LevelError
	}
	rt.opts.Logger.LogAttrs(context.WithoutCancel(ctx), level, "hook failed", attrs...)
}
