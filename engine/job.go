package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// strangeJob is the pause before the next attempt if this worker does not have the job's
// agent.
const strangeJob = 30 * time.Second

// perform runs a job once, with the hooks of the agent that queued it. If this worker does
// not have the agent, the job does not run. perform returns the time of the next attempt,
// or zero if there is none.
func (w *Worker) perform(ctx context.Context, job hook.Job) (run hook.Run, again time.Time) {
	agent, err := w.find(ctx, job.Scope.Agent)
	if err != nil { // the job was not attempted
		w.opts.Logger.WarnContext(ctx, "this worker does not have the agent of a job: the job is left to other workers", "job", job.ID, "agent", job.Scope.Agent, "session", job.Scope.Session, "error", err)
		run = job.Begun(time.Now())
		run.State, run.Class, run.Ended = hook.Interrupted, codes.HandlerGone, run.Started
		return run, run.Ended.Add(strangeJob)
	}
	run = agent.Hooks().Perform(ctx, job)
	switch {
	case ctx.Err() != nil && run.Class == codes.Canceled: // this worker is stopping
		run.State = hook.Interrupted
		if job.Idempotent {
			again = run.Ended
		}
	case run.State != hook.Completed && job.Idempotent && job.Attempt < job.Retry.Attempts && !final(run.Class):
		again = run.Ended.Add(job.Retry.Pause(job.Attempt, rand.Float64()))
	}
	return run, again
}

// final reports whether another attempt would certainly fail in the same way.
func final(class codes.Code) bool {
	switch class {
	case codes.HandlerGone, codes.HandlerChanged, codes.InputGone, codes.CapabilityMissing, codes.OutputInvalid:
		return true
	default:
		return false
	}
}
