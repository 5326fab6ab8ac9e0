package hooktest_test

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/internal/probetest"
)

// performer is the argument of Work.
type performer func(ctx context.Context, job hook.Job) (hook.Run, time.Time)

// faultyWork is a minimal queue with its own workers, and with functions that a fault can
// replace. Without a fault it passes every rule.
type faultyWork struct {
	*faultyQueue
	workers int

	begin func(ctx context.Context, job hook.Job) error
	try   func(ctx context.Context, job hook.Job, perform performer) (run hook.Run, again time.Time, ok bool)
	// leave reports whether a worker stops when its context is done.
	leave bool
}

func openWork(capacity, workers int) *faultyWork {
	q := &faultyWork{faultyQueue: openFaulty(capacity), workers: workers, leave: true}
	q.begin = func(ctx context.Context, job hook.Job) error {
		return q.journal.Append(ctx, []hook.Run{job.Begun(time.Now())})
	}
	q.try = attempted
	return q
}

// attempted performs a job. If perform panics, the attempt has failed.
func attempted(ctx context.Context, job hook.Job, perform performer) (run hook.Run, again time.Time, ok bool) {
	defer func() {
		if recover() != nil {
			run, ok = job.Begun(time.Now()), true
			run.State = hook.Failed
		}
	}()
	run, again = perform(ctx, job)
	return run, again, true
}

// Work runs jobs on q.workers goroutines.
func (q *faultyWork) Work(ctx context.Context, perform func(context.Context, hook.Job) (hook.Run, time.Time)) error {
	if !q.leave {
		ctx = context.WithoutCancel(ctx)
	}
	var workers sync.WaitGroup
	for range q.workers {
		workers.Go(func() {
			for {
				job, err := q.claim(ctx)
				if err != nil {
					return
				}
				detached := context.WithoutCancel(ctx)
				if err := q.begin(detached, job); err != nil {
					return
				}
				run, again, ok := q.try(ctx, job, perform)
				if !ok {
					return
				}
				if err := q.settle(detached, job, run, again); err != nil {
					return
				}
			}
		})
	}
	workers.Wait()
	return nil
}

// openBroken returns a queue with the fault.
func openBroken(inflict func(q *faultyWork)) hooktest.OpenWork {
	return func(_ testing.TB, capacity, workers int) hooktest.Store {
		q := openWork(capacity, workers)
		inflict(q)
		return hooktest.Store{Journal: q.journal, Queue: q}
	}
}

// brokenWork lists faults, each with the rules that must detect it.
var brokenWork = []struct {
	fault   string
	inflict func(q *faultyWork)
	rules   []string
}{
	{"forgets whose job it is", func(q *faultyWork) {
		q.claim = func(ctx context.Context) (hook.Job, error) {
			job, err := q.MemoryQueue.Claim(ctx)
			job.Scope = hook.Scope{}
			return job, err
		}
	}, []string{"a job is performed with every field", "a retried job keeps every field"}},
	{"does not look at the time", func(q *faultyWork) {
		q.enqueue = func(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
			jobs = slices.Clone(jobs)
			for i := range jobs {
				jobs[i].At = time.Time{}
			}
			return q.MemoryQueue.Enqueue(ctx, asked, jobs)
		}
	}, []string{"jobs are performed in order of their due time", "a job is not performed before its time"}},
	{"stops when there is nothing to do", func(q *faultyWork) {
		q.claim = func(ctx context.Context) (hook.Job, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Nanosecond)
			defer cancel()
			<-ctx.Done()
			return q.MemoryQueue.Claim(ctx)
		}
	}, []string{"a job that arrives during work is performed"}},
	{"records attempts only after they have ended", func(q *faultyWork) {
		q.begin = func(context.Context, hook.Job) error { return nil }
	}, []string{"an attempt is recorded before it is made"}},
	{"records the start of an attempt without its key", func(q *faultyWork) {
		q.begin = func(ctx context.Context, job hook.Job) error {
			begun := job.Begun(time.Now())
			begun.Key = ""
			return q.journal.Append(ctx, []hook.Run{begun})
		}
	}, []string{"an attempt is recorded before it is made"}},
	{"records the end of an attempt as another run", func(q *faultyWork) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, again time.Time) error {
			attempt.ID += "-end"
			return q.MemoryQueue.Settle(ctx, job, attempt, again)
		}
	}, []string{
		"the record of how an attempt ended replaces that of its beginning", "an ended job is not performed again",
		"a retried job is performed again, and each attempt is recorded",
	}},
	{"never has room again", func(q *faultyWork) {
		n := 0
		inner := q.unbounded()
		q.enqueue = func(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
			if n += len(jobs); n > q.capacity {
				n -= len(jobs)
				return hook.ErrQueueFull
			}
			return inner.Enqueue(ctx, asked, jobs)
		}
	}, []string{"a full queue has room again when a job is performed"}},
	{"counts running jobs as waiting", func(q *faultyWork) {
		q.stats = func(s *hook.QueueStats) { s.Waiting += s.Running }
	}, []string{"the depth counts the work"}},
	{"stops after a panic", func(q *faultyWork) {
		q.try = func(ctx context.Context, job hook.Job, perform performer) (run hook.Run, again time.Time, ok bool) {
			defer func() { _ = recover() }()
			run, again = perform(ctx, job)
			return run, again, true
		}
	}, []string{"work that panics fails, and the next job is performed"}},
	{"records a panic as a success", func(q *faultyWork) {
		q.try = func(ctx context.Context, job hook.Job, perform performer) (run hook.Run, again time.Time, ok bool) {
			run, again, ok = attempted(ctx, job, perform)
			if run.State == hook.Failed {
				run.State = hook.Completed
			}
			return run, again, ok
		}
	}, []string{"work that panics fails, and the next job is performed"}},
	{"has one worker", func(q *faultyWork) { q.workers = 1 }, []string{"as many jobs run as there are workers"}},
	{"has too many workers", func(q *faultyWork) { q.workers++ }, []string{"as many jobs run as there are workers"}},
	{"performs a job twice", func(q *faultyWork) {
		q.try = func(ctx context.Context, job hook.Job, perform performer) (hook.Run, time.Time, bool) {
			_, _, _ = attempted(ctx, job, perform)
			return attempted(ctx, job, perform)
		}
	}, []string{"many workers perform each job once", "an ended job is not performed again"}},
	{"does not count attempts", func(q *faultyWork) {
		q.claim = func(ctx context.Context) (hook.Job, error) {
			job, err := q.MemoryQueue.Claim(ctx)
			job.Attempt = 1
			return job, err
		}
	}, []string{"a retried job is performed again, and each attempt is recorded", "a retried job keeps every field"}},
	{"never tries again", func(q *faultyWork) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, _ time.Time) error {
			return q.MemoryQueue.Settle(ctx, job, attempt, time.Time{})
		}
	}, []string{
		"a retried job is performed again, and each attempt is recorded", "a job is skipped if its key waits for a retry",
		"the next worker performs interrupted work again",
	}},
	{"tries again at once", func(q *faultyWork) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, again time.Time) error {
			if !again.IsZero() {
				again = time.Now()
			}
			return q.MemoryQueue.Settle(ctx, job, attempt, again)
		}
	}, []string{"a retried job is not performed before its time"}},
	{"drops a retried job if it is full", func(q *faultyWork) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, again time.Time) error {
			if stats, _ := q.MemoryQueue.Stats(ctx); stats.Waiting == q.capacity {
				again = time.Time{}
			}
			return q.MemoryQueue.Settle(ctx, job, attempt, again)
		}
	}, []string{"a retried job is never rejected because the queue is full"}},
	{"tries everything again", func(q *faultyWork) {
		q.settle = func(ctx context.Context, job hook.Job, attempt hook.Run, _ time.Time) error {
			return q.MemoryQueue.Settle(ctx, job, attempt, time.Now())
		}
	}, []string{
		"an ended job is not performed again", "a running attempt is cancelled when work ends, and settled",
		"a key is free again when its job has failed permanently",
	}},
	{"does not look at keys", func(q *faultyWork) {
		q.enqueue = func(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
			jobs = slices.Clone(jobs)
			for i := range jobs {
				jobs[i].Key += asked.ID
			}
			return q.MemoryQueue.Enqueue(ctx, asked, jobs)
		}
	}, []string{
		"a job whose key has succeeded is not performed again", "a job whose key is running is skipped",
		"a job is skipped if its key waits for a retry",
	}},
	{"does not stop", func(q *faultyWork) { q.leave = false }, []string{"Work returns when its context is done"}},
	{"does not cancel running work when it stops", func(q *faultyWork) {
		q.try = func(ctx context.Context, job hook.Job, perform performer) (hook.Run, time.Time, bool) {
			return attempted(context.WithoutCancel(ctx), job, perform)
		}
	}, []string{"a running attempt is cancelled when work ends, and settled", "an attempt that ends during the stop keeps its result"}},
	{"leaves without settling", func(q *faultyWork) {
		q.try = func(ctx context.Context, job hook.Job, perform performer) (hook.Run, time.Time, bool) {
			run, again, _ := attempted(ctx, job, perform)
			return run, again, ctx.Err() == nil
		}
	}, []string{
		"a running attempt is cancelled when work ends, and settled", "the next worker performs interrupted work again",
		"an attempt that ends during the stop keeps its result",
	}},
	{"performs waiting jobs before it stops", func(q *faultyWork) {
		q.claim = func(ctx context.Context) (hook.Job, error) {
			job, err := q.MemoryQueue.Claim(ctx)
			if err == nil || ctx.Err() == nil {
				return job, err
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Millisecond)
			defer cancel()
			return q.MemoryQueue.Claim(ctx)
		}
	}, []string{"jobs that have not begun when Work ends wait for the next worker"}},
}

func TestWorkSuiteCatches(t *testing.T) {
	t.Parallel()
	rules := hooktest.WorkRules(300 * time.Millisecond)
	caught := make(map[string]bool)
	for _, broken := range brokenWork {
		for _, rule := range broken.rules {
			caught[rule] = true
		}
		t.Run(broken.fault, func(t *testing.T) {
			t.Parallel()
			for _, rule := range rules {
				if !slices.Contains(broken.rules, rule.Name) {
					continue
				}
				if p := probetest.Run(t, func(t testing.TB) { rule.Check(t, openBroken(broken.inflict)) }); len(p.Failures()) == 0 {
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

// SPEC J-05
func TestFaultyWorkKeepsTheRulesItIsToBreak(t *testing.T) {
	t.Parallel()
	hooktest.TestWorkQueue(t, openBroken(func(*faultyWork) {}))
}

// The suite detects a queue that does not keep one field of a job, whichever field it is.
func TestWorkSuiteCatchesEveryForgottenField(t *testing.T) {
	t.Parallel()
	rules := hooktest.WorkRules(300 * time.Millisecond)
	every := rules[slices.IndexFunc(rules, func(r hooktest.NamedRule[hooktest.OpenWork]) bool {
		return r.Name == "a job is performed with every field"
	})]
	for field := range reflect.TypeFor[hook.Job]().Fields() {
		t.Run(field.Name, func(t *testing.T) {
			t.Parallel()
			forgets := func(q *faultyWork) {
				q.try = func(ctx context.Context, job hook.Job, perform performer) (hook.Run, time.Time, bool) {
					spoilt := job
					reflect.ValueOf(&spoilt).Elem().FieldByIndex(field.Index).SetZero()
					return attempted(ctx, spoilt, perform)
				}
			}
			probetest.Run(t, func(t testing.TB) { every.Check(t, openBroken(forgets)) }).WantFailure(t)
		})
	}
}

// The suite fails for a queue without a Work method.
func TestWorkSuiteWithoutWork(t *testing.T) {
	t.Parallel()
	bare := func(_ testing.TB, capacity, _ int) hooktest.Store {
		q := openFaulty(capacity)
		return hooktest.Store{Journal: q.journal, Queue: q.MemoryQueue}
	}
	for _, rule := range hooktest.WorkRules(time.Millisecond) {
		probetest.Run(t, func(t testing.TB) { rule.Check(t, bare) }).WantFailure(t, "is not a hook.WorkQueue")
	}
}
