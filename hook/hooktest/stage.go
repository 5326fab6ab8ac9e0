package hooktest

import (
	"context"
	"slices"
	"sync"

	"github.com/belay-run/belay/hook"
)

// stage holds the journal and the queue of a trial. Both keep everything that they get.
type stage struct {
	journal *keptJournal
	queue   *keptQueue
}

// newStage makes a stage and puts its journal and queue into the options. A journal in the
// options still gets every record. A queue in the options replaces the queue of the stage.
func newStage(o *Options) *stage {
	s := &stage{journal: &keptJournal{kept: hook.NewMemoryJournal(4096), next: o.Runtime.Journal}}
	s.queue = &keptQueue{journal: s.journal, keys: make(map[string]bool)}
	o.Runtime.Journal = s.journal
	if o.Runtime.Queue == nil {
		o.Runtime.Queue = s.queue
	}
	return s
}

// install makes the runtime and installs the subscriptions and job handlers of the trial.
func (s *stage) install(phase hook.AnyPhase, sub hook.Subscription, o *Options) (*hook.Runtime, error) {
	phases := []hook.AnyPhase{phase}
	seen := map[hook.AnyPhase]bool{phase: true}
	for _, other := range o.Others {
		if p := other.Phase(); p != nil && !seen[p] {
			seen[p] = true
			phases = append(phases, p)
		}
	}
	rt, err := hook.NewRuntime(phases, &o.Runtime)
	if err != nil {
		return nil, err
	}
	if _, err := rt.InstallJobs(o.Jobs...); err != nil {
		return nil, err
	}
	_, err = rt.Install(append([]hook.Subscription{sub}, o.Others...)...)
	return rt, err
}

// perform runs each queued job once, including jobs that these jobs schedule.
func (s *stage) perform(ctx context.Context, rt *hook.Runtime) error {
	for i := 0; ; i++ {
		jobs := s.queue.all() // a job can schedule another job
		if i == len(jobs) {
			return nil
		}
		job := jobs[i]
		job.Attempt = 1
		run := rt.Perform(ctx, job)
		if err := s.journal.Append(context.WithoutCancel(ctx), []hook.Run{run}); err != nil {
			return err
		}
	}
}

// keptJournal keeps all records, and writes them to another journal if there is one.
type keptJournal struct {
	kept *hook.MemoryJournal
	next hook.Journal
}

func (j *keptJournal) Append(ctx context.Context, runs []hook.Run) error {
	if j.next != nil {
		if err := j.next.Append(ctx, runs); err != nil {
			return err
		}
	}
	return j.kept.Append(ctx, runs)
}

func (j *keptJournal) runs() []hook.Run {
	var runs []hook.Run
	for run := range j.kept.List(context.Background(), hook.Filter{}) {
		runs = append(runs, run)
	}
	return runs
}

// keptQueue keeps every job that it gets.
type keptQueue struct {
	journal hook.Journal

	mu   sync.Mutex
	jobs []hook.Job
	keys map[string]bool
}

func (q *keptQueue) Enqueue(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.journal.Append(ctx, []hook.Run{asked}); err != nil {
		return err
	}
	for _, job := range jobs {
		if !q.keys[job.Key] {
			q.keys[job.Key] = true
			q.jobs = append(q.jobs, job)
		}
	}
	return nil
}

func (q *keptQueue) all() []hook.Job {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.jobs)
}

var (
	_ hook.Journal = (*keptJournal)(nil)
	_ hook.Queue   = (*keptQueue)(nil)
)
