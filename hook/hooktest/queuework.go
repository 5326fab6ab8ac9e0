package hooktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// TestWorkQueue checks that an implementation of [hook.WorkQueue] does everything that the
// interface promises in addition to [hook.Queue]. Use [TestQueue] for the rest. open
// returns an empty queue with room for capacity waiting jobs and with the given number of
// workers, and an empty journal. Clean up with t.Cleanup.
//
// Some queues give running work some time when they are stopped. Set that time to a
// fraction of a second here. The suite does not check what happens when a process dies,
// because no interface shows it.
func TestWorkQueue(t *testing.T, open func(t testing.TB, capacity, workers int) Store) {
	t.Helper()
	testRules(t, workRules(), func(testing.TB) workSubject { return workSubject{open, patience} })
}

// workRules returns every rule of the suite.
func workRules() []rule[workSubject] {
	return slices.Concat(performRules, againRules, keyRules, stopRules, workerRules)
}

// workSubject opens queues for a rule.
type workSubject struct {
	openStore func(t testing.TB, capacity, workers int) Store
	patience  time.Duration
}

// open opens a queue with room for capacity jobs and with this number of workers.
func (s workSubject) open(t testing.TB, capacity, workers int) *workCase {
	t.Helper()
	store := s.openStore(t, capacity, workers)
	queue, ok := store.Queue.(hook.WorkQueue)
	if !ok {
		t.Fatalf("hooktest: the queue %T is not a hook.WorkQueue", store.Queue)
	}
	return &workCase{queueCase{Store: store, patience: s.patience}, queue}
}

// workCase is one queue that a rule checks.
type workCase struct {
	queueCase
	queue hook.WorkQueue
}

// performer is the type of the function that Work calls for each attempt.
type performer func(ctx context.Context, job hook.Job) (hook.Run, time.Time)

// ends returns a performer whose attempts end at once in the given state, without a retry.
func ends(state hook.State) performer {
	return func(_ context.Context, job hook.Job) (hook.Run, time.Time) { return attempt(job, state), time.Time{} }
}

// failsUntil returns a performer whose attempts fail until attempt number last, which
// completes. again returns when a failed job is due again.
func failsUntil(last int, again func() time.Time) performer {
	return func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
		if job.Attempt < last {
			return attempt(job, hook.Failed), again()
		}
		return attempt(job, hook.Completed), time.Time{}
	}
}

// waitsFor returns a performer whose attempts wait until they are released or stopped.
func waitsFor(release <-chan struct{}) performer {
	return func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		select {
		case <-release:
		case <-ctx.Done():
			select {
			case <-release: // both happened: the release counts
			default:
				return interrupted(job)
			}
		}
		return attempt(job, hook.Completed), time.Time{}
	}
}

// interrupted returns the record of an attempt that was stopped, and the time at which the
// job is due again. The time is zero if the job is not idempotent.
func interrupted(job hook.Job) (hook.Run, time.Time) {
	if !job.Idempotent {
		return attempt(job, hook.Interrupted), time.Time{}
	}
	return attempt(job, hook.Interrupted), time.Now()
}

// shift is one call of Work, on its own goroutine.
type shift struct {
	q        *workCase
	cancel   context.CancelFunc
	attempts chan begun
	over     chan struct{} // closed when Work has returned
	err      error         // the error that Work returned
}

// begun is an attempt that has begun.
type begun struct {
	hook.Job
	at time.Time
}

// work begins a shift. The shift ends when the test ends, or earlier.
func (q *workCase) work(t testing.TB, perform performer) *shift {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &shift{q: q, cancel: cancel, attempts: make(chan begun, 1024), over: make(chan struct{})}
	go func() { // ends when the shift is stopped
		defer close(s.over)
		s.err = q.queue.Work(ctx, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
			s.attempts <- begun{job, time.Now()}
			return perform(ctx, job)
		})
	}()
	t.Cleanup(func() { s.ended() })
	return s
}

// ended stops the shift and reports whether Work returned in time.
func (s *shift) ended() bool {
	s.cancel()
	select {
	case <-s.over:
		return true
	case <-time.After(s.q.patience):
		return false
	}
}

// stop stops the shift. It fails the test if Work does not return, or returns an error.
func (s *shift) stop(t testing.TB) {
	t.Helper()
	switch {
	case !s.ended():
		t.Fatal("Work does not return when its context is done")
	case s.err != nil:
		t.Errorf("Work: %v", s.err)
	}
}

// next waits for the next attempt to begin.
func (s *shift) next(t testing.TB) begun {
	t.Helper()
	select {
	case got := <-s.attempts:
		return got
	case <-s.over:
		t.Fatalf("Work returned, with the error %v, before the next attempt", s.err)
	case <-time.After(s.q.patience):
		t.Fatal("no job is performed")
	}
	return begun{}
}

// want waits for the next attempt and asserts its job id and its number.
func (s *shift) want(t testing.TB, id string, number int) {
	t.Helper()
	if got := s.next(t); got.ID != id || got.Attempt != number {
		t.Errorf("performed %s, attempt %d, want %s, attempt %d", got.ID, got.Attempt, id, number)
	}
}

// wantNone asserts that no attempt begins within a short time.
func (s *shift) wantNone(t testing.TB) {
	t.Helper()
	select {
	case got := <-s.attempts:
		t.Errorf("performed %s, attempt %d, want nothing to be performed", got.ID, got.Attempt)
	case <-time.After(pause):
	}
}

// wantAttempts asserts the recorded states of the attempts of a job, in order.
func (q *workCase) wantAttempts(t testing.TB, job string, states ...hook.State) {
	t.Helper()
	var got []hook.State
	for i, run := range listRuns(t, q.Journal, hook.Filter{Job: job}) {
		got = append(got, run.State)
		if want := fmt.Sprintf("%s.%d", job, i+1); run.ID != want {
			t.Errorf("record %d of job %s has the id %s, want %s", i+1, job, run.ID, want)
		}
	}
	if !slices.Equal(got, states) {
		t.Errorf("the attempts at job %s are recorded as %v, want %v", job, got, states)
	}
}

// performRules describe which jobs are performed, when, and what is recorded.
var performRules = []rule[workSubject]{
	{"a job is performed with every field", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 1)
		job := fullJob(time.Now().Add(-time.Second))
		q.accept(t, q.ask(), job)
		got := q.work(t, ends(hook.Completed)).next(t)
		if got.Attempt != 1 {
			t.Errorf("the first attempt is attempt %d, want 1", got.Attempt)
		}
		got.Attempt = 0
		if diff := differentJob(job, got.Job); diff != "" {
			t.Errorf("the job differs from the queued one (- queued, + performed):\n%s", diff)
		}
	}},
	{"jobs are performed in order of their due time", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 1)
		now := time.Now()
		var jobs []hook.Job
		for _, due := range []int{60, 20, 80, 40} {
			job := sampleJob(fmt.Sprintf("due-%d", due))
			job.At = now.Add(time.Duration(due) * time.Millisecond)
			jobs = append(jobs, job)
		}
		q.accept(t, q.ask(), jobs...)
		shift := q.work(t, ends(hook.Completed))
		for _, want := range []string{"due-20", "due-40", "due-60", "due-80"} {
			shift.want(t, want, 1)
		}
	}},
	{"a job is not performed before its time", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 2)
		soon, far := sampleJob("soon"), sampleJob("far")
		soon.At, far.At = time.Now().Add(2*pause), time.Now().Add(time.Hour)
		q.accept(t, q.ask(), far, soon)
		shift := q.work(t, ends(hook.Completed))
		got := shift.next(t)
		if early := soon.At.Sub(got.at); got.ID != "soon" || early > time.Millisecond {
			t.Errorf("performed %s, %s before the time of the first job", got.ID, early)
		}
		shift.wantNone(t)
		shift.stop(t)
		q.wantWaiting(t, 1)
	}},
	{"a job that arrives during work is performed", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 1)
		shift := q.work(t, ends(hook.Completed))
		for _, name := range []string{"one", "two"} {
			q.accept(t, q.ask(), sampleJob(name))
			shift.want(t, name, 1)
		}
	}},
	{"an attempt is recorded before it is made", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 1)
		job := fullJob(time.Now().Add(-time.Second))
		q.accept(t, q.ask(), job)
		release := make(chan struct{})
		shift := q.work(t, waitsFor(release))
		job.Attempt = shift.next(t).Attempt
		run := readRun(t, q.Journal, job.ID+".1")
		if diff := differentRun(job.Begun(run.Started), run); diff != "" {
			t.Errorf("the record differs from that of an attempt that has begun (- want, + read):\n%s", diff)
		}
		if age := time.Since(run.Started); age < 0 || age > time.Hour {
			t.Errorf("the attempt began at %s, %s ago", run.Started, age)
		}
		close(release)
	}},
	{"the record of how an attempt ended replaces that of its beginning", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 1)
		asked, job := q.ask(), sampleJob("one")
		q.accept(t, asked, job)
		shift := q.work(t, ends(hook.TimedOut))
		job.Attempt = shift.next(t).Attempt
		shift.stop(t)
		wantRuns(t, q.Journal, asked, attempt(job, hook.TimedOut))
	}},
	{"a full queue has room again when a job is performed", func(t testing.TB, s workSubject) {
		q := s.open(t, 1, 1)
		q.accept(t, q.ask(), sampleJob("one"))
		q.refuse(t, hook.ErrQueueFull, q.ask(), sampleJob("two"))
		shift := q.work(t, ends(hook.Completed))
		shift.want(t, "one", 1)
		q.accept(t, q.ask(), sampleJob("two"))
		shift.want(t, "two", 1)
	}},
	{"the depth counts the work", func(t testing.TB, s workSubject) {
		q := s.open(t, 5, 1)
		q.accept(t, q.ask(), sampleJob("one"), sampleJob("two"))
		q.wantStats(t, hook.QueueStats{Waiting: 2, Capacity: 5})
		release := make(chan struct{})
		shift := q.work(t, waitsFor(release))
		shift.next(t)
		q.wantStats(t, hook.QueueStats{Waiting: 1, Running: 1, Capacity: 5})
		close(release)
		shift.next(t)
		shift.stop(t)
		q.wantStats(t, hook.QueueStats{Capacity: 5})
	}},
	{"work that panics fails, and the next job is performed", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 1)
		bad := sampleJob("bad")
		bad.Idempotent, bad.Retry = false, hook.Retry{}
		q.accept(t, q.ask(), bad)
		shift := q.work(t, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
			if job.ID == "bad" {
				panic("hooktest: the work panics")
			}
			return ends(hook.Completed)(ctx, job)
		})
		shift.want(t, "bad", 1)
		q.accept(t, q.ask(), sampleJob("good"))
		shift.want(t, "good", 1)
		shift.stop(t)
		q.wantAttempts(t, "bad", hook.Failed)
	}},
}

// workerRules check a queue with several workers.
var workerRules = []rule[workSubject]{
	{"as many jobs run as there are workers", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 3)
		release := make(chan struct{})
		shift := q.work(t, waitsFor(release))
		q.accept(t, q.ask(), sampleJob("1"), sampleJob("2"), sampleJob("3"), sampleJob("4"), sampleJob("5"))
		for range 3 {
			shift.next(t)
		}
		shift.wantNone(t)
		close(release)
		for range 2 {
			shift.next(t)
		}
	}},
	{"many workers perform each job once", func(t testing.TB, s workSubject) {
		const jobs, workers = 60, 6
		q := s.open(t, jobs, workers)
		for i := range jobs / 2 {
			q.accept(t, q.ask(), sampleJob(fmt.Sprint(i, ".a")), sampleJob(fmt.Sprint(i, ".b")))
		}
		var mu sync.Mutex
		performed := make(map[string]int)
		shift := q.work(t, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
			mu.Lock()
			defer mu.Unlock()
			performed[job.ID]++
			return ends(hook.Completed)(ctx, job)
		})
		for range jobs {
			shift.next(t)
		}
		shift.wantNone(t)
		shift.stop(t)
		for id, n := range performed {
			if n != 1 {
				t.Errorf("job %s was performed %d times, want once", id, n)
			}
			q.wantAttempts(t, id, hook.Completed)
		}
	}},
}
