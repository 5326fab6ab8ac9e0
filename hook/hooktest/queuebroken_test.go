package hooktest_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/internal/probetest"
)

// faultyQueue is a queue with functions that a fault can replace. Without a fault it passes
// every rule.
type faultyQueue struct {
	*hook.MemoryQueue
	journal  *hook.MemoryJournal
	capacity int

	enqueue func(ctx context.Context, asked hook.Run, jobs []hook.Job) error
	claim   func(ctx context.Context) (hook.Job, error)
	settle  func(ctx context.Context, job hook.Job, attempt hook.Run, again time.Time) error
	stats   func(stats *hook.QueueStats)
}

func openFaulty(capacity int) *faultyQueue {
	journal := hook.NewMemoryJournal(4096)
	inner := hook.NewMemoryQueue(journal, &hook.MemoryQueueOptions{Capacity: capacity})
	return &faultyQueue{
		MemoryQueue: inner, journal: journal, capacity: capacity,
		enqueue: inner.Enqueue, claim: inner.Claim, settle: inner.Settle, stats: func(*hook.QueueStats) {},
	}
}

// open returns a queue with the fault.
func open(inflict func(q *faultyQueue)) hooktest.OpenStore {
	return func(_ testing.TB, capacity int) hooktest.Store {
		q := openFaulty(capacity)
		inflict(q)
		return hooktest.Store{Journal: q.journal, Queue: q}
	}
}

func (q *faultyQueue) Enqueue(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
	return q.enqueue(ctx, asked, jobs)
}

func (q *faultyQueue) Claim(ctx context.Context) (hook.Job, error) { return q.claim(ctx) }

func (q *faultyQueue) Settle(ctx context.Context, job hook.Job, attempt hook.Run, again time.Time) error {
	return q.settle(ctx, job, attempt, again)
}

func (q *faultyQueue) Stats(ctx context.Context) (hook.QueueStats, error) {
	stats, err := q.MemoryQueue.Stats(ctx)
	q.stats(&stats)
	return stats, err
}

// unbounded replaces the inner queue by a queue without a limit.
func (q *faultyQueue) unbounded() *hook.MemoryQueue {
	q.MemoryQueue = hook.NewMemoryQueue(q.journal, &hook.MemoryQueueOptions{Capacity: 1 << 20})
	q.enqueue, q.claim, q.settle = q.MemoryQueue.Enqueue, q.MemoryQueue.Claim, q.MemoryQueue.Settle
	return q.MemoryQueue
}

// brokenQueues lists faults, each with the rules that must detect it.
var brokenQueues = []struct {
	fault   string
	inflict func(q *faultyQueue)
	rules   []string
}{
	{"forgets the record", func(q *faultyQueue) {
		q.enqueue = func(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
			if len(jobs) == 0 {
				return nil
			}
			asked.ID += "-other"
			return q.MemoryQueue.Enqueue(ctx, asked, jobs)
		}
	}, []string{
		"a record and its jobs are stored together", "a record without jobs is stored",
		"a record is stored by the rules of the journal",
	}},
	{"forgets the jobs", func(q *faultyQueue) {
		q.enqueue = func(ctx context.Context, asked hook.Run, _ []hook.Job) error {
			return q.MemoryQueue.Enqueue(ctx, asked, nil)
		}
	}, []string{
		"a record and its jobs are stored together", "every field of a job comes back", "a waiting claim gets a job that arrives",
		"concurrent claims get each job once", "the depth counts the jobs", "jobs are claimed in order of their due time",
	}},
	{"stores jobs whose record was refused", func(q *faultyQueue) {
		q.enqueue = func(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
			err := q.MemoryQueue.Enqueue(ctx, asked, jobs)
			if errors.Is(err, hook.ErrSettled) {
				asked.ID += "-other"
				_ = q.MemoryQueue.Enqueue(ctx, asked, jobs)
			}
			return err
		}
	}, []string{"if the journal rejects the record, no job is stored"}},
	{"stores the record of refused jobs", func(q *faultyQueue) {
		q.enqueue = func(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
			return errors.Join(q.journal.Append(ctx, []hook.Run{asked}), q.MemoryQueue.Enqueue(ctx, asked, jobs))
		}
	}, []string{
		"a full queue rejects jobs and stores nothing", "jobs that do not all fit are rejected together",
		"a job without an id or a key rejects the whole call", "concurrent jobs do not exceed the limit",
	}},
	{"has no bound", func(q *faultyQueue) { q.unbounded() }, []string{
		"a full queue rejects jobs and stores nothing", "a full queue has room again when a job is done", "concurrent jobs do not exceed the limit",
	}},
	{"never has room again", func(q *faultyQueue) {
		inner, n := q.unbounded(), 0
		q.enqueue = func(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
			if n += len(jobs); n > q.capacity {
				return hook.ErrQueueFull
			}
			return inner.Enqueue(ctx, asked, jobs)
		}
	}, []string{"a full queue has room again when a job is done", "a job is skipped if its key waits, also in a full queue", "a key that occurs twice is stored once"}},
	{"takes as many jobs as fit", func(q *faultyQueue) {
		q.enqueue = func(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
			for _, job := range jobs {
				if err := q.MemoryQueue.Enqueue(ctx, asked, []hook.Job{job}); err != nil {
					return err
				}
			}
			return q.MemoryQueue.Enqueue(ctx, asked, nil)
		}
	}, []string{"jobs that do not all fit are rejected together", "a job without an id or a key rejects the whole call"}},
	{"does not look at keys", func(q *faultyQueue) {
		q.enqueue = func(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
			jobs = slices.Clone(jobs)
			for i := range jobs {
				jobs[i].Key += jobs[i].ID
			}
			return q.MemoryQueue.Enqueue(ctx, asked, jobs)
		}
	}, []string{
		"a job is skipped if its key waits", "a job is skipped if its key waits, also in a full queue", "a key that occurs twice is stored once",
		"a job is skipped if its key runs", "a job is skipped if its key is done", "a retried job keeps its key",
		"concurrent jobs with one key are stored once",
	}},
	{"stores half when it is cancelled", func(q *faultyQueue) {
		q.enqueue = func(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
			if err := ctx.Err(); err != nil {
				return errors.Join(q.journal.Append(context.WithoutCancel(ctx), []hook.Run{asked}), err)
			}
			return q.MemoryQueue.Enqueue(ctx, asked, jobs)
		}
	}, []string{"a cancelled enqueue stores all or nothing"}},
	{"does not look at the time", func(q *faultyQueue) {
		q.enqueue = func(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
			jobs = slices.Clone(jobs)
			for i := range jobs {
				jobs[i].At = time.Time{}
			}
			return q.MemoryQueue.Enqueue(ctx, asked, jobs)
		}
	}, []string{"jobs are claimed in order of their due time", "a job is not claimed before its time"}},
	{"hands out a job twice", func(q *faultyQueue) {
		var mu sync.Mutex
		var once *hook.Job
		q.claim = func(ctx context.Context) (hook.Job, error) {
			mu.Lock()
			defer mu.Unlock()
			if again := once; again != nil {
				once = nil
				return *again, nil
			}
			job, err := q.MemoryQueue.Claim(ctx)
			if err == nil {
				once = &job
			}
			return job, err
		}
	}, []string{"concurrent claims get each job once", "a finished job is not claimed again", "a full queue rejects jobs and stores nothing"}},
	{"overlooks jobs that come later", func(q *faultyQueue) {
		var looked sync.WaitGroup
		looked.Add(3)
		q.claim = func(ctx context.Context) (hook.Job, error) {
			looked.Done()
			<-ctx.Done()
			return hook.Job{}, ctx.Err()
		}
		q.enqueue = func(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
			looked.Wait()
			return q.MemoryQueue.Enqueue(ctx, asked, jobs)
		}
	}, []string{"a waiting claim gets a job that arrives"}},
	{"ignores a cancel", func(q *faultyQueue) {
		q.claim = func(ctx context.Context) (hook.Job, error) { return q.MemoryQueue.Claim(context.WithoutCancel(ctx)) }
	}, []string{"a claim ends with its context and claims nothing"}},
	{"claims a job after the claim was cancelled", func(q *faultyQueue) {
		cancelled := make(chan struct{})
		q.claim = func(ctx context.Context) (hook.Job, error) {
			job, err := q.MemoryQueue.Claim(ctx)
			if errors.Is(err, context.Canceled) {
				close(cancelled)
			}
			return job, err
		}
		q.enqueue = func(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
			<-cancelled
			err := q.MemoryQueue.Enqueue(ctx, asked, jobs)
			_, _ = q.MemoryQueue.Claim(ctx)
			return err
		}
	}, []string{"a claim ends with its context and claims nothing"}},
	{"does not count attempts", func(q *faultyQueue) {
		q.claim = func(ctx context.Context) (hook.Job, error) {
			job, err := q.MemoryQueue.Claim(ctx)
			job.Attempt = 0
			return job, err
		}
	}, []string{"every field of a job comes back", "a retried job is claimed again, and its attempts are counted"}},
	{"forgets the attempt", func(q *faultyQueue) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, again time.Time) error {
			attempt.ID, attempt.Job = "other", ""
			return q.MemoryQueue.Settle(ctx, job, attempt, again)
		}
	}, []string{"settling stores how the attempt ended", "a job stays with its claimer if its attempt cannot be stored"}},
	{"never tries again", func(q *faultyQueue) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, _ time.Time) error {
			return q.MemoryQueue.Settle(ctx, job, attempt, time.Time{})
		}
	}, []string{"a retried job is claimed again, and its attempts are counted", "a retried job keeps every field", "a retried job keeps its key"}},
	{"tries again at once", func(q *faultyQueue) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, again time.Time) error {
			if !again.IsZero() {
				again = time.Now()
			}
			return q.MemoryQueue.Settle(ctx, job, attempt, again)
		}
	}, []string{"a retried job is not claimed before its time", "a retried job keeps its key"}},
	{"forgets whose job it was", func(q *faultyQueue) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, again time.Time) error {
			job.Scope = hook.Scope{}
			return q.MemoryQueue.Settle(ctx, job, attempt, again)
		}
	}, []string{"a retried job keeps every field"}},
	{"rejects a retried job if it is full", func(q *faultyQueue) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, again time.Time) error {
			if stats, _ := q.MemoryQueue.Stats(ctx); stats.Waiting == q.capacity && !again.IsZero() {
				return hook.ErrQueueFull
			}
			return q.MemoryQueue.Settle(ctx, job, attempt, again)
		}
	}, []string{"a retried job is never rejected because the queue is full"}},
	{"runs finished jobs again", func(q *faultyQueue) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, _ time.Time) error {
			attempt.State = hook.Failed
			return q.MemoryQueue.Settle(ctx, job, attempt, time.Now())
		}
	}, []string{"a finished job is not claimed again", "a job is skipped if its key is done", "work that has failed permanently can be scheduled again"}},
	{"records a failure as a success", func(q *faultyQueue) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, again time.Time) error {
			if again.IsZero() {
				attempt.State = hook.Completed
			}
			return q.MemoryQueue.Settle(ctx, job, attempt, again)
		}
	}, []string{"work that has failed permanently can be scheduled again", "settling stores how the attempt ended"}},
	{"settles a job that nobody claimed", func(q *faultyQueue) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, again time.Time) error {
			err := q.MemoryQueue.Settle(ctx, job, attempt, again)
			if errors.Is(err, hook.ErrNotFound) {
				return q.journal.Append(ctx, []hook.Run{attempt})
			}
			return err
		}
	}, []string{"a job that is not running cannot be settled"}},
	{"releases a job it could not settle", func(q *faultyQueue) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, again time.Time) error {
			err := q.MemoryQueue.Settle(ctx, job, attempt, again)
			if errors.Is(err, hook.ErrSettled) {
				attempt.ID, attempt.State = "other", hook.Failed
				_ = q.MemoryQueue.Settle(ctx, job, attempt, time.Now())
			}
			return err
		}
	}, []string{"a job stays with its claimer if its attempt cannot be stored"}},
	{"counts running jobs as waiting", func(q *faultyQueue) {
		q.stats = func(s *hook.QueueStats) { s.Waiting += s.Running }
	}, []string{"the depth counts the jobs", "a job is skipped if its key runs"}},
	{"does not report its capacity", func(q *faultyQueue) { q.stats = func(s *hook.QueueStats) { s.Capacity = 0 } }, []string{"the depth counts the jobs"}},
	{"does not report the age", func(q *faultyQueue) { q.stats = func(s *hook.QueueStats) { s.OldestAge = 0 } }, []string{"the oldest age is that of the oldest due job"}},
	{"reports an age if no job is due", func(q *faultyQueue) {
		q.stats = func(s *hook.QueueStats) { s.OldestAge = max(s.OldestAge, time.Nanosecond) }
	}, []string{"the oldest age is that of the oldest due job"}},
}

func TestQueueSuiteCatches(t *testing.T) {
	t.Parallel()
	rules := hooktest.QueueRules(300 * time.Millisecond)
	caught := make(map[string]bool)
	for _, broken := range brokenQueues {
		for _, rule := range broken.rules {
			caught[rule] = true
		}
		t.Run(broken.fault, func(t *testing.T) {
			t.Parallel()
			for _, rule := range rules {
				if !slices.Contains(broken.rules, rule.Name) {
					continue
				}
				if p := probetest.Run(t, func(t testing.TB) { rule.Check(t, open(broken.inflict)) }); len(p.Failures()) == 0 {
					t.Errorf("the rule %q holds for a queue that %s", rule.Name, broken.fault)
				}
			}
		})
	}
	for _, rule := range rules {
		if !caught[rule.Name] {
			t.Errorf("nothing breaks the rule %q: it may be one that cannot fail", rule.Name)
		}
		delete(caught, rule.Name)
	}
	for rule := range caught {
		t.Errorf("there is no rule %q", rule)
	}
}

func TestFaultyQueueKeepsTheRulesItIsToBreak(t *testing.T) {
	t.Parallel()
	hooktest.TestQueue(t, open(func(*faultyQueue) {}))
}

// The suite detects a queue that does not keep one field of a job, whichever field it is.
func TestQueueSuiteCatchesEveryForgottenField(t *testing.T) {
	t.Parallel()
	rules := hooktest.QueueRules(300 * time.Millisecond)
	every := rules[slices.IndexFunc(rules, func(r hooktest.NamedRule[hooktest.OpenStore]) bool {
		return r.Name == "every field of a job comes back"
	})]
	for field := range reflect.TypeFor[hook.Job]().Fields() {
		t.Run(field.Name, func(t *testing.T) {
			t.Parallel()
			forgets := func(q *faultyQueue) {
				q.claim = func(ctx context.Context) (hook.Job, error) {
					job, err := q.MemoryQueue.Claim(ctx)
					reflect.ValueOf(&job).Elem().FieldByIndex(field.Index).SetZero()
					return job, err
				}
			}
			probetest.Run(t, func(t testing.TB) { every.Check(t, open(forgets)) }).WantFailure(t)
		})
	}
}

// For a queue without the optional interfaces, the suite still checks the other rules.
func TestQueueSuiteWithoutClaims(t *testing.T) {
	t.Parallel()
	bare := func(_ testing.TB, capacity int) hooktest.Store {
		q := openFaulty(capacity)
		return hooktest.Store{Journal: q.journal, Queue: struct{ hook.Queue }{q}}
	}
	skipped := make(map[string]bool)
	for _, rule := range hooktest.QueueRules(300 * time.Millisecond) {
		p := probetest.Run(t, func(t testing.TB) { rule.Check(t, bare) })
		p.WantSuccess(t)
		skipped[rule.Name] = p.Skipped()
	}
	for rule, want := range map[string]bool{
		"a record without jobs is stored":                     false,
		"a job without an id or a key rejects the whole call": false,
		"concurrent jobs do not exceed the limit":             false,
		"jobs are claimed in order of their due time":         true,
		"the depth counts the jobs":                           true,
	} {
		if got := skipped[rule]; got != want {
			t.Errorf("the rule %q was skipped: %t, want %t", rule, got, want)
		}
	}
}
