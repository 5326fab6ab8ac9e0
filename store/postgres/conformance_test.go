package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/store/postgres"
	"github.com/belay-run/belay/store/storetest"
)

// SPEC L-01, L-02, J-03
func TestStore(t *testing.T) {
	t.Parallel()
	opts := &postgres.Options{MaxJobs: 8}
	storetest.Test(t, func(t testing.TB) belay.Store { return open(t, opts) }, &storetest.Options{
		// The former store stays as it is, with its lease, as a process that hangs
		// does. What becomes of one that has ended: see TestKilled.
		Reopen: func(t testing.TB, s belay.Store) belay.Store { return openDSN(t, s.(*postgres.Store).DSN(), opts) },
		Expire: func(t testing.TB, s belay.Store, session string) {
			if err := s.(*postgres.Store).Expire(t.Context(), session); err != nil {
				t.Fatal(err)
			}
		},
	})
}

// SPEC L-02
func TestTurns(t *testing.T) {
	t.Parallel()
	storetest.TestTurns(t, func(t testing.TB) belay.TurnStore { return open(t, nil) })
	storetest.TestTurnsOfTheGone(t, func(t testing.TB) belay.TurnStore { return open(t, nil) }, func(t testing.TB, s belay.TurnStore) belay.TurnStore {
		closeStore(t, s.(*postgres.Store))
		return openDSN(t, s.(*postgres.Store).DSN(), nil)
	})
}

// SPEC J-01
func TestJournal(t *testing.T) {
	t.Parallel()
	hooktest.TestJournal(t, func(t testing.TB) hook.Journal { return open(t, nil).Journal() })
}

// SPEC J-07
func TestQueue(t *testing.T) {
	t.Parallel()
	hooktest.TestQueue(t, func(t testing.TB, capacity int) hooktest.Store {
		s := open(t, &postgres.Options{MaxJobs: capacity})
		return hooktest.Store{Journal: s.Journal(), Queue: s.Queue()}
	})
}

// SPEC J-04, J-05
func TestWorkQueue(t *testing.T) {
	t.Parallel()
	hooktest.TestWorkQueue(t, func(t testing.TB, capacity, workers int) hooktest.Store {
		s := open(t, &postgres.Options{MaxJobs: capacity, Workers: workers, JobPoll: 5 * time.Millisecond, Grace: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		return hooktest.Store{Journal: s.Journal(), Queue: s.Queue()}
	})
}

// What background work is given is kept apart from its job until the job is over.
//
// SPEC J-04
func TestInputs(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, &postgres.Options{JobPoll: 5 * time.Millisecond})
	queue := s.Queue().(hook.InputQueue)
	job := hook.Job{ID: "job", Key: "key", Handler: "h", Idempotent: true}
	if _, err := queue.Input(ctx, job); !errors.Is(err, hook.ErrNotFound) {
		t.Errorf("an input that is not there: %v, want %v", err, hook.ErrNotFound)
	}
	if err := queue.EnqueueInput(ctx, run("asked", hook.Backgrounded), job, json.RawMessage(`{"b":1,"a":[1.50]}`)); err != nil {
		t.Fatal(err)
	}
	working, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	err := s.Queue().(hook.WorkQueue).Work(working, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		got, err := queue.Input(ctx, job)
		if err != nil || string(got) != `{"b":1,"a":[1.50]}` {
			t.Errorf("attempt %d is given %s, %v", job.Attempt, got, err)
		}
		ended := job.Begun(time.Now())
		ended.State, ended.Ended = hook.Failed, time.Now()
		if job.Attempt == 1 {
			return ended, time.Now() // due again
		}
		ended.State = hook.Completed
		stop()
		return ended, time.Time{}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queue.Input(ctx, job); !errors.Is(err, hook.ErrNotFound) {
		t.Errorf("the input of a job that is over: %v, want %v", err, hook.ErrNotFound)
	}
	if err := queue.EnqueueInput(ctx, run("again", hook.Backgrounded), job, json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := queue.Input(ctx, job); !errors.Is(err, hook.ErrNotFound) {
		t.Errorf("the input of a job that was left out: %v, want %v", err, hook.ErrNotFound)
	}
}
