package riverjobs_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/riverjobs"
)

// testJob returns an idempotent job. Its id and its key contain the name.
func testJob(name string) hook.Job {
	return hook.Job{
		ID: name, Key: "key:" + name, Handler: "work", Subscription: "sub", Phase: "test.phase",
		Idempotent: true, Retry: hook.Retry{Attempts: 3, Delay: time.Millisecond},
	}
}

// enqueue stores jobs and fails the test on an error.
func enqueue(t *testing.T, queue jobs, jobs ...hook.Job) {
	t.Helper()
	if err := queue.Enqueue(t.Context(), askedRun(), jobs); err != nil {
		t.Fatal(err)
	}
}

type perform func(ctx context.Context, job hook.Job) (hook.Run, time.Time)

// succeed performs an attempt that succeeds at once.
func succeed(_ context.Context, job hook.Job) (hook.Run, time.Time) {
	return ended(job, hook.Completed), time.Time{}
}

// workUntilIdle works until no job waits or runs, and returns the error of Work.
func workUntilIdle(t *testing.T, queue jobs, perform perform) error {
	t.Helper()
	return workUntil(t, queue, perform, func() { awaitIdle(t, queue) })
}

// workUntil works until the function until returns, and returns the error of Work.
func workUntil(t *testing.T, queue jobs, perform perform, until func()) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- queue.Work(ctx, perform) }() // ends when ctx is cancelled
	until()
	cancel()
	return <-worked
}

func wantTexts(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	driver := riversqlite.New(db.DB)
	for rule, opts := range map[string]*riverjobs.Options{
		"a negative capacity":            {Capacity: -1},
		"a negative number of workers":   {Workers: -1},
		"a negative poll":                {Poll: -1},
		"a negative grace":               {Grace: -1},
		"an id that River does not take": {ID: strings.Repeat("x", 101)},
	} {
		if _, err := riverjobs.New(driver, db, opts); err == nil {
			t.Errorf("New takes %s", rule)
		}
	}
	if _, err := riverjobs.New[*sql.Tx](riversqlite.New(nil), db, nil); err == nil {
		t.Error("New takes a driver without a database")
	}
	if _, err := riverjobs.New[*sql.Tx](driver, nil, nil); err == nil {
		t.Error("New takes no backend")
	}
	one, err := riverjobs.New(driver, db, nil)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := riverjobs.New(driver, db, nil); err != nil || one.ID() == "" || one.ID() == other.ID() {
		t.Errorf("two queues have the ids %q and %q, %v", one.ID(), other.ID(), err)
	}
}

// SPEC J-03
func TestInsertIsPartOfTheCallersTransaction(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	queue := newQueue(t, db, &riverjobs.Options{Capacity: 2})
	refused := errors.New("the rest of the transaction failed")
	insert := func(end error, jobs ...hook.Job) error {
		return db.Write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			return errors.Join(queue.Insert(ctx, tx, jobs), end)
		})
	}
	if err := insert(refused, testJob("one")); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	wantTexts(t, "rows after a rollback", db.rows())
	for _, jobs := range [][]hook.Job{nil, {testJob("one")}, {testJob("one"), testJob("two")}} {
		if err := insert(nil, jobs...); err != nil {
			t.Fatal(err)
		}
	}
	wantTexts(t, "rows", db.rows(), "available", "available")
	if err := insert(nil, testJob("three")); !errors.Is(err, hook.ErrQueueFull) {
		t.Errorf("Insert into a full queue gave %v, want %v", err, hook.ErrQueueFull)
	}
	wantTexts(t, "keys", db.texts(t.Context(), "SELECT key FROM keys ORDER BY key"), "key:one", "key:two")
}

func TestOneWorkAtATime(t *testing.T) {
	t.Parallel()
	queue := newQueue(t, newDatabase(t), nil)
	enqueue(t, queue, testJob("one"))
	err := workUntil(t, queue, succeed, func() {
		awaitIdle(t, queue)
		if err := queue.Work(t.Context(), succeed); err == nil {
			t.Error("a second Work was accepted")
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// SPEC J-03
func TestASettleThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	queue := newQueue(t, db, nil)
	enqueue(t, queue, testJob("one"))
	var performed, refused atomic.Int32
	db.inside = func(context.Context, *sql.Tx) error {
		if performed.Load() > 0 && refused.Add(1) <= 2 {
			return errors.New("disk full")
		}
		return nil
	}
	err := workUntilIdle(t, queue, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		performed.Add(1)
		return succeed(ctx, job)
	})
	if err != nil || performed.Load() != 1 || refused.Load() < 3 {
		t.Errorf("performed %d times, settled at try %d, %v", performed.Load(), refused.Load(), err)
	}
	wantTexts(t, "records", db.runs(t), "asked backgrounded", "one.1 completed")
	wantTexts(t, "keys", db.texts(t.Context(), "SELECT key || ' ' || done FROM keys"), "key:one 1")
}

// If an attempt can never be settled, it stays as if the process had died. River does not
// end or repeat it.
//
// SPEC J-03, J-04
func TestASettleThatNeverSucceedsIsForRecovery(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	queue := newQueue(t, db, &riverjobs.Options{Grace: time.Millisecond})
	once := testJob("once")
	once.Idempotent, once.Retry = false, hook.Retry{}
	enqueue(t, queue, testJob("again"), once)
	var broken atomic.Bool
	db.inside = func(context.Context, *sql.Tx) error {
		if broken.Load() {
			return errors.New("disk full")
		}
		return nil
	}
	var performed sync.WaitGroup
	performed.Add(2)
	err := workUntil(t, queue, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		performed.Done()
		performed.Wait() // wait until both attempts have begun
		broken.Store(true)
		return succeed(ctx, job)
	}, performed.Wait)
	if err == nil || !strings.Contains(err.Error(), `"again"`) || !strings.Contains(err.Error(), `"once"`) {
		t.Errorf("Work says %v, want both jobs in it", err)
	}
	wantTexts(t, "rows", db.rows(), "running", "running")
	broken.Store(false)
	if err := workUntilIdle(t, queue, succeed); err != nil {
		t.Error(err)
	}
	got := db.runs(t)
	slices.Sort(got)
	wantTexts(t, "records", got, "again.1 interrupted", "again.2 completed", "asked backgrounded", "once.1 interrupted")
}

// If the run of an interrupted attempt has already ended, Recover keeps the run and ends
// the job. Then the queue can run other jobs. The key of a job that has succeeded stays
// taken.
//
// SPEC J-05
func TestRecoverLeavesAFinalRecord(t *testing.T) {
	t.Parallel()
	for state, keys := range map[hook.State][]string{
		hook.TimedOut:  {"key:two"},
		hook.Failed:    {"key:two"},
		hook.Completed: {"key:one", "key:two"},
	} {
		t.Run(state.String(), func(t *testing.T) {
			t.Parallel()
			db := newDatabase(t)
			queue := newQueue(t, db, &riverjobs.Options{Grace: time.Millisecond})
			enqueue(t, queue, testJob("one"))
			job := interrupted(t, db, queue)
			if err := db.Append(t.Context(), []hook.Run{ended(job, state)}); err != nil {
				t.Fatal(err)
			}
			enqueue(t, queue, testJob("two"))
			if err := workUntilIdle(t, queue, succeed); err != nil {
				t.Error(err)
			}
			wantTexts(t, "records", db.runs(t), "asked backgrounded", "one.1 "+state.String(), "two.1 completed")
			wantTexts(t, "keys", db.texts(t.Context(), "SELECT key FROM keys WHERE done ORDER BY key"), keys...)
			wantTexts(t, "keys of jobs that did not succeed", db.texts(t.Context(), "SELECT key FROM keys WHERE NOT done"))
		})
	}
}

// interrupted runs the next job, but cannot store its end, as if the process had died.
func interrupted(t *testing.T, db *database, queue jobs) (job hook.Job) {
	t.Helper()
	var broken atomic.Bool
	db.inside = func(context.Context, *sql.Tx) error {
		if broken.Load() {
			return errors.New("disk full")
		}
		return nil
	}
	performed := make(chan hook.Job, 1)
	err := workUntil(t, queue, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		broken.Store(true)
		performed <- job
		return succeed(ctx, job)
	}, func() { job = <-performed })
	db.inside = func(context.Context, *sql.Tx) error { return nil }
	if err == nil {
		t.Error("Work says nothing of an attempt that it could not settle")
	}
	return job
}

// An idempotent job whose attempts are interrupted is retried, but not for ever.
//
// SPEC J-04
func TestAJobThatKillsItsProcessEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		retry    hook.Retry
		attempts int
	}{
		{"without retries", hook.Retry{Delay: time.Millisecond}, 10},
		{"with few retries", hook.Retry{Attempts: 3, Delay: time.Millisecond}, 10},
		{"with many retries", hook.Retry{Attempts: 12, Delay: time.Millisecond}, 12},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			db := newDatabase(t)
			queue := newQueue(t, db, &riverjobs.Options{Grace: time.Millisecond})
			job := testJob("one")
			job.Retry = test.retry
			enqueue(t, queue, job)
			want := []string{"asked backgrounded"}
			for n := range test.attempts {
				if got := interrupted(t, db, queue); got.Attempt != n+1 {
					t.Fatalf("attempt %d runs, want attempt %d", got.Attempt, n+1)
				}
				want = append(want, fmt.Sprintf("one.%d interrupted", n+1))
			}
			err := workUntilIdle(t, queue, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
				t.Errorf("attempt %d was performed", job.Attempt)
				return succeed(ctx, job)
			})
			if err != nil {
				t.Error(err)
			}
			wantTexts(t, "records", db.runs(t), want...)
			wantTexts(t, "keys", db.texts(t.Context(), "SELECT key FROM keys"))
		})
	}
}

// SPEC J-05
func TestAKeyThatSucceededMeanwhileIsNotPerformed(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	queue := newQueue(t, db, nil)
	enqueue(t, queue, testJob("one"))
	if _, err := db.ExecContext(t.Context(), "UPDATE keys SET done = 1"); err != nil {
		t.Fatal(err)
	}
	err := workUntilIdle(t, queue, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		t.Error("it was performed")
		return succeed(ctx, job)
	})
	if err != nil {
		t.Error(err)
	}
	wantTexts(t, "records", db.runs(t), "asked backgrounded")
	wantTexts(t, "rows", db.rows(), "cancelled")
}

// If a worker counted as dead, it does not settle the attempt that was recovered. It also
// does not change the next attempt, which another worker runs.
//
// SPEC J-04, J-05
func TestAWorkerThoughtDeadCannotSettle(t *testing.T) {
	t.Parallel()
	for rule, end := range map[string]perform{
		"it succeeds": succeed,
		"it gives way": func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
			return ended(job, hook.Interrupted), time.Now()
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			db := newDatabase(t)
			dead := newQueue(t, db, &riverjobs.Options{ID: "dead", Workers: 1})
			heir := newQueue(t, reopen(t, db.file), &riverjobs.Options{ID: "heir", Workers: 1})
			enqueue(t, dead, testJob("one"))
			begun, release := make(chan struct{}), make(chan struct{})
			err := workUntil(t, dead, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
				if job.Attempt > 1 {
					return succeed(ctx, job)
				}
				close(begun)
				<-release
				return end(ctx, job)
			}, func() {
				<-begun
				recoverDead(t, heir)
				err := workUntilIdle(t, heir, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
					if job.Attempt == 2 {
						close(release)
						return ended(job, hook.Failed), time.Now()
					}
					return succeed(ctx, job)
				})
				if err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Error(err)
			}
			wantTexts(t, "records", db.runs(t), "asked backgrounded", "one.1 interrupted", "one.2 failed", "one.3 completed")
			wantTexts(t, "rows", db.rows(), "cancelled", "discarded", "completed")
		})
	}
}

// recoverDead recovers the only job that the client "dead" has claimed.
func recoverDead(t *testing.T, heir jobs) {
	t.Helper()
	recovered, err := heir.Recover(t.Context(), func(id string) bool { return id == "dead" })
	if err != nil || len(recovered.Again) != 1 {
		t.Errorf("Recover: %+v, %v", recovered, err)
	}
}

// SPEC J-04
func TestAWorkerThoughtDeadDoesNotBegin(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	dead := newQueue(t, db, &riverjobs.Options{ID: "dead", Workers: 1})
	heir := newQueue(t, reopen(t, db.file), nil)
	job := testJob("one")
	job.Retry.Delay = time.Hour
	enqueue(t, dead, job)
	recovered := make(chan struct{})
	var once sync.Once
	db.around = func(_ context.Context, write func() error) error {
		once.Do(func() {
			recoverDead(t, heir)
			close(recovered)
		})
		return write()
	}
	err := workUntil(t, dead, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		t.Errorf("attempt %d was made", job.Attempt)
		return succeed(ctx, job)
	}, func() { <-recovered })
	if err != nil {
		t.Error(err)
	}
	wantTexts(t, "records", db.runs(t), "asked backgrounded", "one.1 interrupted")
	wantTexts(t, "rows", db.rows(), "cancelled", "available")
}

// SPEC J-06
func TestARowThatCannotBeReadFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		args string
		runs []string
		keys []string
	}{
		{"it says whose it is", `{"id":"one","key":"key:one","attempt":"many"}`, []string{"asked backgrounded", "one.1 failed"}, nil},
		{"it says nothing", `{}`, []string{"asked backgrounded"}, []string{"key:one"}},
		{"it is no object", `[1]`, []string{"asked backgrounded"}, []string{"key:one"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			db := newDatabase(t)
			queue := newQueue(t, db, nil)
			enqueue(t, queue, testJob("one"))
			if _, err := db.ExecContext(t.Context(), "UPDATE river_job SET args = jsonb(?)", test.args); err != nil {
				t.Fatal(err)
			}
			err := workUntilIdle(t, queue, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
				t.Errorf("%+v was performed", job)
				return succeed(ctx, job)
			})
			if err != nil {
				t.Error(err)
			}
			wantTexts(t, "records", db.runs(t), test.runs...)
			wantTexts(t, "keys", db.texts(t.Context(), "SELECT key FROM keys"), test.keys...)
			wantTexts(t, "rows", db.rows(), "discarded")
		})
	}
}

// If the work panics or ends its goroutine, the attempt fails. The panic message is not
// stored.
//
// SPEC J-02, J-05
func TestWorkThatBreaksOut(t *testing.T) {
	t.Parallel()
	for name, breakOut := range map[string]func(){
		"hook.panic":  func() { panic("a-secret-in-a-panic") },
		"hook.goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newDatabase(t)
			queue := newQueue(t, db, nil)
			enqueue(t, queue, testJob("one"))
			err := workUntilIdle(t, queue, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
				if job.Attempt < 3 {
					breakOut()
				}
				return succeed(ctx, job)
			})
			if err != nil {
				t.Error(err)
			}
			wantTexts(t, "records", db.runs(t), "asked backgrounded", "one.1 failed", "one.2 failed", "one.3 completed")
			for run := range db.List(t.Context(), hook.Filter{States: []hook.State{hook.Failed}}) {
				if string(run.Class) != name || len(run.Diagnostics) != 1 {
					t.Errorf("the record is %+v, want the class %s", run, name)
				}
			}
			dump, err := db.dump()
			if err != nil || bytes.Contains(dump, []byte("a-secret")) || !bytes.Contains(dump, []byte("key:one")) {
				t.Errorf("what the panic said is in the file, or nothing is, %v", err)
			}
		})
	}
}

// dump returns the content of the database file.
func (db *database) dump() ([]byte, error) {
	data, err := os.ReadFile(db.file)
	if err != nil {
		return nil, err
	}
	wal, err := os.ReadFile(db.file + "-wal")
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return append(data, wal...), err
}

func TestTimesAreKept(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	queue := newQueue(t, db, &riverjobs.Options{Workers: 1})
	soon := time.Now().Add(50 * time.Millisecond).Truncate(time.Millisecond)
	first, second, beyond := testJob("first"), testJob("second"), testJob("beyond")
	first.At, second.At = soon.Add(100*time.Microsecond+1), soon.Add(200*time.Microsecond)
	beyond.At = time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("west", -5*60*60)) // in UTC this is the year 10000
	enqueue(t, queue, beyond, second, first)
	for i, due := range db.texts(t.Context(), "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', scheduled_at) FROM river_job ORDER BY id LIMIT 2") {
		if at, err := time.Parse(time.RFC3339Nano, due); err != nil || at.Before(second.At) {
			t.Errorf("job %d is due at %s, before its time, %v", i+1, due, err)
		}
	}
	performed := make(chan hook.Job, 3)
	var got []hook.Job
	err := workUntil(t, queue, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		performed <- job
		return succeed(ctx, job)
	}, func() { got = append(got, <-performed, <-performed) })
	if err != nil || got[0].ID != "first" || got[1].ID != "second" {
		t.Errorf("performed %s and %s, want first and second, %v", got[0].ID, got[1].ID, err)
	}
	if !got[0].At.Equal(first.At) {
		t.Errorf("the time is %s, want %s", got[0].At, first.At)
	}
	wantTexts(t, "rows", db.rows(), "completed", "completed", "available")
}

// Several processes may run jobs of the same file. Each job runs once.
//
// SPEC J-05
func TestManyWorkOneFile(t *testing.T) {
	t.Parallel()
	const queues, count = 3, 24
	first := newDatabase(t)
	var performed sync.Map
	var total atomic.Int32
	perform := func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		if _, twice := performed.LoadOrStore(fmt.Sprint(job.ID, ".", job.Attempt), true); twice {
			t.Errorf("%s was performed twice", job.ID)
		}
		total.Add(1)
		if job.Attempt == 1 {
			return ended(job, hook.Failed), time.Now()
		}
		return succeed(ctx, job)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for i := range queues {
		queue := newQueue(t, reopen(t, first.file), &riverjobs.Options{ID: fmt.Sprint("process-", i)})
		working.Go(func() {
			if err := queue.Work(ctx, perform); err != nil {
				t.Error(err)
			}
		})
	}
	queue := newQueue(t, first, nil)
	for i := range count {
		enqueue(t, queue, testJob(fmt.Sprint(i)))
	}
	awaitIdle(t, queue)
	cancel()
	working.Wait()
	if total.Load() != 2*count {
		t.Errorf("%d attempts were made, want %d", total.Load(), 2*count)
	}
	for _, run := range first.runs(t) {
		if strings.HasSuffix(run, "started") {
			t.Errorf("the record %s is not final", run)
		}
	}
}

func TestLogBeginsAtWarnings(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var lines bytes.Buffer
	logger := slog.New(slog.NewTextHandler(lockedWriter{&mu, &lines}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	queue := newQueue(t, newDatabase(t), &riverjobs.Options{Logger: logger, Grace: time.Minute})
	enqueue(t, queue, testJob("quiet"))
	if err := workUntilIdle(t, queue, succeed); err != nil {
		t.Error(err)
	}
	mu.Lock()
	if lines.Len() > 0 {
		t.Errorf("work that goes well logs:\n%s", &lines)
	}
	mu.Unlock()
	loud := testJob("loud")
	loud.Scope.Session = "s-1"
	enqueue(t, queue, loud)
	err := workUntilIdle(t, queue, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		if job.Attempt == 1 {
			panic("loud")
		}
		return succeed(ctx, job)
	})
	mu.Lock()
	defer mu.Unlock()
	if text := lines.String(); err != nil || !strings.Contains(text, "job=loud") || !strings.Contains(text, "session=s-1") {
		t.Errorf("a panic logs %q, %v", text, err)
	}
}

// lockedWriter is a buffer that several goroutines can write to.
type lockedWriter struct {
	mu *sync.Mutex
	*bytes.Buffer
}

// Write appends a line.
func (w lockedWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Buffer.Write(line)
}
