package hook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/detach"
)

// detached is the state of a run that the dispatch does not wait for.
type detached struct {
	e    *entry
	snap *Snapshot
	in   any
	rec  record
}

// fire starts a handler and does not wait. The journal already has the started record. The
// final record is written when the handler returns.
func (d *dispatch) fire(e *entry) {
	start := d.rt.now()
	d.mark = start
	if d.trace != nil {
		d.traceStarted(e)
		return
	}
	if d.rt.firing.Add(1) > int64(d.rt.opts.InFlight) {
		d.rt.firing.Add(-1)
		d.fail(e, start, 0, Problem{
			Code: codes.Overloaded, Err: fmt.Errorf("%d fire_and_record runs are already in progress, which is the limit (RuntimeOptions.InFlight)", d.rt.opts.InFlight),
		})
		return
	}
	if alive := e.abandoned.Load(); alive >= int32(d.rt.opts.Abandoned) {
		d.rt.firing.Add(-1)
		d.fail(e, start, 0, Problem{
			Code: codes.Quarantined, Err: fmt.Errorf("not started: %d earlier runs did not stop after their timeout and still run", alive),
		})
		return
	}
	rec := d.record(e, Started, start, 0, nil)
	r := &detached{e: e, snap: d.snap, in: d.in, rec: *rec}
	d.snap.retain()
	d.rt.settled.add()
	// The runtime owns this goroutine, and Drain waits for it. The handler has its own
	// timeout, and continues if the turn is cancelled.
	go r.main(context.WithoutCancel(d.ctx))
}

func (r *detached) main(parent context.Context) {
	rt := r.snap.rt
	defer rt.settled.done()
	defer rt.firing.Add(-1)
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	timeout := r.e.sub.opts.Timeout
	stop := rt.after(timeout, func() { cancel(&timeoutError{timeout}) })
	defer stop()

	end := bounded(ctx, begin(ctx, r.e.handle, r.in), r.e.abandoned, r.snap.drop)
	r.settle(ctx, end)
}

// settle schedules the jobs of the answer and writes the final record.
func (r *detached) settle(ctx context.Context, end ending) {
	rt, rec := r.snap.rt, r.rec
	rec.took, rec.state = rt.now()-rec.start, Completed
	ans := end.answer
	if end.problem == nil {
		end.problem = r.e.detachedProblem(ans)
	}
	if end.problem == nil {
		rec.detail = &detail{parts: digest(ans.Parts), audit: safeAudit(ans.Audit), key: rec.detail.key, attempt: rec.detail.attempt}
		if len(ans.Jobs) > 0 && !r.e.shadow {
			if err := r.e.at(rt).schedule(ctx, rt.run(&rec), ans.Jobs); err != nil {
				p := jobProblem(err)
				end.problem = &p
			}
		}
	}
	rt.recordEnd(ctx, &rec, end.problem)
}

// recordEnd writes the final record of a run that the dispatch did not wait for.
func (rt *Runtime) recordEnd(ctx context.Context, rec *record, p *Problem) {
	phase, id := rec.e.sub.phase.name, rec.e.sub.id
	if p != nil {
		p.Phase, p.Subscription = phase, id
		rec.fail(*p)
		rt.logFailure(ctx, rec.scope, *p)
		rt.tellFailed(rec.scope, *p)
	}
	if err := rt.recordLate(ctx, rt.run(rec)); err != nil {
		rt.logFailure(ctx, rec.scope, Problem{Phase: phase, Subscription: id, Code: codes.Journal, Err: err})
	}
}

// detach begins the work that a handler has handed over, and leaves the run started until
// the work has ended. Drain does not wait for the work: the owner of the handler waits for
// it, before the journal is closed.
func (d *dispatch) detach(e *entry, start int64, work *detach.Work) {
	rt, ctx := d.rt, context.WithoutCancel(d.ctx)
	rec := *d.record(e, Started, start, 0, nil)
	work.Begin(func(err error) {
		rec.took, rec.state = rt.now()-rec.start, Completed
		var p *Problem
		if err != nil {
			p = &Problem{Code: classify(err), Err: err}
		}
		rt.recordEnd(ctx, &rec, p)
	})
}

// detachedProblem rejects an answer that contains more than audit notes and jobs, because
// no dispatch waits for other contributions.
func (e *installed) detachedProblem(ans *Answer) *Problem {
	if ans.Invalid != "" {
		p := invalidAnswer(ans)
		return &p
	}
	if extra := ans.uses() &^ (e.caps & (CanAudit | CanSchedule)); extra != 0 || ans.Severity != SeverityPass {
		return &Problem{Code: codes.CapabilityMissing, Err: fmt.Errorf(
			"%s hooks may contribute only audit notes and jobs, not %s", e.sub.opts.Execution, extra)}
	}
	return nil
}

// fail changes the record into the record of a failed run.
func (r *record) fail(p Problem) {
	r.state = Failed
	if p.Code == codes.Timeout {
		r.state = TimedOut
	}
	diag := Diagnostic{Code: p.Code, Level: p.Code.Level(), Message: safeMessage(p)}
	old := r.detail
	r.detail = &detail{class: p.Code, diags: []Diagnostic{diag}}
	if old != nil {
		r.detail.job, r.detail.key, r.detail.attempt = old.job, old.key, old.attempt
	}
}

// ending is the end of a handler on its own goroutine: an answer or a problem.
type ending struct {
	answer  *Answer
	problem *Problem
}

// begin calls a handler on its own goroutine. The goroutine ends when the handler returns.
// The channel gets exactly one ending.
func begin(ctx context.Context, handle handler, in any) <-chan ending {
	ended := make(chan ending, 1)
	go func() {
		var end ending
		returned := false
		defer func() {
			if !returned {
				problem := goexited()
				if v := recover(); v != nil {
					problem = panicked(v)
				}
				end.problem = &problem
			}
			ended <- end
		}()
		out, err := handle(ctx, in)
		if err != nil {
			end.problem = &Problem{Code: classify(err), Err: err}
		} else {
			end.answer = answerOf(out)
		}
		returned = true
	}()
	return ended
}

// bounded waits for an ending until ctx is done. If the handler has not returned by then,
// bounded abandons it. alive counts the abandoned handlers that have not returned. bounded
// calls release when the handler returns.
func bounded(ctx context.Context, ended <-chan ending, alive *atomic.Int32, release func()) ending {
	select {
	case end := <-ended:
		release()
		if ctx.Err() != nil {
			end = ending{problem: cancelProblem(ctx)} // too late: the answer is not used
		}
		return end
	case <-ctx.Done():
		alive.Add(1)
		go func() { // ends when the handler returns
			<-ended
			alive.Add(-1)
			release()
		}()
		return ending{problem: cancelProblem(ctx)}
	}
}

func cancelProblem(ctx context.Context) *Problem {
	if late, ok := errors.AsType[*timeoutError](context.Cause(ctx)); ok {
		return &Problem{Code: codes.Timeout, Err: late}
	}
	return &Problem{Code: codes.Canceled, Err: errors.New("the work was cancelled")}
}

// Drain waits until all fire_and_record runs have ended and are recorded, or until ctx is
// done. The runtime stays usable, and others may dispatch meanwhile.
func (rt *Runtime) Drain(ctx context.Context) error {
	select {
	case <-rt.settled.idle():
		return rt.recordLate(ctx)
	case <-ctx.Done():
		return fmt.Errorf("drain: %d runs have not ended: %w", rt.firing.Load(), context.Cause(ctx))
	}
}

// lateLog keeps the final records of detached runs until the journal accepts them.
type lateLog struct {
	mu   sync.Mutex
	runs []Run
}

// recordLate writes final records to the journal, after the earlier ones that the journal
// did not accept. Records that cannot be written are kept and retried: by the next call,
// when the records of a turn are next written, and by Drain.
func (rt *Runtime) recordLate(ctx context.Context, ended ...Run) error {
	rt.late.mu.Lock()
	defer rt.late.mu.Unlock()
	rt.late.runs = append(rt.late.runs, ended...)
	if len(rt.late.runs) == 0 {
		return nil
	}
	left, err := rt.write(ctx, rt.late.runs)
	rt.late.runs = left
	return err
}

// tally counts running things and signals when the count is zero. Unlike with a
// sync.WaitGroup, one goroutine can wait while others add.
type tally struct {
	mu    sync.Mutex
	count int
	over  chan struct{} // closed when count becomes zero
}

func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count++; t.count == 1 {
		t.over = make(chan struct{})
	}
}

func (t *tally) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count--; t.count == 0 {
		close(t.over)
	}
}

// idle returns a channel that is closed when nothing is running.
func (t *tally) idle() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over == nil {
		t.over = make(chan struct{})
		close(t.over)
	}
	return t.over
}
