package hook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/belay-run/belay/hook/codes"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Job is background work: either a contribution that names a registered job
// handler, or the run of a background subscription. It holds references and
// never a copy of what was said.
type Job struct {
	// Handler names the registered job handler. It is empty for the run of a
	// background subscription.
	Handler string `json:"handler,omitempty"`
	// Reference says where in the transcript the work's input is: 1-256 of
	// [A-Za-z0-9._:/-].
	Reference string `json:"reference,omitempty"`
	// Key is the idempotency key, in the same alphabet: of all jobs with one
	// key, one success is recorded, and then none of them runs again.
	Key string `json:"key"`
	// At is the earliest time to run. Defaults to now.
	At time.Time `json:"at,omitzero"`

	// The rest is filled in by the runtime.

	ID           string `json:"id,omitempty"`
	Subscription string `json:"subscription,omitempty"` // who asked for it
	Phase        string `json:"phase,omitempty"`
	Version      string `json:"version,omitempty"` // of the handler, when it was recorded
	Run          string `json:"run,omitempty"`     // the run that asked for it
	Scope        Scope  `json:"scope,omitzero"`
	Idempotent   bool   `json:"idempotent,omitempty"`
	Retry        Retry  `json:"retry,omitzero"`
	// Attempt counts the attempts begun.
	Attempt int `json:"attempt,omitempty"`
}

// Queue takes background work. The conformance suite in hooktest says exactly
// what an implementation must do.
type Queue interface {
	// Enqueue stores jobs and the record of the run that asked for them in one
	// transaction: all of it or nothing. It is durable when Enqueue returns.
	// Jobs whose key is already queued, running or done are left out silently.
	// A queue that is full refuses with ErrQueueFull.
	Enqueue(ctx context.Context, asked Run, jobs []Job) error
}

// StatQueue is a Queue that can be watched.
type StatQueue interface {
	Queue
	// Stats tells how much waits and since when.
	Stats(ctx context.Context) (QueueStats, error)
}

// QueueStats is what a queue looks like at a moment.
type QueueStats struct {
	Waiting   int           `json:"waiting"`
	Running   int           `json:"running"`
	Capacity  int           `json:"capacity"`
	OldestAge time.Duration `json:"oldest_age"` // of what waits and is due
}

// ClaimQueue is a Queue that hands out its jobs. A queue whose engine runs
// jobs by itself, calling [Runtime.Perform], does not need it.
type ClaimQueue interface {
	Queue
	// Claim waits for a job that is due and takes it, so that no other claims
	// it. The job's Attempt has been counted up.
	Claim(ctx context.Context) (Job, error)
	// Settle stores how an attempt ended and lets go of the job: it is done,
	// or, if again is not zero, due again at that time.
	Settle(ctx context.Context, job Job, attempt Run, again time.Time) error
}

// WorkQueue is a Queue whose engine hands out its jobs, with workers and a
// schedule of its own. [Runtime.Work] leaves the work to it.
type WorkQueue interface {
	Queue
	// Work performs the jobs that are due until ctx is done, and returns when
	// those under way are settled. Before an attempt it stores [Job.Begun]; an
	// attempt's final record, the end of its job and the success of its key are
	// stored together. perform returns that record and the time at which the job
	// is due again, zero if it is over.
	Work(ctx context.Context, perform func(context.Context, Job) (Run, time.Time)) error
}

// InputQueue is a Queue that keeps the inputs of background runs, so that another
// process can take them up: apart from the jobs, which hold references alone, and
// no longer than until the job is over. Without it, and without
// [RuntimeOptions.Recall], an input is kept in memory, and the work of a process
// that is gone fails with job.input_gone.
type InputQueue interface {
	Queue
	// EnqueueInput is Enqueue for one job and its input, in one transaction. A
	// job that is left out leaves its input out.
	EnqueueInput(ctx context.Context, asked Run, job Job, input json.RawMessage) error
	// Input returns the input of a job that is not over. ErrNotFound: it has none.
	Input(ctx context.Context, job Job) (json.RawMessage, error)
}

// Begun returns the record of an attempt that begins at the given time. The
// record of how it ends replaces it.
func (j Job) Begun(at time.Time) Run {
	return Run{
		ID: j.ID + "." + strconv.Itoa(j.Attempt), Subscription: j.Subscription, JobHandler: j.Handler,
		Version: j.Version, Phase: j.Phase, Scope: j.Scope, Execution: Background, State: Started,
		Job: j.ID, Attempt: j.Attempt, Key: j.Key, Started: at,
	}
}

// ErrQueueFull says that a queue has no room. Nothing was stored.
var ErrQueueFull = errors.New("hook: the job queue is full")

// JobHandler is work that jobs name.
type JobHandler struct {
	// Name is what jobs say, in the alphabet of ids.
	Name string
	// Version is the handler's version: a job recorded for one version is not
	// run by another. Defaults to empty.
	Version string
	// Run does the work. What it returns is recorded.
	Run func(ctx context.Context, job Job) ([]Audit, error)
	// Timeout bounds an attempt. Defaults to 10 minutes.
	Timeout time.Duration
	// Idempotent says that running it twice for one job does no harm. Defaults
	// to false: interrupted work is then not run again.
	Idempotent bool
	// Retry says when a failed attempt is tried again; it requires Idempotent.
	// Defaults to never.
	Retry Retry
}

type jobEntry struct {
	JobHandler
	abandoned atomic.Int32
}

// InstallJobs registers job handlers, all or none, and returns the lease that
// takes them back.
func (rt *Runtime) InstallJobs(handlers ...JobHandler) (*Lease, error) {
	rt.changing.Lock()
	defer rt.changing.Unlock()
	rt.holding.Lock()
	defer rt.holding.Unlock()
	var problems []error
	names := make(map[string]bool)
	for _, h := range handlers {
		refuse := func(field, reason string) {
			problems = append(problems, fmt.Errorf("job handler %q: %s: %s", h.Name, field, reason))
		}
		if !validID(h.Name) {
			refuse("name", "want 1-128 of [A-Za-z0-9._:/-]")
		}
		if rt.jobs[h.Name] != nil || names[h.Name] {
			refuse("name", "another job handler has it")
		}
		if h.Run == nil {
			refuse("run", "there is none")
		}
		if h.Timeout < 0 {
			refuse("timeout", "it is negative")
		}
		switch {
		case h.Retry == (Retry{}):
		case !h.Idempotent:
			refuse("retry", "only idempotent work is retried")
		case !h.Retry.sound():
			refuse("retry", unsoundRetry)
		}
		names[h.Name] = true
	}
	if len(problems) > 0 {
		return nil, &InstallError{problems}
	}
	lease := &Lease{rt: rt, from: rt.current.number}
	for _, h := range handlers {
		if h.Timeout == 0 {
			h.Timeout = 10 * time.Minute
		}
		rt.jobs[h.Name] = &jobEntry{JobHandler: h}
		lease.jobs = append(lease.jobs, h.Name)
	}
	return lease, nil
}

func (rt *Runtime) forgetJobs(names []string) {
	rt.holding.Lock()
	defer rt.holding.Unlock()
	for _, name := range names {
		delete(rt.jobs, name)
	}
}

func (rt *Runtime) jobHandler(name string) *jobEntry {
	rt.holding.Lock()
	defer rt.holding.Unlock()
	return rt.jobs[name]
}

// schedule stores the jobs of an answer together with the run's record.
func (rt *Runtime) schedule(ctx context.Context, asked Run, jobs []Job) error {
	if rt.opts.Queue == nil {
		return &SafeError{Code: codes.NoQueue, Message: "the runtime has no queue"}
	}
	queued := make([]Job, len(jobs))
	for i, job := range jobs {
		if !validRef(job.Key) || (job.Reference != "" && !validRef(job.Reference)) {
			return &SafeError{Code: codes.JobInvalid, Message: "a job needs a key, and a reference if any, of 1-256 of [A-Za-z0-9._:/-]"}
		}
		h := rt.jobHandler(job.Handler)
		if h == nil {
			return &SafeError{Code: codes.JobUnknown, Message: "no job handler is registered under the name the job gives"}
		}
		queued[i] = Job{
			Handler: job.Handler, Reference: job.Reference, Key: job.Key, At: job.At,
			ID: fmt.Sprintf("%s.%d", asked.ID, i+1), Subscription: asked.Subscription, Phase: asked.Phase,
			Version: h.Version, Run: asked.ID, Scope: asked.Scope, Idempotent: h.Idempotent, Retry: h.Retry,
		}
	}
	return rt.opts.Queue.Enqueue(context.WithoutCancel(ctx), asked, queued)
}

func validRef(text string) bool { return text != "" && len(text) <= 256 && plainCharacters(text) }

// jobProblem classifies what kept a job from being stored.
func jobProblem(err error) Problem {
	code := classify(err)
	switch {
	case errors.Is(err, ErrQueueFull):
		return Problem{Code: codes.QueueFull, Err: ErrQueueFull}
	case code == codes.Error:
		return Problem{Code: codes.Journal, Err: err}
	default:
		return Problem{Code: code, Err: err}
	}
}

// background stores the run of a subscription for a worker.
func (d *dispatch[In, Out]) background(e *entry[In, Out]) {
	start := d.rt.now()
	d.mark = start
	s := e.sub
	job := Job{
		Reference: d.def.Reference(d.in), Subscription: s.id, Phase: d.def.name, Version: s.opts.Version,
		Scope: *d.scope, Idempotent: s.opts.Idempotent, Retry: s.opts.Retry,
	}
	job.Key = jobKey(job)
	if !validRef(job.Reference) {
		d.fail(e, start, 0, jobProblem(&SafeError{Code: codes.JobInvalid, Message: "the phase's reference is not 1-256 of [A-Za-z0-9._:/-]"}))
		return
	}
	if d.trace != nil {
		d.traceStarted(e)
		return
	}
	rec := d.record(e, Backgrounded, start, 0, nil)
	asked := d.rt.run(rec)
	job.ID, job.Run = asked.ID+".1", asked.ID
	asked.Job, asked.Key = job.ID, job.Key
	rec.detail = &detail{job: job.ID, key: job.Key}
	d.room.special = true
	if err := d.enqueue(e.at(d.rt), asked, job); err != nil {
		d.unrecord(rec)
		d.fail(e, start, 0, jobProblem(err))
	}
}

// enqueue stores the run of a subscription so that its input can be found again.
func (d *dispatch[In, Out]) enqueue(rt *Runtime, asked Run, job Job) error {
	ctx, queue := context.WithoutCancel(d.ctx), rt.opts.Queue
	if rt.opts.Recall != nil {
		return queue.Enqueue(ctx, asked, []Job{job})
	}
	if keeps, ok := queue.(InputQueue); ok && d.def.Decode != nil {
		input, err := json.Marshal(d.in)
		if err != nil {
			return &SafeError{Code: codes.JobInvalid, Message: "the phase's input does not encode", Err: err}
		}
		return keeps.EnqueueInput(ctx, asked, job, input)
	}
	rt.held.keep(job.Key, d.in) // the only way to find it again
	err := queue.Enqueue(ctx, asked, []Job{job})
	if err != nil {
		rt.held.forgo(job.Key)
	}
	return err
}

// jobKey is the idempotency key of a background run: one for each
// subscription, version and input.
func jobKey(job Job) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		job.Phase, job.Subscription, job.Version, job.Scope.Session, job.Scope.Turn,
		fmt.Sprint(job.Scope.Step), job.Reference,
	}, "\x00")))
	return "run:" + hex.EncodeToString(sum[:16])
}
