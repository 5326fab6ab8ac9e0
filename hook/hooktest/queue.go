package hooktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// Store is a queue and the journal that the queue writes to.
type Store struct {
	Journal hook.Journal
	Queue   hook.Queue
	// Dump returns the stored data itself, for example the bytes of the database and of its
	// write-ahead log. If it is nil, only the results of the interfaces are checked.
	Dump func() ([]byte, error)
}

// TestQueue checks that an implementation of [hook.Queue] does everything that the
// interface promises. open returns an empty queue with room for capacity waiting jobs, and
// an empty journal. Clean up with t.Cleanup.
//
// The suite needs optional interfaces to see what was stored: a [hook.ListJournal] for the
// record, a [hook.StatQueue] for the number of jobs, a [hook.ClaimQueue] for the jobs
// themselves. It skips rules that need a missing interface.
//
// Times may be rounded to a microsecond. Databases have their own clock, so the suite uses
// real time: it waits a fraction of a second for jobs to become due.
func TestQueue(t *testing.T, open func(t testing.TB, capacity int) Store) {
	t.Helper()
	testRules(t, queueRules(), func(testing.TB) queueSubject { return queueSubject{open, patience} })
}

// queueRules returns every rule of the suite.
func queueRules() []rule[queueSubject] {
	return slices.Concat(enqueueRules, claimRules, settleRules, statRules, parallelQueueRules)
}

// queueSubject opens queues for a rule.
type queueSubject struct {
	openStore func(t testing.TB, capacity int) Store
	patience  time.Duration
}

// open opens a queue with room for capacity jobs.
func (s queueSubject) open(t testing.TB, capacity int) *queueCase {
	t.Helper()
	return &queueCase{Store: s.openStore(t, capacity), patience: s.patience}
}

// queueCase is one queue that a rule checks.
type queueCase struct {
	Store
	patience time.Duration
	asked    atomic.Int64
}

// enqueueRules describe what Enqueue stores and rejects.
var enqueueRules = []rule[queueSubject]{
	{"a record and its jobs are stored together", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		asked := sampleRun("asked", hook.Completed, 1)
		q.accept(t, asked, sampleJob("one"), sampleJob("two"))
		wantRuns(t, q.Journal, asked)
		q.wantWaiting(t, 2)
		q.wantClaims(t, "one", "two")
	}},
	{"every field of a job comes back", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		job := fullJob(time.Now().Add(-time.Second))
		q.accept(t, q.ask(), job)
		got := q.claim(t)
		if got.Attempt != 1 {
			t.Errorf("the first claim is attempt %d, want 1", got.Attempt)
		}
		got.Attempt = 0
		if diff := differentJob(job, got); diff != "" {
			t.Errorf("the job differs from the queued one (- queued, + claimed):\n%s", diff)
		}
	}},
	{"a record without jobs is stored", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		asked := sampleRun("asked", hook.Completed, 1)
		q.accept(t, asked)
		wantRuns(t, q.Journal, asked)
	}},
	{"a record is stored by the rules of the journal", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		appendRuns(t, q.Journal, sampleRun("asked", hook.Started, 1))
		asked := sampleRun("asked", hook.Completed, 1)
		q.accept(t, asked, sampleJob("one"))
		q.accept(t, asked, sampleJob("two"))
		wantRuns(t, q.Journal, asked)
	}},
	{"if the journal rejects the record, no job is stored", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		settled := sampleRun("asked", hook.Completed, 1)
		appendRuns(t, q.Journal, settled)
		q.refuse(t, hook.ErrSettled, sampleRun("asked", hook.Failed, 1), sampleJob("one"))
		wantRuns(t, q.Journal, settled)
		q.wantWaiting(t, 0)
		q.accept(t, q.ask(), sampleJob("one")) // the key of the rejected job is still free
		q.wantClaims(t, "one")
	}},
	{"a full queue rejects jobs and stores nothing", func(t testing.TB, s queueSubject) {
		q := s.open(t, 2)
		asked := sampleRun("asked", hook.Completed, 1)
		q.accept(t, asked, sampleJob("one"), sampleJob("two"))
		q.refuse(t, hook.ErrQueueFull, sampleRun("refused", hook.Completed, 2), sampleJob("three"))
		wantRuns(t, q.Journal, asked)
		q.wantWaiting(t, 2)
		q.wantClaims(t, "one", "two")
		q.wantNoClaim(t)
	}},
	{"jobs that do not all fit are rejected together", func(t testing.TB, s queueSubject) {
		q := s.open(t, 3)
		asked := sampleRun("asked", hook.Completed, 1)
		q.accept(t, asked, sampleJob("one"), sampleJob("two"))
		q.refuse(t, hook.ErrQueueFull, sampleRun("refused", hook.Completed, 2), sampleJob("three"), sampleJob("four"))
		wantRuns(t, q.Journal, asked)
		q.wantWaiting(t, 2)
		q.accept(t, q.ask(), sampleJob("three")) // the key of the rejected job is still free
		q.wantClaims(t, "one", "two", "three")
	}},
	{"a full queue has room again when a job is done", func(t testing.TB, s queueSubject) {
		q := s.open(t, 1)
		q.accept(t, q.ask(), sampleJob("one"))
		q.refuse(t, hook.ErrQueueFull, q.ask(), sampleJob("two"))
		q.settle(t, q.claim(t), hook.Completed, time.Time{})
		q.accept(t, q.ask(), sampleJob("two"))
		q.wantClaims(t, "two")
	}},
	{"a job is skipped if its key waits", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		asked, again := sampleRun("asked", hook.Completed, 1), sampleRun("again", hook.Completed, 2)
		q.accept(t, asked, sampleJob("one"))
		q.accept(t, again, duplicateOfOne(), sampleJob("two"))
		wantRuns(t, q.Journal, asked, again)
		q.wantWaiting(t, 2)
		q.wantClaims(t, "one", "two")
		q.wantNoClaim(t)
	}},
	{"a job is skipped if its key waits, also in a full queue", func(t testing.TB, s queueSubject) {
		q := s.open(t, 1)
		asked, again := sampleRun("asked", hook.Completed, 1), sampleRun("again", hook.Completed, 2)
		q.accept(t, asked, sampleJob("one"))
		q.accept(t, again, duplicateOfOne())
		wantRuns(t, q.Journal, asked, again)
		q.wantWaiting(t, 1)
	}},
	{"a key that occurs twice is stored once", func(t testing.TB, s queueSubject) {
		q := s.open(t, 1)
		q.accept(t, q.ask(), sampleJob("one"), duplicateOfOne())
		q.wantWaiting(t, 1)
		q.wantClaims(t, "one")
		q.wantNoClaim(t)
	}},
	{"a job is skipped if its key runs", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		q.accept(t, q.ask(), sampleJob("one"))
		q.wantClaims(t, "one")
		q.accept(t, q.ask(), duplicateOfOne())
		q.wantWaiting(t, 0)
		q.wantNoClaim(t)
	}},
	{"a job is skipped if its key is done", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		q.accept(t, q.ask(), sampleJob("one"))
		q.settle(t, q.claim(t), hook.Completed, time.Time{})
		q.accept(t, q.ask(), duplicateOfOne(), sampleJob("one")) // once with another id, and once with the same id
		q.wantWaiting(t, 0)
		q.wantNoClaim(t)
	}},
	{"a job without an id or a key rejects the whole call", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		noID, noKey := sampleJob("bad"), sampleJob("bad")
		noID.ID, noKey.Key = "", ""
		q.refuse(t, nil, q.ask(), sampleJob("one"), noID)
		q.refuse(t, nil, q.ask(), sampleJob("one"), noKey)
		q.wantWaiting(t, 0)
		wantRuns(t, q.Journal)
	}},
	{"a cancelled enqueue stores all or nothing", func(t testing.TB, s queueSubject) {
		q := s.open(t, 8)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		err := q.Queue.Enqueue(ctx, q.ask(), []hook.Job{sampleJob("one"), sampleJob("two")})
		runs, jobs := 1, 2
		if err != nil {
			runs, jobs = 0, 0
		}
		if got := len(listRuns(t, q.Journal, hook.Filter{})); got != runs {
			t.Errorf("Enqueue returned %v and stored %d records, want %d", err, got, runs)
		}
		q.wantWaiting(t, jobs)
	}},
}

// sampleJob returns a job whose id and key are made from a name.
func sampleJob(name string) hook.Job {
	return hook.Job{
		Handler: "sample", Reference: "transcript:1", Key: "key:" + name, ID: name, Subscription: "sample", Phase: "test.phase",
		Run: "asked", Scope: hook.Scope{Session: "session", Turn: "turn"}, Idempotent: true, Retry: hook.Retry{Attempts: 9},
	}
}

// duplicateOfOne returns another job with the key of the sample job "one".
func duplicateOfOne() hook.Job {
	job := sampleJob("one")
	job.ID = "one-duplicate"
	return job
}

// ask returns the record of a new run that schedules jobs.
func (q *queueCase) ask() hook.Run {
	n := int(q.asked.Add(1))
	return sampleRun(fmt.Sprintf("asked-%d", n), hook.Completed, n)
}

// accept enqueues jobs. It fails the test on an error.
func (q *queueCase) accept(t testing.TB, asked hook.Run, jobs ...hook.Job) {
	t.Helper()
	if err := q.Queue.Enqueue(context.Background(), asked, jobs); err != nil {
		t.Fatalf("Enqueue(%s, %s): %v", asked.ID, jobNames(jobs), err)
	}
}

// refuse calls Enqueue, which must return the error want. If want is nil, any error is
// right.
func (q *queueCase) refuse(t testing.TB, want error, asked hook.Run, jobs ...hook.Job) {
	t.Helper()
	err := q.Queue.Enqueue(context.Background(), asked, jobs)
	switch {
	case err == nil:
		t.Errorf("Enqueue(%s, %s) was accepted, want it rejected", asked.ID, jobNames(jobs))
	case want != nil && !errors.Is(err, want):
		t.Errorf("Enqueue(%s, %s) returned the error %q, want an error that is %q", asked.ID, jobNames(jobs), err, want)
	}
}

// wantWaiting asserts the number of waiting jobs. It does nothing if the queue has no
// statistics.
func (q *queueCase) wantWaiting(t testing.TB, want int) {
	t.Helper()
	if stats, ok := q.Queue.(hook.StatQueue); ok {
		got, err := stats.Stats(context.Background())
		if err != nil {
			t.Fatalf("Stats: %v", err)
		}
		if got.Waiting != want {
			t.Errorf("%d jobs wait, want %d", got.Waiting, want)
		}
	}
}

// claimer returns the queue as a ClaimQueue, or skips the rule.
func (q *queueCase) claimer(t testing.TB) hook.ClaimQueue {
	t.Helper()
	claimer, ok := q.Queue.(hook.ClaimQueue)
	if !ok {
		t.Skip("hooktest: the queue is not a hook.ClaimQueue")
	}
	return claimer
}

// claim claims a job. It fails if no job becomes due within q.patience.
func (q *queueCase) claim(t testing.TB) hook.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), q.patience)
	defer cancel()
	job, err := q.claimer(t).Claim(ctx)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	return job
}

// wantClaims claims jobs and asserts that they are the given ones, in any order.
func (q *queueCase) wantClaims(t testing.TB, ids ...string) {
	t.Helper()
	var got []string
	for range ids {
		got = append(got, q.claim(t).ID)
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(ids)); !slices.Equal(got, want) {
		t.Errorf("claimed %q, want %q", got, want)
	}
}

// wantNoClaim asserts that no job is due.
func (q *queueCase) wantNoClaim(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), pause)
	defer cancel()
	if job, err := q.claimer(t).Claim(ctx); err == nil {
		t.Errorf("claimed %q, attempt %d, want nothing to be due", job.ID, job.Attempt)
	}
}

// attempt returns the final record of an attempt to run a job.
func attempt(job hook.Job, state hook.State) hook.Run {
	run := sampleRun(fmt.Sprintf("%s.%d", job.ID, job.Attempt), state, 1000+job.Attempt)
	run.Job, run.Key, run.Attempt, run.Execution = job.ID, job.Key, job.Attempt, hook.Background
	return run
}

// settle settles an attempt. It fails the test on an error.
func (q *queueCase) settle(t testing.TB, job hook.Job, state hook.State, again time.Time) {
	t.Helper()
	if err := q.claimer(t).Settle(context.Background(), job, attempt(job, state), again); err != nil {
		t.Fatalf("Settle(%s, %s): %v", job.ID, state, err)
	}
}

func jobNames(jobs []hook.Job) string {
	names := make([]string, len(jobs))
	for i, job := range jobs {
		names[i] = job.ID
	}
	return fmt.Sprint(names)
}
