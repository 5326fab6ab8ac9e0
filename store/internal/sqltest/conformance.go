package sqltest

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
	"github.com/belay-run/belay/store/storetest"
)

// Options are the options that all SQL stores share.
type Options struct {
	MaxJobs, Workers int
	JobPoll, Grace   time.Duration
	Logger           *slog.Logger
}

// Backend creates stores for tests. Each of its methods is a test that every SQL store must
// pass.
type Backend struct {
	// Open opens a new store. The store is closed when the test ends.
	Open func(t testing.TB, opts *Options) Store
	// Reopen opens the database of a store again.
	Reopen func(t testing.TB, s Store, opts *Options) Store
	// Tables returns the rows of each table as text.
	Tables func(t testing.TB, s Store) map[string]string
	// Fold stores runs in one row. It is nil if Append does so.
	Fold func(t testing.TB, s Store, runs []hook.Run)
	// Private opens a store with files that no other test uses. The returned function
	// returns the content of these files.
	Private func(t testing.TB) (Store, func() ([]byte, error))
}

// Sessions runs the conformance suite of stores.
func (b *Backend) Sessions(t *testing.T) {
	t.Helper()
	opts := &Options{MaxJobs: 8}
	storetest.Test(t, func(t testing.TB) belay.Store { return b.Open(t, opts) }, &storetest.Options{
		// The old store stays open, like the store of a process that hangs. TestKilled
		// covers a process that has ended.
		Reopen: func(t testing.TB, s belay.Store) belay.Store { return b.Reopen(t, s.(Store), opts) },
		Expire: func(t testing.TB, s belay.Store, session string) {
			if err := s.(Store).Expire(t.Context(), session); err != nil {
				t.Fatal(err)
			}
		},
	})
}

// Turns runs the conformance suite of turns.
func (b *Backend) Turns(t *testing.T) {
	t.Helper()
	storetest.TestTurns(t, func(t testing.TB) belay.TurnStore { return b.Open(t, nil) })
	storetest.TestRequeue(t, func(t testing.TB) belay.RequeueStore { return b.Open(t, nil).(belay.RequeueStore) })
	storetest.TestKeys(t, func(t testing.TB) belay.KeyStore { return b.Open(t, nil).(belay.KeyStore) })
	storetest.TestTurnsOfTheGone(t, func(t testing.TB) belay.TurnStore { return b.Open(t, nil) }, func(t testing.TB, s belay.TurnStore) belay.TurnStore {
		if err := s.(Store).Close(); err != nil {
			t.Error(err)
		}
		return b.Reopen(t, s.(Store), nil)
	})
}

// Journal runs the conformance suite of journals.
func (b *Backend) Journal(t *testing.T) {
	t.Helper()
	hooktest.TestJournal(t, func(t testing.TB) hook.Journal { return b.Open(t, nil).Journal() })
}

// Queue runs the conformance suite of queues.
func (b *Backend) Queue(t *testing.T) {
	t.Helper()
	hooktest.TestQueue(t, func(t testing.TB, capacity int) hooktest.Store {
		s := b.Open(t, &Options{MaxJobs: capacity})
		return hooktest.Store{Journal: s.Journal(), Queue: s.Queue()}
	})
}

// WorkQueue runs the conformance suite of work queues.
func (b *Backend) WorkQueue(t *testing.T) {
	t.Helper()
	hooktest.TestWorkQueue(t, func(t testing.TB, capacity, workers int) hooktest.Store {
		s := b.Open(t, &Options{MaxJobs: capacity, Workers: workers, JobPoll: 5 * time.Millisecond, Grace: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		return hooktest.Store{Journal: s.Journal(), Queue: s.Queue()}
	})
}

// Inputs asserts that the input of a background job is stored separately from the job, and
// is removed when the job ends.
func (b *Backend) Inputs(t *testing.T) {
	t.Helper()
	ctx, s := t.Context(), b.Open(t, &Options{JobPoll: 5 * time.Millisecond})
	queue := s.Queue().(hook.InputQueue)
	job := hook.Job{ID: "job", Key: "key", Handler: "h", Idempotent: true}
	if _, err := queue.Input(ctx, job); !errors.Is(err, hook.ErrNotFound) {
		t.Errorf("a missing input: %v, want %v", err, hook.ErrNotFound)
	}
	if err := queue.EnqueueInput(ctx, Run("asked", hook.Backgrounded), job, json.RawMessage(`{"b":1,"a":[1.50]}`)); err != nil {
		t.Fatal(err)
	}
	working, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	err := s.Queue().(hook.WorkQueue).Work(working, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		got, err := queue.Input(ctx, job)
		if err != nil || string(got) != `{"b":1,"a":[1.50]}` {
			t.Errorf("attempt %d got the input %s, %v", job.Attempt, got, err)
		}
		ended := job.Begun(time.Now())
		ended.State, ended.Ended = hook.Failed, time.Now()
		if job.Attempt == 1 {
			return ended, time.Now() // fail, and run again at once
		}
		ended.State = hook.Completed
		stop()
		return ended, time.Time{}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queue.Input(ctx, job); !errors.Is(err, hook.ErrNotFound) {
		t.Errorf("the input of an ended job: %v, want %v", err, hook.ErrNotFound)
	}
	if err := queue.EnqueueInput(ctx, Run("again", hook.Backgrounded), job, json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := queue.Input(ctx, job); !errors.Is(err, hook.ErrNotFound) {
		t.Errorf("the input of a duplicate job: %v, want %v", err, hook.ErrNotFound)
	}
}
