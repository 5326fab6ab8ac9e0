package hooktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// claimRules describe which jobs Claim returns, and when.
var claimRules = []rule[queueSubject]{
	{"jobs are claimed in order of their due time", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		now := time.Now()
		var jobs []hook.Job
		for _, due := range []int{60, 20, 80, 40} {
			job := sampleJob(fmt.Sprintf("due-%d", due))
			job.At = now.Add(time.Duration(due) * time.Millisecond)
			jobs = append(jobs, job)
		}
		q.accept(t, q.ask(), jobs...)
		for _, want := range []string{"due-20", "due-40", "due-60", "due-80"} {
			if got := q.claim(t).ID; got != want {
				t.Errorf("claimed %s, want %s next", got, want)
			}
		}
	}},
	{"a job is not claimed before its time", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		soon, far := sampleJob("soon"), sampleJob("far")
		soon.At, far.At = time.Now().Add(2*pause), time.Now().Add(time.Hour)
		q.accept(t, q.ask(), far, soon)
		got := q.claim(t)
		if early := time.Until(soon.At); got.ID != "soon" || early > time.Millisecond {
			t.Errorf("claimed %s, %s before its time", got.ID, early)
		}
		q.wantNoClaim(t)
		q.wantWaiting(t, 1)
	}},
	{"a waiting claim gets a job that arrives", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		claimer := q.claimer(t)
		ctx, cancel := context.WithTimeout(context.Background(), q.patience)
		defer cancel()
		claimed := make(chan error, 3)
		for range cap(claimed) {
			go func() { // ends when Claim returns
				_, err := claimer.Claim(ctx)
				claimed <- err
			}()
		}
		q.accept(t, q.ask(), sampleJob("one"))
		q.accept(t, q.ask(), sampleJob("two"), sampleJob("three"))
		for range cap(claimed) {
			if err := <-claimed; err != nil {
				t.Errorf("Claim: %v", err)
			}
		}
	}},
	{"a claim ends with its context and claims nothing", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		claimer := q.claimer(t)
		ctx, cancel := context.WithCancel(context.Background())
		claimed := make(chan error, 1)
		go func() { // ends when Claim returns
			_, err := claimer.Claim(ctx)
			claimed <- err
		}()
		cancel()
		select {
		case err := <-claimed:
			if err == nil {
				t.Error("Claim on an empty queue returned a job")
			}
		case <-time.After(q.patience):
			t.Fatal("Claim does not return when its context is cancelled")
		}
		q.accept(t, q.ask(), sampleJob("one"))
		q.wantClaims(t, "one")
	}},
}

// settleRules describe what happens to a job after an attempt.
var settleRules = []rule[queueSubject]{
	{"settling stores how the attempt ended", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		asked := q.ask()
		q.accept(t, asked, sampleJob("one"))
		job := q.claim(t)
		q.settle(t, job, hook.TimedOut, time.Time{})
		wantRuns(t, q.Journal, asked, attempt(job, hook.TimedOut))
		wantListed(t, q.Journal, hook.Filter{Job: "one"}, "one.1")
	}},
	{"a retried job is claimed again, and its attempts are counted", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		q.accept(t, q.ask(), sampleJob("one"))
		for n := 1; n <= 3; n++ {
			job := q.claim(t)
			if job.ID != "one" || job.Attempt != n {
				t.Fatalf("claimed %s, attempt %d, want one, attempt %d", job.ID, job.Attempt, n)
			}
			q.settle(t, job, hook.Failed, time.Now())
		}
		wantListed(t, q.Journal, hook.Filter{Job: "one"}, "one.1", "one.2", "one.3")
	}},
	{"a retried job keeps every field", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		q.accept(t, q.ask(), fullJob(time.Now()))
		q.settle(t, q.claim(t), hook.Failed, time.Now())
		got := q.claim(t)
		want := fullJob(got.At) // At may be the first due time or the time of the retry
		want.Attempt = 2
		if diff := differentJob(want, got); diff != "" {
			t.Errorf("the job differs from the queued one (- queued, + claimed again):\n%s", diff)
		}
	}},
	{"a retried job is not claimed before its time", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		q.accept(t, q.ask(), sampleJob("one"))
		again := time.Now().Add(2 * pause)
		q.settle(t, q.claim(t), hook.Failed, again)
		job := q.claim(t)
		if early := time.Until(again); job.Attempt != 2 || early > time.Millisecond {
			t.Errorf("claimed again as attempt %d, %s before its time", job.Attempt, early)
		}
	}},
	{"a retried job keeps its key", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		q.accept(t, q.ask(), sampleJob("one"))
		q.settle(t, q.claim(t), hook.Failed, time.Now().Add(time.Hour))
		q.accept(t, q.ask(), duplicateOfOne())
		q.wantWaiting(t, 1)
		q.wantNoClaim(t)
	}},
	{"a retried job is never rejected because the queue is full", func(t testing.TB, s queueSubject) {
		q := s.open(t, 1)
		q.accept(t, q.ask(), sampleJob("one"))
		job := q.claim(t)
		err := q.Queue.Enqueue(context.Background(), q.ask(), []hook.Job{sampleJob("two")})
		if err != nil && !errors.Is(err, hook.ErrQueueFull) { // a queue may also count running jobs
			t.Fatalf("Enqueue: %v", err)
		}
		q.settle(t, job, hook.Failed, time.Now())
	}},
	{"a finished job is not claimed again", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		q.accept(t, q.ask(), sampleJob("one"))
		q.settle(t, q.claim(t), hook.Completed, time.Time{})
		q.wantWaiting(t, 0)
		q.wantNoClaim(t)
	}},
	{"work that has failed permanently can be scheduled again", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		q.accept(t, q.ask(), sampleJob("one"))
		q.settle(t, q.claim(t), hook.Failed, time.Time{})
		q.wantNoClaim(t)
		q.accept(t, q.ask(), duplicateOfOne())
		q.wantClaims(t, "one-duplicate")
	}},
	{"a job that is not running cannot be settled", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		claimer := q.claimer(t)
		asked, waiting := q.ask(), sampleJob("waiting")
		waiting.At = time.Now().Add(time.Hour)
		q.accept(t, asked, sampleJob("one"), waiting)
		done := q.claim(t)
		q.settle(t, done, hook.Completed, time.Time{})
		unknown := sampleJob("unknown")
		for _, job := range []hook.Job{done, waiting, unknown} {
			job.Attempt = 7
			if err := claimer.Settle(context.Background(), job, attempt(job, hook.Completed), time.Time{}); !errors.Is(err, hook.ErrNotFound) {
				t.Errorf("Settle(%s) returned %v, want an error that is %q", job.ID, err, hook.ErrNotFound)
			}
		}
		wantRuns(t, q.Journal, asked, attempt(done, hook.Completed))
		q.wantWaiting(t, 1)
	}},
	{"a job stays with its claimer if its attempt cannot be stored", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		claimer := q.claimer(t)
		q.accept(t, q.ask(), sampleJob("one"))
		job := q.claim(t)
		appendRuns(t, q.Journal, attempt(job, hook.Interrupted))
		if err := claimer.Settle(context.Background(), job, attempt(job, hook.Completed), time.Time{}); !errors.Is(err, hook.ErrSettled) {
			t.Errorf("Settle returned %v, want an error that is %q", err, hook.ErrSettled)
		}
		q.wantNoClaim(t)
		q.settle(t, job, hook.Interrupted, time.Now())
		q.wantClaims(t, "one")
	}},
}

// statRules describe what Stats returns.
var statRules = []rule[queueSubject]{
	{"the depth counts the jobs", func(t testing.TB, s queueSubject) {
		q := s.open(t, 5)
		q.wantStats(t, hook.QueueStats{Capacity: 5})
		later := sampleJob("later")
		later.At = time.Now().Add(time.Hour)
		q.accept(t, q.ask(), sampleJob("one"), sampleJob("two"), later)
		q.wantStats(t, hook.QueueStats{Waiting: 3, Capacity: 5})
		one, two := q.claim(t), q.claim(t)
		q.wantStats(t, hook.QueueStats{Waiting: 1, Running: 2, Capacity: 5})
		q.settle(t, one, hook.Completed, time.Time{})
		q.wantStats(t, hook.QueueStats{Waiting: 1, Running: 1, Capacity: 5})
		q.settle(t, two, hook.Failed, time.Now().Add(time.Hour))
		q.wantStats(t, hook.QueueStats{Waiting: 2, Capacity: 5})
	}},
	{"the oldest age is that of the oldest due job", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		later := sampleJob("later")
		later.At = time.Now().Add(time.Hour)
		q.accept(t, q.ask(), later)
		if age := q.stats(t).OldestAge; age != 0 {
			t.Errorf("the oldest age is %s though nothing is due, want 0", age)
		}
		before := time.Now()
		q.accept(t, q.ask(), sampleJob("one"))
		after := time.Now()
		<-time.After(pause) // this rule is about elapsed time, so it must wait
		least := time.Since(after)
		age := q.stats(t).OldestAge
		if most := time.Since(before); age < least-time.Millisecond || age > most+time.Millisecond {
			t.Errorf("the oldest age is %s, want %s to %s", age, least, most)
		}
		q.settle(t, q.claim(t), hook.Completed, time.Time{})
		if age := q.stats(t).OldestAge; age != 0 {
			t.Errorf("the oldest age is %s when the job is done, want 0", age)
		}
	}},
}

// stats returns the queue's statistics, or skips the rule.
func (q *queueCase) stats(t testing.TB) hook.QueueStats {
	t.Helper()
	queue, ok := q.Queue.(hook.StatQueue)
	if !ok {
		t.Skip("hooktest: the queue is not a hook.StatQueue")
	}
	stats, err := queue.Stats(context.Background())
	if err != nil {
		t.Fatalf("Stats: %v", err)
	}
	return stats
}

// wantStats asserts the statistics, except for the age.
func (q *queueCase) wantStats(t testing.TB, want hook.QueueStats) {
	t.Helper()
	got := q.stats(t)
	got.OldestAge = 0
	if got != want {
		t.Errorf("the depth is %+v, want %+v", got, want)
	}
}

// parallelQueueRules check that many goroutines can use a queue at once.
var parallelQueueRules = []rule[queueSubject]{
	{"concurrent jobs with one key are stored once", func(t testing.TB, s queueSubject) {
		q := s.open(t, 64)
		const askers = 16
		inParallel(t, askers, func(i int) error {
			job := sampleJob("one")
			job.ID = fmt.Sprintf("one-%d", i)
			return q.Queue.Enqueue(context.Background(), q.ask(), []hook.Job{job})
		})
		if got := len(listRuns(t, q.Journal, hook.Filter{})); got != askers {
			t.Errorf("%d of %d records were stored", got, askers)
		}
		q.wantWaiting(t, 1)
		q.claim(t)
		q.wantNoClaim(t)
	}},
	{"concurrent jobs do not exceed the limit", func(t testing.TB, s queueSubject) {
		const capacity, askers = 10, 24
		q := s.open(t, capacity)
		var mu sync.Mutex
		accepted := 0
		inParallel(t, askers, func(i int) error {
			err := q.Queue.Enqueue(context.Background(), q.ask(), []hook.Job{sampleJob(fmt.Sprint(i))})
			if errors.Is(err, hook.ErrQueueFull) {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			accepted++
			return err
		})
		if stored := len(listRuns(t, q.Journal, hook.Filter{})); accepted != capacity || stored != capacity {
			t.Errorf("%d jobs were accepted and %d records stored, want %d of each", accepted, stored, capacity)
		}
		q.wantWaiting(t, capacity)
	}},
	{"concurrent claims get each job once", func(t testing.TB, s queueSubject) {
		const jobs, claimers = 120, 12
		q := s.open(t, jobs)
		claimer := q.claimer(t)
		for i := range jobs / 4 {
			q.accept(t, q.ask(), sampleJob(fmt.Sprint(i, ".a")), sampleJob(fmt.Sprint(i, ".b")), sampleJob(fmt.Sprint(i, ".c")), sampleJob(fmt.Sprint(i, ".d")))
		}
		ctx, cancel := context.WithTimeout(context.Background(), q.patience)
		defer cancel()
		var mu sync.Mutex
		claims := make(map[string]int)
		inParallel(t, claimers, func(int) error {
			for {
				job, err := claimer.Claim(ctx)
				if err != nil {
					return nil // the end of the rule counts the claims
				}
				if err := claimer.Settle(context.WithoutCancel(ctx), job, attempt(job, hook.Completed), time.Time{}); err != nil {
					return err
				}
				mu.Lock()
				claims[job.ID]++
				if len(claims) == jobs {
					cancel()
				}
				mu.Unlock()
			}
		})
		for id, n := range claims {
			if n != 1 {
				t.Errorf("job %s was claimed %d times, want once", id, n)
			}
		}
		if len(claims) != jobs {
			t.Errorf("%d of %d jobs were claimed", len(claims), jobs)
		}
		q.wantNoClaim(t)
	}},
}
