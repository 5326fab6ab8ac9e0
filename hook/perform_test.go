package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// attempts formats the recorded attempts as "1:failed 2:completed".
func attempts(runs []hook.Run) string {
	var parts []string
	for _, r := range runs {
		if r.Attempt > 0 {
			parts = append(parts, fmt.Sprintf("%d:%s", r.Attempt, r.State))
		}
	}
	return strings.Join(parts, " ")
}

// workAnHour runs a worker for an hour. Call it in a synctest bubble.
func workAnHour(t *testing.T, rt *hook.Runtime) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := rt.Work(ctx); err != nil {
		t.Error(err)
	}
}

// SPEC J-04, J-05
func TestRetries(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule       string
		retry      hook.Retry
		idempotent bool
		failures   int
		want       string
		at         []time.Duration // when the attempts began
	}{
		{"success is not repeated", hook.Retry{Attempts: 3}, true, 0, "1:completed", []time.Duration{0}},
		{"no retry unless asked for", hook.Retry{}, true, 9, "1:failed", []time.Duration{0}},
		{"only idempotent work is tried again", hook.Retry{}, false, 9, "1:failed", []time.Duration{0}},
		{"work is retried until it succeeds", hook.Retry{Attempts: 5, Delay: time.Second}, true, 2, "1:failed 2:failed 3:completed", []time.Duration{0, time.Second, 2 * time.Second}},
		{"work is retried up to the number of attempts", hook.Retry{Attempts: 3, Delay: time.Second}, true, 9, "1:failed 2:failed 3:failed", []time.Duration{0, time.Second, 2 * time.Second}},
		{
			"the delay doubles, up to the cap",
			hook.Retry{Attempts: 5, Delay: time.Second, Exponential: true, Cap: 3 * time.Second},
			true, 9,
			"1:failed 2:failed 3:failed 4:failed 5:failed",
			[]time.Duration{0, time.Second, 3 * time.Second, 6 * time.Second, 9 * time.Second},
		},
	} {
		for _, kind := range []string{"subscription", "job handler"} {
			t.Run(kind+": "+test.rule, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					var at []time.Duration
					began := time.Now()
					try := func() error {
						at = append(at, time.Since(began))
						if len(at) <= test.failures {
							return errBroken
						}
						return nil
					}
					rt, journal, _ := withQueue(t, 8)
					if kind == "subscription" {
						install(t, rt, observePhase.On("a", func(context.Context, call) (remark, error) { return remark{}, try() },
							&hook.Options{Execution: hook.Background, Idempotent: test.idempotent, Retry: test.retry}))
					} else {
						install(t, rt, observePhase.On("a", says(remark{Jobs: []hook.Job{{Handler: "mail", Key: "k"}}}), nil))
						if _, err := rt.InstallJobs(hook.JobHandler{
							Name: "mail", Idempotent: test.idempotent, Retry: test.retry,
							Run: func(context.Context, hook.Job) ([]hook.Audit, error) { return nil, try() },
						}); err != nil {
							t.Fatal(err)
						}
					}
					dispatch(t, observePhase, snapshot(t, rt), write)
					workAnHour(t, rt)
					runs := list(t, journal, hook.Filter{})
					equal(t, "attempts", attempts(runs), test.want)
					same(t, "times of the attempts", at, test.at)
					ids, keys := map[string]bool{}, map[string]bool{}
					for _, r := range runs {
						ids[r.ID] = true
						if r.Attempt > 0 {
							keys[r.Key] = true
						}
					}
					equal(t, "ids of the attempts and of what asked for them", len(ids), len(test.at)+1)
					equal(t, "keys", len(keys), 1)
				})
			})
		}
	}
}

// SPEC J-05
func TestRetryPause(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		retry   hook.Retry
		attempt int
		random  float64
		want    time.Duration
	}{
		{"a second by default", hook.Retry{}, 1, 0, time.Second},
		{"fixed", hook.Retry{Delay: time.Minute}, 9, 0, time.Minute},
		{"twice as long each time", hook.Retry{Delay: time.Second, Exponential: true}, 4, 0, 8 * time.Second},
		{"five minutes at most by default", hook.Retry{Delay: time.Second, Exponential: true}, 1000, 0, 5 * time.Minute},
		{"a cap", hook.Retry{Delay: time.Second, Exponential: true, Cap: 5 * time.Second}, 4, 0, 5 * time.Second},
		{"a cap below the delay", hook.Retry{Delay: time.Minute, Cap: time.Second}, 1, 0, time.Second},
		{"jitter shortens the pause", hook.Retry{Delay: time.Second, Jitter: 0.5}, 1, 0.5, 750 * time.Millisecond},
		{"without jitter the pause is not random", hook.Retry{Delay: time.Second}, 1, 0.5, time.Second},
	} {
		equal(t, test.rule, test.retry.Pause(test.attempt, test.random), test.want)
	}
}

// For one key, only one success is recorded. After it, no job with that key runs.
//
// SPEC J-05
func TestOneSuccessForOneKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		ran := 0
		rt, journal, _ := withQueue(t, 8, observePhase.On("a", does[remark](func(context.Context, call) { ran++ }), &hook.Options{Execution: hook.Background}))
		s := rt.Snapshot()
		dispatch(t, observePhase, s, write)
		dispatch(t, observePhase, s, write) // The first job is still waiting.
		work(t, rt)
		dispatch(t, observePhase, s, write) // The first job is done.
		work(t, rt)
		equal(t, "runs of the handler", ran, 1)
		other := write
		other.tool = "edit"
		dispatch(t, observePhase, s, other)
		work(t, rt)
		equal(t, "runs of the handler with another input", ran, 2)
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "successes on record", len(list(t, journal, hook.Filter{States: []hook.State{hook.Completed}})), 2)
	})
}

// SPEC J-06
func TestRecordedWorkIsNeverGuessed(t *testing.T) {
	t.Parallel()
	queued := func(version string) hook.Subscription {
		return observePhase.On("a", says(remark{}), &hook.Options{Execution: hook.Background, Version: version, Idempotent: true, Retry: hook.Retry{Attempts: 3}})
	}
	for _, test := range []struct {
		rule string
		next []hook.Subscription // what is installed instead of the recorded subscription
		code codes.Code
	}{
		{"the same again", []hook.Subscription{queued("1")}, ""},
		{"another version", []hook.Subscription{queued("2")}, codes.HandlerChanged},
		{"gone", nil, codes.HandlerGone},
		{"disabled", []hook.Subscription{observePhase.On("a", says(remark{}), &hook.Options{Execution: hook.Background, Version: "1", Disabled: true})}, codes.HandlerGone},
		{"no longer in the background", []hook.Subscription{observePhase.On("a", says(remark{}), &hook.Options{Version: "1"})}, codes.HandlerChanged},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				rt, journal, _ := withQueue(t, 8)
				lease := install(t, rt, queued("1"))
				dispatch(t, observePhase, snapshot(t, rt), write)
				if _, err := lease.Replace(test.next...); err != nil {
					t.Fatal(err)
				}
				workAnHour(t, rt)
				runs := list(t, journal, hook.Filter{})
				last := runs[len(runs)-1]
				equal(t, "class", last.Class, test.code)
				equal(t, "attempts, which would not help", last.Attempt, 1)
				equal(t, "subscription", last.Subscription, "a")
			})
		})
	}
}

// SPEC J-06
func TestRecordedJobIsNeverGuessed(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	if _, err := rt.InstallJobs(hook.JobHandler{Name: "mail", Version: "2", Run: doNothing}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rule string
		job  hook.Job
		code codes.Code
	}{
		{"the same version", hook.Job{Handler: "mail", Version: "2", ID: "j"}, ""},
		{"another version", hook.Job{Handler: "mail", Version: "1", ID: "j"}, codes.HandlerChanged},
		{"a handler that is gone", hook.Job{Handler: "post", ID: "j"}, codes.HandlerGone},
		{"a phase that is gone", hook.Job{Phase: "test.old", Subscription: "a", ID: "j"}, codes.HandlerGone},
	} {
		run := rt.Perform(context.Background(), test.job)
		equal(t, test.rule, run.Class, test.code)
		equal(t, test.rule+": state", run.State == hook.Completed, test.code == "")
	}
}

// Work that another process queued finds its input by reference. If the input is gone, the
// work fails with the code job.input_gone.
//
// SPEC J-06
func TestInputOfRecordedWork(t *testing.T) {
	t.Parallel()
	type recall = func(ctx context.Context, phase, reference string, scope hook.Scope) (json.RawMessage, error)
	for _, test := range []struct {
		rule   string
		recall recall
		code   codes.Code
	}{
		{"there is no recall function", nil, codes.InputGone},
		{"the input is gone", func(context.Context, string, string, hook.Scope) (json.RawMessage, error) {
			return nil, hook.ErrNotFound
		}, codes.InputGone},
		{"the input cannot be read now", func(context.Context, string, string, hook.Scope) (json.RawMessage, error) {
			return nil, errors.New("the disk is asleep")
		}, codes.Error},
		{"the input does not decode", func(context.Context, string, string, hook.Scope) (json.RawMessage, error) {
			return json.RawMessage(`[]`), nil
		}, codes.InputGone},
		{"the input is found", func(_ context.Context, phase, reference string, scope hook.Scope) (json.RawMessage, error) {
			return json.RawMessage(fmt.Sprintf(`{"tool":%q,"text":%q,"agent":%q}`, reference, phase, scope.Agent)), nil
		}, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var got call
			queue := hook.NewMemoryQueue(hook.NewMemoryJournal(8), nil)
			rt := newRuntime(t, &hook.RuntimeOptions{Recall: test.recall, Queue: queue},
				observePhase.On("a", does[remark](func(_ context.Context, in call) { got = in }), &hook.Options{Execution: hook.Background}))
			run := rt.Perform(context.Background(), hook.Job{
				ID: "other-process.1", Key: "k", Phase: "test.observe", Subscription: "a", Reference: "call/7", Scope: *write.scope, Attempt: 1,
			})
			equal(t, "class", run.Class, test.code)
			if test.code == "" {
				equal(t, "tool", got.tool, "call/7")
				equal(t, "text", got.text, "test.observe")
				equal(t, "scope", *got.scope, *write.scope)
			}
		})
	}
}

// inputQueue keeps inputs, like a durable queue.
type inputQueue struct {
	*hook.MemoryQueue
	inputs map[string]json.RawMessage
}

func (q inputQueue) EnqueueInput(ctx context.Context, asked hook.Run, job hook.Job, input json.RawMessage) error {
	q.inputs[job.Key] = input
	return q.Enqueue(ctx, asked, []hook.Job{job})
}

func (q inputQueue) Input(_ context.Context, job hook.Job) (json.RawMessage, error) {
	input, ok := q.inputs[job.Key]
	if !ok {
		return nil, hook.ErrNotFound
	}
	return input, nil
}

// If the queue keeps the inputs, another process can run the work.
//
// SPEC J-04, J-06
func TestInputThatTheQueueKeeps(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		lose bool
		code codes.Code
	}{
		{"the input is found", false, ""},
		{"the input is lost", true, codes.InputGone},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			queue := inputQueue{hook.NewMemoryQueue(hook.NewMemoryJournal(8), nil), make(map[string]json.RawMessage)}
			var got []call
			work := observePhase.On("a", does[remark](func(_ context.Context, in call) { got = append(got, in) }), &hook.Options{Execution: hook.Background})
			dispatch(t, observePhase, snapshot(t, newRuntime(t, &hook.RuntimeOptions{Queue: queue}, work)), write)
			other := newRuntime(t, &hook.RuntimeOptions{Queue: queue}, work) // like the runtime of another process
			if test.lose {
				clear(queue.inputs)
			}
			job, err := queue.Claim(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			run := other.Perform(t.Context(), job)
			equal(t, "class", run.Class, test.code)
			equal(t, "runs", len(got) == 1, test.code == "")
			if test.code == "" {
				equal(t, "tool", got[0].tool, write.tool)
				equal(t, "text", got[0].text, write.text)
				equal(t, "scope", *got[0].scope, *write.scope)
			}
		})
	}
}

// SPEC H-10, H-12, J-04
func TestAttemptsThatMisbehave(t *testing.T) {
	t.Parallel()
	for _, m := range misdeeds {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				rt, journal, _ := withQueue(t, 8,
					observePhase.On("bad", commits[remark](m), &hook.Options{Execution: hook.Background, Timeout: time.Second}),
					observePhase.On("job", says(remark{Jobs: []hook.Job{{Handler: "bad", Key: "k"}}}), nil))
				if _, err := rt.InstallJobs(hook.JobHandler{Name: "bad", Timeout: time.Second, Run: func(ctx context.Context, _ hook.Job) ([]hook.Audit, error) {
					return nil, m.do(ctx)
				}}); err != nil {
					t.Fatal(err)
				}
				dispatch(t, observePhase, snapshot(t, rt), write)
				workAnHour(t, rt)
				n := 0
				for _, r := range list(t, journal, hook.Filter{}) {
					if r.Attempt > 0 {
						n++
						equal(t, "state", r.State, m.state)
						equal(t, "class", r.Class, m.code)
					}
				}
				equal(t, "attempts", n, 2)
			})
		})
	}
}

// A stopped worker takes no more jobs. The waiting jobs stay in the queue for the next
// worker.
//
// SPEC J-04, J-07
func TestWorkerThatIsToldToStop(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		rt, journal, queue := withQueue(t, 8, observePhase.On("a", does[remark](func(context.Context, call) {
			cancel() // The worker is stopped during the first of three jobs.
			synctest.Wait()
		}), &hook.Options{Execution: hook.Background}))
		s := snapshot(t, rt)
		for _, tool := range []string{"one", "two", "three"} {
			dispatch(t, observePhase, s, call{tool: tool})
		}
		if err := rt.Work(ctx); err != nil {
			t.Error(err)
		}
		stats, err := queue.Stats(t.Context())
		if err != nil || stats.Waiting != 2 || stats.Running != 0 {
			t.Errorf("queue: got %+v, %v; want two that wait", stats, err)
		}
		failed := list(t, journal, hook.Filter{States: []hook.State{hook.Failed}})
		if len(failed) > 1 {
			t.Errorf("work that nobody began is on record as failed: %s", brief(failed))
		}
	})
}

// Two runs can have the same key. If the second run cannot be stored, the input of the
// first must stay.
//
// SPEC J-03, J-06
func TestRefusedDuplicateLeavesTheFirstAlone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		journal := &fragileJournal{}
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal, Queue: hook.NewMemoryQueue(journal, nil)},
			observePhase.On("a", says(remark{}), &hook.Options{Execution: hook.Background}))
		s := rt.Snapshot()
		dispatch(t, observePhase, s, write)
		journal.setBroken(true)
		out := dispatch(t, observePhase, s, write)
		same(t, "diagnostics", codesOf(out.Diagnostics), []codes.Code{codes.Journal})
		journal.setBroken(false)
		work(t, rt)
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		var last hook.Run
		for _, r := range journal.all() {
			if r.Attempt > 0 {
				last = r
			}
		}
		equal(t, "state of the attempt", last.State, hook.Completed)
		equal(t, "class of the attempt", last.Class, "")
	})
}

// A background run can contribute jobs. Its attempt is recorded only once.
//
// SPEC J-05, J-09
func TestBackgroundRunThatContributesAJob(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		rt, journal, _ := withQueue(t, 8, observePhase.On("a", says(remark{
			Audit: []hook.Audit{{Code: "seen"}}, Jobs: []hook.Job{{Handler: "mail", Key: "mail:1"}},
		}), &hook.Options{Execution: hook.Background}))
		if _, err := rt.InstallJobs(hook.JobHandler{Name: "mail", Run: func(context.Context, hook.Job) ([]hook.Audit, error) {
			return []hook.Audit{{Code: "sent"}}, nil
		}}); err != nil {
			t.Fatal(err)
		}
		s := rt.Snapshot()
		dispatch(t, observePhase, s, write)
		work(t, rt)
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range list(t, journal, hook.Filter{}) {
			got = append(got, fmt.Sprintf("%s%s:%s:%d:%d", r.Subscription, "/"+r.JobHandler, r.State, r.Attempt, len(r.Audit)))
		}
		same(t, "runs", got, []string{"a/:backgrounded:0:0", "a/:completed:1:1", "a/mail:completed:1:1"})
	})
}

// If the journal fails when an attempt ends, the attempt is recorded later, and its work is
// not repeated.
//
// SPEC J-03, J-05
func TestWorkerOutlastsABrokenJournal(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		journal := &fragileJournal{}
		ran := 0
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal, Queue: hook.NewMemoryQueue(journal, nil)},
			observePhase.On("a", does[remark](func(context.Context, call) {
				ran++
				journal.setBroken(true)
			}), &hook.Options{Execution: hook.Background}))
		dispatch(t, observePhase, snapshot(t, rt), write)
		time.AfterFunc(time.Minute, func() { journal.setBroken(false) })
		workAnHour(t, rt)
		equal(t, "attempts on record", attempts(journal.all()), "1:completed")
		equal(t, "runs of the handler", ran, 1)
	})
}

// SPEC J-07
func TestWorkNeedsAQueueThatHandsOut(t *testing.T) {
	t.Parallel()
	if err := newRuntime(t, nil).Work(context.Background()); err == nil {
		t.Error("work without a queue: no error")
	}
}

// An attempt that schedules more jobs has not succeeded until it is settled. If the process
// ends before that, no success may be recorded.
//
// SPEC J-05
func TestAttemptThatSchedulesIsNotOverYet(t *testing.T) {
	t.Parallel()
	journal := hook.NewMemoryJournal(8)
	queue := hook.NewMemoryQueue(journal, nil)
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal, Queue: queue},
		observePhase.On("a", says(remark{Jobs: []hook.Job{{Handler: "more", Key: "k"}}}), &hook.Options{Execution: hook.Background}))
	if _, err := rt.InstallJobs(hook.JobHandler{Name: "more", Run: func(context.Context, hook.Job) ([]hook.Audit, error) { return nil, nil }}); err != nil {
		t.Fatal(err)
	}
	dispatch(t, observePhase, snapshot(t, rt), write)
	job, err := queue.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run := rt.Perform(t.Context(), job)
	equal(t, "the attempt", run.State, hook.Completed)
	for _, r := range list(t, journal, hook.Filter{Job: job.ID}) {
		if r.Attempt > 0 {
			equal(t, "its record before it is settled", r.State, hook.Started)
		}
	}
	if err := queue.Settle(t.Context(), job, run, time.Time{}); err != nil {
		t.Fatal(err)
	}
}

// If a worker is stopped while it looks for an input, the next worker does the work.
//
// SPEC J-04
func TestInputThatIsNotReadInTime(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	queue := hook.NewMemoryQueue(hook.NewMemoryJournal(8), nil)
	rt := newRuntime(t, &hook.RuntimeOptions{Queue: queue, Recall: func(ctx context.Context, _, _ string, _ hook.Scope) (json.RawMessage, error) {
		cancel()
		return nil, context.Cause(ctx)
	}}, observePhase.On("a", does[remark](func(context.Context, call) {}), &hook.Options{Execution: hook.Background}))
	run := rt.Perform(ctx, hook.Job{ID: "other.1", Key: "k", Phase: "test.observe", Subscription: "a", Reference: "r", Scope: *write.scope, Attempt: 1, Idempotent: true})
	equal(t, "class", run.Class, codes.Canceled)
}
