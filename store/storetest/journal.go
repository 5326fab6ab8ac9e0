package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// patience is the timeout for something that must happen. It is long, because the machine may be
// busy.
const patience = time.Minute

// journalRules are the rules about the runs and jobs of a commit. For a rejected commit see
// refusalRules.
var journalRules = []rule{
	{"the runs of a commit are in the journal", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		s.journaled(t)
		one, two := sampleRun("one", hook.Completed), sampleRun("two", hook.Started)
		h.commit(t, belay.Commit{Messages: []*belay.Message{user(1, "one")}, Runs: []hook.Run{one}})
		h.commit(t, belay.Commit{Runs: []hook.Run{two}})
		same(t, "the runs", []hook.Run{one, two}, s.runs(t))
	}},
	{"the runs of a commit are stored by the rules of the journal", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		s.journaled(t)
		started, ended := sampleRun("one", hook.Started), sampleRun("one", hook.Completed)
		h.commit(t, belay.Commit{Runs: []hook.Run{started}})
		h.commit(t, belay.Commit{Runs: []hook.Run{ended}})
		h.commit(t, belay.Commit{Runs: []hook.Run{started}})
		h.commit(t, belay.Commit{Runs: []hook.Run{ended}})
		same(t, "the runs", []hook.Run{ended}, s.runs(t))
	}},
	{"appended runs and committed runs are in one list", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		one, two := sampleRun("one", hook.Started), sampleRun("two", hook.Completed)
		if err := s.journaled(t).Journal().Append(context.Background(), []hook.Run{one}); err != nil {
			t.Fatalf("Append: %v", err)
		}
		one.State = hook.Completed
		h.commit(t, belay.Commit{Runs: []hook.Run{one, two}})
		same(t, "the runs", []hook.Run{one, two}, s.runs(t))
	}},
	{"the jobs of a commit are in the queue, and its runs in the journal", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		s.queued(t)
		run := sampleRun("run", hook.Completed)
		h.commit(t, belay.Commit{
			Messages: []*belay.Message{user(1, "one")}, Runs: []hook.Run{run}, Jobs: []hook.Job{sampleJob("one"), sampleJob("two")},
		})
		h.commit(t, belay.Commit{Jobs: []hook.Job{sampleJob("three")}})
		same(t, "the runs", []hook.Run{run}, s.runs(t))
		if got := s.stats(t).Waiting; got != 3 {
			t.Errorf("%d jobs wait, want 3", got)
		}
	}},
	{"the queue returns a job as it was committed", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		job := sampleJob("one")
		job.Version, job.Idempotent, job.Retry = "v2", true, hook.Retry{Attempts: 3, Delay: time.Second, Exponential: true, Cap: time.Minute, Jitter: 0.5}
		job.Scope.Agent, job.Scope.Step, job.At = "agent", 4, time.Now().Add(-time.Minute).Round(time.Second)
		queue := s.claimer(t)
		h.commit(t, belay.Commit{Jobs: []hook.Job{job}})
		got := claim(t, queue)
		job.Attempt = 1
		same(t, "the job", job, got)
	}},
	{"a job with an existing key is skipped, and the commit is stored", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		s.queued(t)
		again := sampleJob("one")
		again.ID = "one-again"
		h.commit(t, belay.Commit{Jobs: []hook.Job{sampleJob("one")}})
		h.commit(t, belay.Commit{Messages: []*belay.Message{user(1, "one")}, Jobs: []hook.Job{again, sampleJob("two")}})
		wantNumbers(t, "the messages", s.read(t, "a", 0), 1)
		if got := s.stats(t).Waiting; got != 2 {
			t.Errorf("%d jobs wait, want 2", got)
		}
	}},
	{"a worker that claims a job sees its commit", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		queue := s.claimer(t)
		found := make(chan error, 1)
		go func() { // ends after a claim, or after patience
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if _, err := queue.Claim(ctx); err != nil {
				found <- fmt.Errorf("claim: %w", err)
				return
			}
			messages := 0
			for _, err := range s.Read(ctx, "a", 0) {
				if err != nil {
					found <- fmt.Errorf("read: %w", err)
					return
				}
				messages++
			}
			if messages != 1 {
				found <- errors.New("the job could be claimed before the message of its commit could be read")
				return
			}
			found <- nil
		}()
		h.commit(t, belay.Commit{Messages: []*belay.Message{user(1, "one")}, Jobs: []hook.Job{sampleJob("one")}})
		if err := <-found; err != nil {
			t.Error(err)
		}
	}},
}

// queued returns the queue of the store. It skips the rule if there is none.
func (s *subject) queued(t testing.TB) hook.Queue {
	t.Helper()
	queue := s.journaled(t).Queue()
	if queue == nil {
		t.Skip("storetest: the store has no queue")
	}
	return queue
}

// claimer returns the queue as a hook.ClaimQueue, or skips the rule.
func (s *subject) claimer(t testing.TB) hook.ClaimQueue {
	t.Helper()
	queue, ok := s.queued(t).(hook.ClaimQueue)
	if !ok {
		t.Skip("storetest: the queue is not a hook.ClaimQueue")
	}
	return queue
}

func claim(t testing.TB, queue hook.ClaimQueue) hook.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	job, err := queue.Claim(ctx)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	return job
}

// fillQueue commits jobs until the queue is full. It skips the rule if the capacity is
// unknown or too large.
func (h *hold) fillQueue(t testing.TB) {
	t.Helper()
	stats := h.s.stats(t)
	if stats.Capacity < 1 || stats.Capacity > 4096 {
		t.Skipf("storetest: a queue for %d jobs is too large to fill: open a queue for at most 4,096 jobs", stats.Capacity)
	}
	var jobs []hook.Job
	for i := range stats.Capacity - stats.Waiting {
		jobs = append(jobs, sampleJob(fmt.Sprint("fill-", i)))
	}
	h.commit(t, belay.Commit{Jobs: jobs})
}
