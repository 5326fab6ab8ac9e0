package hook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay/hook/codes"
)

// Job is background work: a contribution that names a registered job handler, or the run of
// a background subscription. A job holds references and no copy of the conversation.
type Job struct {
	// Handler is the name of the registered job handler. It is empty for the run of a
	// background subscription.
	Handler string `json:"handler,omitempty"`
	// Reference says where in the transcript the input is: 1-256 of [A-Za-z0-9._:/-].
	Reference string `json:"reference,omitempty"`
	// Key is the idempotency key. It may have the same characters and length as Reference.
	// At most one success is recorded for a key. After the success, no other job with the
	// key runs.
	Key string `json:"key"`
	// At is the earliest time to run. Defaults to now.
	At time.Time `json:"at,omitzero"`

	// The runtime fills in the other fields.

	ID           string `json:"id,omitempty"`
	Subscription string `json:"subscription,omitempty"` // the subscription that scheduled it
	Phase        string `json:"phase,omitempty"`
	Version      string `json:"version,omitempty"` // of the handler, when the job was stored
	Run          string `json:"run,omitempty"`     // the run that scheduled it
	Scope        Scope  `json:"scope,omitzero"`
	Idempotent   bool   `json:"idempotent,omitempty"`
	Retry        Retry  `json:"retry,omitzero"`
	// Attempt is the number of attempts that have begun.
	Attempt int `json:"attempt,omitempty"`
}

// Queue stores background work. The conformance suite in hooktest checks what a queue must
// do.
type Queue interface {
	// Enqueue stores the jobs and the record of the run that scheduled them in one
	// transaction: all or nothing. Everything is durable when Enqueue returns. Enqueue
	// silently leaves out a job whose key is already queued, running or done. A full queue
	// returns ErrQueueFull.
	Enqueue(ctx context.Context, asked Run, jobs []Job) error
}

// StatQueue is a Queue with statistics.
type StatQueue interface {
	Queue
	// Stats returns the numbers of waiting and running jobs, the capacity, and how long the
	// oldest waiting job has been due.
	Stats(ctx context.Context) (QueueStats, error)
}

// QueueStats describes a queue at one moment.
type QueueStats struct {
	Waiting   int           `json:"waiting"`
	Running   int           `json:"running"`
	Capacity  int           `json:"capacity"`
	OldestAge time.Duration `json:"oldest_age"` // how long the oldest waiting job has been due
}

// ClaimQueue is a Queue from which workers claim jobs. A queue does not need this interface
// if its own engine runs the jobs with [Runtime.Perform].
type ClaimQueue interface {
	Queue
	// Claim waits for a job that is due and claims it, so that no other worker can claim
	// it. The Attempt of the returned job is already incremented.
	Claim(ctx context.Context) (Job, error)
	// Settle stores how an attempt ended and releases the job. The job is done if again is
	// zero. Otherwise the job is due again at that time.
	Settle(ctx context.Context, job Job, attempt Run, again time.Time) error
}

// WorkQueue is a Queue whose own engine runs the jobs, with its own workers and schedule.
// [Runtime.Work] calls its Work method.
type WorkQueue interface {
	Queue
	// Work performs the jobs that are due until ctx is done. It returns when the running
	// jobs are settled.
	//
	// perform runs one attempt. It returns the final record, and the time at which the job
	// is due again, or zero if the job is over. Before an attempt, Work stores [Job.Begun].
	// After it, Work stores the final record, the end of the job and the success of its key
	// in one transaction.
	Work(ctx context.Context, perform func(context.Context, Job) (Run, time.Time)) error
}

// InputQueue is a Queue that keeps the inputs of background runs, so that another process
// can run them. It stores each input apart from its job, because jobs hold only references,
// and removes the input when the job is over.
//
// A runtime uses an InputQueue if it has no [RuntimeOptions.Recall] and the phase has a
// Decode function. A runtime with neither Recall nor InputQueue keeps inputs in memory: if
// the process ends, the work fails with job.input_gone.
type InputQueue interface {
	Queue
	// EnqueueInput is Enqueue for one job and its input, in one transaction. If it leaves
	// out the job, it leaves out the input too.
	EnqueueInput(ctx context.Context, asked Run, job Job, input json.RawMessage) error
	// Input returns the input of a job that is not over. It returns ErrNotFound if the job
	// has no input.
	Input(ctx context.Context, job Job) (json.RawMessage, error)
}

// Begun returns the record of an attempt that begins at the given time. The final record
// replaces it.
func (j Job) Begun(at time.Time) Run {
	return Run{
		ID: j.ID + "." + strconv.Itoa(j.Attempt), Subscription: j.Subscription, JobHandler: j.Handler,
		Version: j.Version, Phase: j.Phase, Scope: j.Scope, Execution: Background, State: Started,
		Job: j.ID, Attempt: j.Attempt, Key: j.Key, Started: at,
	}
}

// ErrQueueFull reports that a queue is full. Nothing was stored.
var ErrQueueFull = errors.New("hook: the job queue is full")

// JobHandler is a registered handler for jobs.
type JobHandler struct {
	// Name is the name that jobs use: 1-128 of [A-Za-z0-9._:/-].
	Name string
	// Version is the handler's version. A job that was stored for one version is not run by
	// another version. Defaults to empty.
	Version string
	// Run does the work. The notes that it returns are recorded.
	Run func(ctx context.Context, job Job) ([]Audit, error)
	// Timeout limits an attempt. Defaults to 10 minutes.
	Timeout time.Duration
	// Idempotent says that a job may run twice. Defaults to false: interrupted work is not
	// run again.
	Idempotent bool
	// Retry says when a failed attempt is retried. It requires Idempotent. Defaults to
	// never.
	Retry Retry
}

type jobEntry struct {
	JobHandler
	abandoned atomic.Int32
}

// InstallJobs registers all of the job handlers or none. Closing the lease removes them.
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
			refuse("name", "use 1 to 128 characters of [A-Za-z0-9._:/-]")
		}
		if rt.jobs[h.Name] != nil || names[h.Name] {
			refuse("name", "another job handler already has this name")
		}
		if h.Run == nil {
			refuse("run", "the handler has no Run function")
		}
		if h.Timeout < 0 {
			refuse("timeout", "the timeout is negative")
		}
		switch {
		case h.Retry == (Retry{}):
		case !h.Idempotent:
			refuse("retry", "only idempotent work is retried: set Idempotent if running it twice does no harm")
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
			return &SafeError{Code: codes.JobInvalid, Message: "the job's key, and its reference if it has one, must have 1 to 256 characters of [A-Za-z0-9._:/-]"}
		}
		h := rt.jobHandler(job.Handler)
		if h == nil {
			return &SafeError{Code: codes.JobUnknown, Message: "the job names a handler that is not installed"}
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

// jobProblem returns the problem for a job that could not be stored.
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

// background queues the run of a subscription for a worker.
func (d *dispatch) background(e *entry) {
	start := d.rt.now()
	d.mark = start
	s := e.sub
	job := Job{
		Reference: d.def.reference(d.in), Subscription: s.id, Phase: d.def.name, Version: s.opts.Version,
		Scope: *d.scope, Idempotent: s.opts.Idempotent, Retry: s.opts.Retry,
	}
	job.Key = jobKey(job)
	if !validRef(job.Reference) {
		d.fail(e, start, 0, jobProblem(&SafeError{Code: codes.JobInvalid, Message: "the reference of the phase's input must have 1 to 256 characters of [A-Za-z0-9._:/-]"}))
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

// enqueue stores the run of a subscription so that a worker can find its input: by Recall,
// in the queue, or in the memory of this process.
func (d *dispatch) enqueue(rt *Runtime, asked Run, job Job) error {
	ctx, queue := context.WithoutCancel(d.ctx), rt.opts.Queue
	if rt.opts.Recall != nil {
		return queue.Enqueue(ctx, asked, []Job{job})
	}
	if keeps, ok := queue.(InputQueue); ok && d.def.decodes {
		input, err := json.Marshal(d.in)
		if err != nil {
			return &SafeError{Code: codes.JobInvalid, Message: "the phase's input cannot be encoded as JSON", Err: err}
		}
		return keeps.EnqueueInput(ctx, asked, job, input)
	}
	rt.held.keep(job.Key, d.in) // nothing else can return the input later
	err := queue.Enqueue(ctx, asked, []Job{job})
	if err != nil {
		rt.held.forgo(job.Key)
	}
	return err
}

// jobKey returns the idempotency key of a background run. Each combination of subscription,
// version and input has its own key.
func jobKey(job Job) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		job.Phase, job.Subscription, job.Version, job.Scope.Session, job.Scope.Turn,
		fmt.Sprint(job.Scope.Step), job.Reference,
	}, "\x00")))
	return "run:" + hex.EncodeToString(sum[:16])
}
