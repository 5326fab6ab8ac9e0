package hooktest

import (
	"context"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// againRules describe what happens to a job after an attempt.
var againRules = []rule[workSubject]{
	{"a retried job is performed again, and each attempt is recorded", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 2)
		q.accept(t, q.ask(), sampleJob("one"))
		shift := q.work(t, failsUntil(3, time.Now))
		for n := 1; n <= 3; n++ {
			shift.want(t, "one", n)
		}
		shift.wantNone(t)
		shift.stop(t)
		q.wantAttempts(t, "one", hook.Failed, hook.Failed, hook.Completed)
	}},
	{"a retried job is not performed before its time", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 2)
		q.accept(t, q.ask(), sampleJob("one"))
		again := time.Now().Add(4 * pause)
		shift := q.work(t, failsUntil(2, func() time.Time { return again }))
		shift.want(t, "one", 1)
		second := shift.next(t)
		if early := again.Sub(second.at); second.Attempt != 2 || early > time.Millisecond {
			t.Errorf("performed again as attempt %d, %s before its time", second.Attempt, early)
		}
	}},
	{"a retried job keeps every field", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 1)
		q.accept(t, q.ask(), fullJob(time.Now()))
		shift := q.work(t, failsUntil(2, time.Now))
		shift.next(t)
		got := shift.next(t)
		want := fullJob(got.At) // At may be the first due time or the time of the retry
		want.Attempt = 2
		if diff := differentJob(want, got.Job); diff != "" {
			t.Errorf("the job differs from the queued one (- queued, + performed again):\n%s", diff)
		}
	}},
	{"a retried job is never rejected because the queue is full", func(t testing.TB, s workSubject) {
		q := s.open(t, 1, 1)
		q.accept(t, q.ask(), sampleJob("one"))
		release := make(chan struct{})
		shift := q.work(t, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
			<-release
			return failsUntil(2, time.Now)(ctx, job)
		})
		shift.want(t, "one", 1)
		_ = q.Queue.Enqueue(context.Background(), q.ask(), []hook.Job{sampleJob("two")}) // the queue may be full or not, depending on how it counts
		close(release)
		for got := shift.next(t); got.ID != "one"; {
			got = shift.next(t)
		}
	}},
	{"an ended job is not performed again", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 2)
		q.accept(t, q.ask(), sampleJob("failed"))
		shift := q.work(t, ends(hook.Failed))
		shift.want(t, "failed", 1)
		shift.wantNone(t)
		shift.stop(t)
		q.wantWaiting(t, 0)
		q.wantAttempts(t, "failed", hook.Failed)
	}},
}

// keyRules describe what happens to the key of a job.
var keyRules = []rule[workSubject]{
	{"a job whose key has succeeded is not performed again", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 1)
		q.accept(t, q.ask(), sampleJob("one"))
		shift := q.work(t, ends(hook.Completed))
		shift.want(t, "one", 1)
		shift.stop(t)
		q.accept(t, q.ask(), duplicateOfOne(), sampleJob("one")) // once with another id, and once with the same id
		q.wantWaiting(t, 0)
		q.work(t, ends(hook.Completed)).wantNone(t)
		q.wantAttempts(t, "one", hook.Completed)
	}},
	{"a job whose key is running is skipped", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 2)
		q.accept(t, q.ask(), sampleJob("one"))
		release := make(chan struct{})
		shift := q.work(t, waitsFor(release))
		shift.want(t, "one", 1)
		q.accept(t, q.ask(), duplicateOfOne())
		shift.wantNone(t)
		close(release)
		shift.wantNone(t)
	}},
	{"a job is skipped if its key waits for a retry", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 2)
		q.accept(t, q.ask(), sampleJob("one"))
		shift := q.work(t, failsUntil(2, func() time.Time { return time.Now().Add(time.Hour) }))
		shift.want(t, "one", 1)
		shift.stop(t)
		q.accept(t, q.ask(), duplicateOfOne())
		q.wantWaiting(t, 1)
		q.work(t, ends(hook.Completed)).wantNone(t)
	}},
	{"a key is free again when its job has failed permanently", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 1)
		q.accept(t, q.ask(), sampleJob("one"))
		shift := q.work(t, ends(hook.Failed))
		shift.want(t, "one", 1)
		shift.stop(t)
		q.accept(t, q.ask(), duplicateOfOne())
		q.work(t, ends(hook.Completed)).want(t, "one-duplicate", 1)
	}},
}

// stopRules describe what happens when Work is stopped.
var stopRules = []rule[workSubject]{
	{"Work returns when its context is done", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 2)
		shift := q.work(t, ends(hook.Completed))
		q.accept(t, q.ask(), sampleJob("one"))
		shift.want(t, "one", 1)
		shift.stop(t)
		q.accept(t, q.ask(), sampleJob("two"))
		shift.wantNone(t)
	}},
	{"a running attempt is cancelled when work ends, and settled", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 1)
		job := sampleJob("one")
		job.Idempotent, job.Retry = false, hook.Retry{}
		q.accept(t, q.ask(), job)
		shift := q.work(t, waitsFor(nil))
		shift.want(t, "one", 1)
		shift.stop(t)
		q.wantAttempts(t, "one", hook.Interrupted)
		q.work(t, ends(hook.Completed)).wantNone(t)
	}},
	{"the next worker performs interrupted work again", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 1)
		q.accept(t, q.ask(), sampleJob("one"))
		shift := q.work(t, waitsFor(nil))
		shift.want(t, "one", 1)
		shift.stop(t)
		q.wantWaiting(t, 1)
		q.wantAttempts(t, "one", hook.Interrupted)
		shift = q.work(t, ends(hook.Completed))
		shift.want(t, "one", 2)
		shift.stop(t)
		q.wantAttempts(t, "one", hook.Interrupted, hook.Completed)
	}},
	{"an attempt that ends during the stop keeps its result", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 1)
		q.accept(t, q.ask(), sampleJob("one"))
		shift := q.work(t, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
			<-ctx.Done()
			return ends(hook.Completed)(ctx, job)
		})
		shift.want(t, "one", 1)
		shift.stop(t)
		q.wantWaiting(t, 0)
		q.wantAttempts(t, "one", hook.Completed)
	}},
	{"jobs that have not begun when Work ends wait for the next worker", func(t testing.TB, s workSubject) {
		q := s.open(t, 8, 1)
		q.accept(t, q.ask(), sampleJob("one"))
		shift := q.work(t, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
			<-ctx.Done()
			return ends(hook.Completed)(ctx, job)
		})
		shift.want(t, "one", 1)
		q.accept(t, q.ask(), sampleJob("two"))
		shift.stop(t)
		shift.wantNone(t)
		q.wantWaiting(t, 1)
		q.work(t, ends(hook.Completed)).want(t, "two", 1)
	}},
}
