package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/belay-run/belay/hook/codes"
)

// Perform runs one attempt of a job and returns its record. The record's state says how the
// attempt ended. Perform itself does not fail. Queue engines with their own retries call
// Perform. For a [ClaimQueue] use [Runtime.Work].
func (rt *Runtime) Perform(ctx context.Context, job Job) Run {
	if rt.opts.WrapJob != nil {
		return rt.opts.WrapJob(ctx, job, func(ctx context.Context) Run { return rt.perform(ctx, job) })
	}
	return rt.perform(ctx, job)
}

func (rt *Runtime) perform(ctx context.Context, job Job) Run {
	start := rt.now()
	run := job.Begun(rt.wall(start))
	ans := new(Answer)
	problem := rt.performJob(ctx, job, &run, ans)
	run.Ended, run.Latency = rt.wall(rt.now()), Latency(rt.now()-start)
	run.State = Completed
	if problem == nil || !retryable(problem.Code) || job.Attempt >= job.Retry.Attempts && problem.Code != codes.Canceled {
		rt.held.drop(job.Key) // no later attempt needs the input
	}
	if problem == nil {
		run.Contributed, run.Audit = digest(ans.Parts), safeAudit(ans.Audit)
		return run
	}
	run.State, run.Class = Failed, problem.Code
	if problem.Code == codes.Timeout {
		run.State = TimedOut
	}
	problem.Phase, problem.Subscription = job.Phase, job.Subscription
	run.Diagnostics = []Diagnostic{{Code: problem.Code, Level: problem.Code.Level(), Message: safeMessage(*problem)}}
	rt.logFailure(ctx, &job.Scope, *problem)
	if !job.Idempotent || job.Attempt >= job.Retry.Attempts || !retryable(problem.Code) { // otherwise the job is retried
		rt.tellFailed(&job.Scope, *problem)
	}
	return run
}

func (rt *Runtime) performJob(ctx context.Context, job Job, run *Run, ans *Answer) *Problem {
	if job.Handler != "" {
		return rt.performHandler(ctx, job, ans)
	}
	e, problem := rt.recorded(job)
	if problem != nil {
		return problem
	}
	run.Origin, run.Visibility, run.Shadow = e.sub.opts.Origin, e.sub.opts.Visibility, e.sub.opts.Shadow
	if alive := e.abandoned.Load(); alive >= int32(rt.opts.Abandoned) {
		return &Problem{Code: codes.Quarantined, Err: fmt.Errorf("not started: %d earlier runs did not stop after their timeout and still run", alive)}
	}
	input, held, problem := rt.recall(ctx, job)
	if problem != nil {
		return problem
	}
	timeout := e.sub.opts.Timeout
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer rt.after(timeout, func() { cancel(&timeoutError{timeout}) })()
	answer, err := e.sub.phase.performJob(ctx, e, input, job, held)
	if err != nil {
		return asProblem(err)
	}
	if problem := e.detachedProblem(answer); problem != nil {
		return problem
	}
	*ans = *answer
	if len(answer.Jobs) == 0 || e.sub.opts.Shadow {
		return nil
	}
	// The record has the state started here: the attempt succeeds only when it is settled.
	// If the process ends before that, the work runs again, but its jobs are queued only
	// once.
	if err := rt.schedule(ctx, *run, answer.Jobs); err != nil {
		problem := jobProblem(err)
		return &problem
	}
	return nil
}

// recorded finds the subscription that a job was stored for. The subscription must have the
// version that the job names: a job never runs with another version.
func (rt *Runtime) recorded(job Job) (*installed, *Problem) {
	core, err := rt.phase(job.Phase)
	if err != nil {
		return nil, &Problem{Code: codes.HandlerGone, Err: err}
	}
	rt.changing.Lock()
	e := rt.members[core].find(job.Subscription)
	rt.changing.Unlock()
	switch {
	case e == nil || e.sub.opts.Disabled:
		return nil, &Problem{Code: codes.HandlerGone, Err: fmt.Errorf("subscription %q is not installed", job.Subscription)}
	case e.sub.opts.Version != job.Version || e.sub.opts.Execution != Background:
		return nil, &Problem{Code: codes.HandlerChanged, Err: fmt.Errorf("subscription %q has changed: the job is for version %q", job.Subscription, job.Version)}
	default:
		return e, nil
	}
}

// recall finds a job's input: in the memory of this process, or with Recall, or, if Recall
// is nil, in the queue.
func (rt *Runtime) recall(ctx context.Context, job Job) (json.RawMessage, any, *Problem) {
	if held, ok := rt.held.find(job.Key); ok {
		return nil, held, nil
	}
	keeps, kept := rt.opts.Queue.(InputQueue)
	var input json.RawMessage
	var err error
	switch {
	case rt.opts.Recall != nil:
		input, err = rt.opts.Recall(ctx, job.Phase, job.Reference, job.Scope)
	case kept:
		input, err = keeps.Input(ctx, job)
	default:
		err = fmt.Errorf("the input was only in the memory of another process, and the runtime has no Recall to find it: %w", ErrNotFound)
	}
	switch {
	case err == nil:
		return input, nil, nil
	case ctx.Err() != nil:
		return nil, nil, &Problem{Code: codes.Canceled, Err: context.Cause(ctx)}
	case errors.Is(err, ErrNotFound):
		return nil, nil, &Problem{Code: codes.InputGone, Err: err}
	default: // a later attempt may find the input
		return nil, nil, &Problem{Code: codes.Error, Err: err}
	}
}

// performJob runs the handler of a background subscription. It uses held as the handler's
// input if held has the right type. Otherwise it decodes input.
func (def *phaseCore) performJob(ctx context.Context, e *installed, input json.RawMessage, job Job, held any) (*Answer, error) {
	in, err := def.input(held, job.Scope, input)
	if err != nil {
		return nil, &SafeError{Code: codes.InputGone, Message: "the recorded input cannot be decoded", Err: err}
	}
	end := bounded(ctx, begin(ctx, e.sub.handler, in), e.abandoned, func() {})
	if end.problem != nil {
		return nil, &FailureError{*end.problem}
	}
	return end.answer, nil
}

func (rt *Runtime) performHandler(ctx context.Context, job Job, ans *Answer) *Problem {
	h := rt.jobHandler(job.Handler)
	switch {
	case h == nil:
		return &Problem{Code: codes.HandlerGone, Err: fmt.Errorf("job handler %q is not installed", job.Handler)}
	case h.Version != job.Version:
		return &Problem{Code: codes.HandlerChanged, Err: fmt.Errorf("job handler %q has changed: the job is for version %q", job.Handler, job.Version)}
	case h.abandoned.Load() >= int32(rt.opts.Abandoned):
		return &Problem{Code: codes.Quarantined, Err: fmt.Errorf("not started: %d earlier runs did not stop after their timeout and still run", h.abandoned.Load())}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer rt.after(h.Timeout, func() { cancel(&timeoutError{h.Timeout}) })()
	end := bounded(ctx, begin(ctx, func(ctx context.Context, _ any) (Output, error) {
		audit, err := h.Run(ctx, job)
		return notes{audit}, err
	}, nil), &h.abandoned, func() {})
	if end.problem != nil {
		return end.problem
	}
	*ans = *end.answer
	return nil
}

// notes is the output of a job handler.
type notes struct{ audit []Audit }

func (n notes) Answer() *Answer { return &Answer{Audit: n.audit} }

func asProblem(err error) *Problem {
	if f, ok := errors.AsType[*FailureError](err); ok {
		return &f.Problem
	}
	code := classify(err)
	return &Problem{Code: code, Err: err}
}

// Work performs the jobs of the runtime's queue until ctx is done. With a [WorkQueue] call
// Work once: the queue has its own workers. With a [ClaimQueue] Work takes one job at a
// time: call it from as many goroutines as you want workers.
//
// When ctx is done, a running job is interrupted. If the job is idempotent, it is due again
// at once.
func (rt *Runtime) Work(ctx context.Context) error {
	if queue, ok := rt.opts.Queue.(WorkQueue); ok {
		if err := queue.Work(ctx, rt.tryJob); err != nil {
			return fmt.Errorf("work: %w", err)
		}
		return nil
	}
	queue, ok := rt.opts.Queue.(ClaimQueue)
	if !ok {
		return fmt.Errorf("work: the queue %T is neither a WorkQueue nor a ClaimQueue", rt.opts.Queue)
	}
	for {
		job, err := queue.Claim(ctx)
		switch {
		case ctx.Err() != nil && err != nil:
			return nil //nolint:nilerr // being told to stop is how work ends
		case err != nil:
			return fmt.Errorf("work: %w", err)
		}
		run, again := rt.tryJob(ctx, job)
		if err := rt.settle(ctx, queue, job, run, again); err != nil {
			return fmt.Errorf("work: %w", err)
		}
	}
}

// tryJob performs an attempt. It returns the time at which the job is due again, or zero if
// the job is over.
func (rt *Runtime) tryJob(ctx context.Context, job Job) (run Run, again time.Time) {
	run = rt.Perform(ctx, job)
	switch {
	case ctx.Err() != nil && run.Class == codes.Canceled: // this worker was stopped
		run.State = Interrupted
		if job.Idempotent {
			again = run.Ended
		}
	case run.State != Completed && job.Idempotent && job.Attempt < job.Retry.Attempts && retryable(run.Class):
		again = run.Ended.Add(job.Retry.Pause(job.Attempt, rand.Float64()))
	}
	return run, again
}

// settlePause is the pause before a worker tries again to settle a job.
const settlePause = time.Second

// settle stores how an attempt ended. The work is done and its record must not be lost, so
// settle tries again until the queue stores the record or ctx is done.
func (rt *Runtime) settle(ctx context.Context, queue ClaimQueue, job Job, run Run, again time.Time) error {
	for {
		err := queue.Settle(context.WithoutCancel(ctx), job, run, again)
		if err == nil {
			return nil
		}
		rt.logFailure(ctx, &job.Scope, Problem{Phase: job.Phase, Subscription: job.Subscription, Code: codes.Journal, Err: err})
		if errors.Is(err, ErrNotFound) {
			return nil // another worker has settled the job
		}
		woken := make(chan struct{})
		stop := rt.after(settlePause, func() { close(woken) })
		select {
		case <-woken:
		case <-ctx.Done():
			stop()
			return err
		}
	}
}

// retryable reports whether another attempt could succeed after this failure.
func retryable(class codes.Code) bool {
	switch class {
	case codes.HandlerGone, codes.HandlerChanged, codes.InputGone, codes.CapabilityMissing, codes.OutputInvalid:
		return false
	default:
		return true
	}
}
