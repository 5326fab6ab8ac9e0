package hook_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

func doNothing(context.Context, hook.Job) ([]hook.Audit, error) { return nil, nil }

// withQueue makes a runtime with a journal and a queue.
func withQueue(t *testing.T, capacity int, subs ...hook.Subscription) (*hook.Runtime, *hook.MemoryJournal, *hook.MemoryQueue) {
	t.Helper()
	journal := hook.NewMemoryJournal(256)
	queue := hook.NewMemoryQueue(journal, &hook.MemoryQueueOptions{Capacity: capacity})
	return newRuntime(t, &hook.RuntimeOptions{Journal: journal, Queue: queue}, subs...), journal, queue
}

// SPEC J-09
func TestContributedJobIsStoredWithItsRun(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]hook.Options{"blocking": {}, "concurrent": {Concurrent: true}, "fire_and_record": {Execution: hook.FireAndRecord}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				at := time.Now().Add(time.Minute)
				rt, journal, queue := withQueue(t, 8, observePhase.On("a", says(remark{Jobs: []hook.Job{
					{Handler: "mail", Reference: "msg/7", Key: "mail:7", At: at, ID: "forged", Subscription: "forged", Version: "forged", Idempotent: true},
					{Handler: "index", Key: "index:7"},
				}}), &o))
				retry := hook.Retry{Attempts: 3, Delay: time.Second}
				if _, err := rt.InstallJobs(
					hook.JobHandler{Name: "mail", Version: "v2", Run: doNothing},
					hook.JobHandler{Name: "index", Run: doNothing, Idempotent: true, Retry: retry},
				); err != nil {
					t.Fatal(err)
				}
				s := rt.Snapshot()
				dispatch(t, observePhase, s, write)
				if err := rt.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				asked := runOf(t, list(t, journal, hook.Filter{States: []hook.State{hook.Completed}}), "a") // The record is stored before the turn ends.
				if err := s.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				equal(t, "runs", brief(list(t, journal, hook.Filter{})), "a:completed") // The end of the turn does not store the record again.
				index, err := queue.Claim(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				want := hook.Job{
					Handler: "index", Key: "index:7", ID: asked.ID + ".2", Subscription: "a", Phase: "test.observe", Run: asked.ID,
					Scope: *write.scope, Idempotent: true, Retry: retry, Attempt: 1,
				}
				if !reflect.DeepEqual(index, want) {
					t.Errorf("got %+v\nwant %+v", index, want)
				}
				mail, err := queue.Claim(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "time of the job that waits", time.Until(at), 0)
				want = hook.Job{
					Handler: "mail", Reference: "msg/7", Key: "mail:7", At: at, ID: asked.ID + ".1", Subscription: "a", Phase: "test.observe",
					Version: "v2", Run: asked.ID, Scope: *write.scope, Attempt: 1,
				}
				if !reflect.DeepEqual(mail, want) {
					t.Errorf("got %+v\nwant %+v", mail, want)
				}
			})
		})
	}
}

// SPEC J-07, J-09
func TestJobsThatAreRefusedWhenContributed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		job  hook.Job
		code codes.Code
	}{
		{"an unknown handler", hook.Job{Handler: "post", Key: "k"}, codes.JobUnknown},
		{"no handler", hook.Job{Key: "k"}, codes.JobUnknown},
		{"no key", hook.Job{Handler: "mail"}, codes.JobInvalid},
		{"a key that is no reference but text", hook.Job{Handler: "mail", Key: "dear Ada"}, codes.JobInvalid},
		{"a reference that is text", hook.Job{Handler: "mail", Key: "k", Reference: "dear Ada"}, codes.JobInvalid},
		{"a key that is too long", hook.Job{Handler: "mail", Key: strings.Repeat("k", 257)}, codes.JobInvalid},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			both := []hook.Job{{Handler: "mail", Key: "fine"}, test.job}
			rt, _, queue := withQueue(t, 8,
				gatePhase.On("closed", says(verdict{Context: []string{"x"}, Jobs: both}), nil),
				collectPhase.On("open", says(findings{Notes: []string{"x"}, Jobs: both}), nil))
			if _, err := rt.InstallJobs(hook.JobHandler{Name: "mail", Run: doNothing}); err != nil {
				t.Fatal(err)
			}
			s := snapshot(t, rt)
			gate := dispatch(t, gatePhase, s, write)
			equal(t, "verdict of the gate", gate.Output.Severity, hook.SeverityDeny)
			same(t, "diagnostics", codesOf(gate.Diagnostics), []codes.Code{test.code})
			collect := dispatch(t, collectPhase, s, write)
			equal(t, "notes of the run that failed whole", len(collect.Output.Notes), 0)
			equal(t, "runs", brief(s.Take()), "closed:failed("+string(test.code)+") open:failed("+string(test.code)+")")
			stats, err := queue.Stats(context.Background())
			if err != nil || stats.Waiting != 0 {
				t.Errorf("queue: got %+v, %v; want none of the jobs", stats, err)
			}
		})
	}
}

// SPEC H-09, J-09
func TestJobWithoutAQueueIsRefused(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, collectPhase.On("a", says(findings{Jobs: []hook.Job{{Handler: "mail", Key: "k"}}}), nil))
	out := dispatch(t, collectPhase, snapshot(t, rt), write)
	same(t, "diagnostics", codesOf(out.Diagnostics), []codes.Code{codes.NoQueue})
}

// SPEC J-07
func TestQueueIsBoundedAndObservable(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		background := &hook.Options{Execution: hook.Background}
		closed := &hook.Options{Execution: hook.Background, Failure: hook.Closed}
		rt, _, queue := withQueue(t, 2, observePhase.On("a", says(remark{}), background), collectPhase.On("b", says(findings{}), closed))
		s := snapshot(t, rt)
		stats := func() hook.QueueStats {
			t.Helper()
			stats, err := queue.Stats(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return stats
		}
		equal(t, "at first", stats(), hook.QueueStats{Capacity: 2})
		for _, tool := range []string{"one", "two"} {
			same(t, "diagnostics", codesOf(dispatch(t, observePhase, s, call{tool: tool}).Diagnostics), nil)
			time.Sleep(time.Second)
		}
		equal(t, "when full", stats(), hook.QueueStats{Waiting: 2, Capacity: 2, OldestAge: 2 * time.Second})
		s.Take()
		out := dispatch(t, observePhase, s, call{tool: "three"})
		same(t, "diagnostics of one too many", codesOf(out.Diagnostics), []codes.Code{codes.QueueFull})
		_, err := collectPhase.Dispatch(t.Context(), s, call{tool: "four"})
		if failure, ok := errors.AsType[*hook.FailureError](err); !ok || failure.Code != codes.QueueFull {
			t.Errorf("a collect phase that fails closed: got %v, want a *FailureError with job.queue_full", err)
		}
		equal(t, "runs", brief(s.Take()), "a:failed(job.queue_full) b:failed(job.queue_full)")
		job, err := queue.Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "while one runs", stats(), hook.QueueStats{Waiting: 1, Running: 1, Capacity: 2, OldestAge: time.Second})
		if err := queue.Settle(t.Context(), job, rt.Perform(t.Context(), job), time.Time{}); err != nil {
			t.Fatal(err)
		}
		same(t, "diagnostics when there is room", codesOf(dispatch(t, observePhase, s, call{tool: "five"}).Diagnostics), nil)
		work(t, rt)
		equal(t, "in the end", stats(), hook.QueueStats{Capacity: 2})
	})
}

// SPEC J-09
func TestInstallJobs(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	lease, err := rt.InstallJobs(hook.JobHandler{Name: "mail", Run: doNothing})
	if err != nil {
		t.Fatal(err)
	}
	for field, h := range map[string]hook.JobHandler{
		"name: use":     {Name: "no mail", Run: doNothing},
		"name: another": {Name: "mail", Run: doNothing},
		"run":           {Name: "post"},
		"timeout":       {Name: "post", Run: doNothing, Timeout: -1},
		"retry: only":   {Name: "post", Run: doNothing, Retry: hook.Retry{Attempts: 2}},
		"retry: want":   {Name: "post", Run: doNothing, Idempotent: true, Retry: hook.Retry{Attempts: -1}},
	} {
		_, err := rt.InstallJobs(hook.JobHandler{Name: "fine", Run: doNothing}, h)
		if err == nil || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), h.Name) {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if _, err := rt.InstallJobs(hook.JobHandler{Name: "twin", Run: doNothing}, hook.JobHandler{Name: "twin", Run: doNothing}); err == nil {
		t.Error("two of one name in one call were accepted")
	}
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mail", "fine"} { // Both names are free: the lease of mail was closed, and fine was never installed.
		if _, err := rt.InstallJobs(hook.JobHandler{Name: name, Run: doNothing}); err != nil {
			t.Error(err)
		}
	}
}

// SPEC H-09, J-01, J-03
func TestBackgroundRunIsStoredBeforeTheTurnGoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		rt, journal, queue := withQueue(t, 8, observePhase.On("a", says(remarks("done")), &hook.Options{
			Execution: hook.Background, Version: "v3", Idempotent: true, Retry: hook.Retry{Attempts: 2},
		}))
		s := rt.Snapshot()
		dispatch(t, observePhase, s, write)
		stored := list(t, journal, hook.Filter{}) // Read the records before the turn writes anything.
		equal(t, "on record", brief(stored), "a:backgrounded")
		if stored[0].Job == "" || stored[0].Key == "" {
			t.Errorf("its job and key are not on record: %+v", stored[0])
		}
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "on record after the turn", brief(list(t, journal, hook.Filter{})), "a:backgrounded")
		job, err := queue.Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := hook.Job{
			Reference: "call/write", Key: stored[0].Key, ID: stored[0].Job, Subscription: "a", Phase: "test.observe", Version: "v3", Run: stored[0].ID,
			Scope: *write.scope, Idempotent: true, Retry: hook.Retry{Attempts: 2}, Attempt: 1,
		}
		if !reflect.DeepEqual(job, want) {
			t.Errorf("job: got %+v\nwant %+v", job, want)
		}
		run := rt.Perform(t.Context(), job)
		equal(t, "attempt", run.Attempt, 1)
		equal(t, "state", run.State, hook.Completed)
		equal(t, "key", run.Key, job.Key)
		equal(t, "version", run.Version, "v3")
		equal(t, "scope", run.Scope, *write.scope)
		equal(t, "audit", len(run.Audit), 1)
		equal(t, "execution", run.Execution, hook.Background)
	})
}
