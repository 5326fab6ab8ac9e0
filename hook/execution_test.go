package hook_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// SPEC H-09
func TestFireAndRecordDoesNotWait(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		journal := hook.NewMemoryJournal(8)
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
			observePhase.On("slow", func(ctx context.Context, _ call) (remark, error) {
				time.Sleep(time.Second)
				return remarks("seen"), ctx.Err()
			}, &hook.Options{Execution: hook.FireAndRecord}))
		ctx, cancel := context.WithCancel(t.Context())
		s := rt.Snapshot()
		began := time.Now()
		if _, err := observePhase.Dispatch(ctx, s, write); err != nil {
			t.Fatal(err)
		}
		cancel() // The end of the turn does not end a fired run.
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "time that the turn took", time.Since(began), 0)
		equal(t, "on record during the run", brief(list(t, journal, hook.Filter{})), "slow:started")
		if err := rt.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "time until it had ended", time.Since(began), time.Second)
		runs := list(t, journal, hook.Filter{})
		equal(t, "on record after the run", brief(runs), "slow:completed")
		equal(t, "latency", time.Duration(runs[0].Latency), time.Second)
		equal(t, "audit", len(runs[0].Audit), 1)
	})
}

// A fired run can end before its turn. Its final record and the turn's records are then
// written in any order, but the run ends only once in the journal.
//
// SPEC H-09, J-01
func TestFiredRunThatEndsBeforeItsTurn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		journal := hook.NewMemoryJournal(8)
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
			observePhase.On("quick", says(remarks("seen")), &hook.Options{Execution: hook.FireAndRecord}))
		s := rt.Snapshot()
		dispatch(t, observePhase, s, write)
		if err := rt.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "before the turn ends", brief(list(t, journal, hook.Filter{})), "quick:completed")
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "after the turn ended", brief(list(t, journal, hook.Filter{})), "quick:completed")
	})
}

// A handler can change the outcome only if the dispatch waits for it. Other handlers can
// contribute only audit notes and jobs. The runtime checks this for each answer.
//
// SPEC H-09, H-15
func TestDetachedWorkMayContributeAuditAndJobsAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		says findings
		want string
	}{
		{"audit", findings{Audit: []hook.Audit{{Code: "seen"}}}, "a:completed"},
		{"a job", findings{Jobs: []hook.Job{{Handler: "mail", Key: "k"}}}, "a:completed"},
		{"no opinion", findings{}, "a:completed"},
		{"a note", note("psst"), "a:failed(hook.capability_missing)"},
		{"a note beside audit fails the whole run", findings{Notes: []string{"psst"}, Audit: []hook.Audit{{Code: "seen"}}}, "a:failed(hook.capability_missing)"},
	} {
		for _, execution := range []hook.Execution{hook.FireAndRecord, hook.Background} {
			t.Run(execution.String()+": "+test.rule, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					journal := hook.NewMemoryJournal(8)
					rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal, Queue: hook.NewMemoryQueue(journal, nil)},
						collectPhase.On("a", says(test.says), &hook.Options{Execution: execution}))
					if _, err := rt.InstallJobs(hook.JobHandler{Name: "mail", Run: func(context.Context, hook.Job) ([]hook.Audit, error) { return nil, nil }}); err != nil {
						t.Fatal(err)
					}
					s := snapshot(t, rt)
					out := dispatch(t, collectPhase, s, write)
					same(t, "notes", out.Output.Notes, nil)
					work(t, rt)
					if err := s.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
					runs := list(t, journal, hook.Filter{Subscription: "a", States: []hook.State{hook.Completed, hook.Failed}})
					runs = withoutJobs(runs)
					equal(t, "run", brief(runs), test.want)
					if runs[0].State == hook.Failed && (runs[0].Audit != nil || runs[0].Contributed != nil) {
						t.Errorf("a part of the refused answer is on record: %+v", runs[0])
					}
				})
			})
		}
	}
}

// withoutJobs returns the runs without the runs of contributed jobs.
func withoutJobs(runs []hook.Run) []hook.Run {
	var own []hook.Run
	for _, r := range runs {
		if r.JobHandler == "" {
			own = append(own, r)
		}
	}
	return own
}

// work performs the jobs that are due and waits for the fired runs. Call it in a synctest
// bubble.
func work(t *testing.T, rt *hook.Runtime) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- rt.Work(ctx) }()
	synctest.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := rt.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// SPEC H-09, H-15
func TestDetachedWorkMayNotDeclareMore(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, &hook.RuntimeOptions{Queue: hook.NewMemoryQueue(hook.NewMemoryJournal(8), nil)})
	for _, execution := range []hook.Execution{hook.FireAndRecord, hook.Background} {
		_, err := rt.Install(collectPhase.On("a", says(findings{}), &hook.Options{Execution: execution, Capabilities: hook.CanAudit | hook.CanAddContext}))
		problem, ok := errors.AsType[*hook.OptionError](err)
		if !ok || problem.Field != "capabilities" || !strings.Contains(problem.Reason, "context") {
			t.Errorf("%s: got %v, want an *OptionError about capabilities that names context", execution, err)
		}
	}
}

// SPEC H-09, H-11
func TestFiredRunIsBoundByItsTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		journal := hook.NewMemoryJournal(32)
		release := make(chan struct{})
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
			observePhase.On("a", does[remark](func(context.Context, call) { <-release }),
				&hook.Options{Execution: hook.FireAndRecord, Timeout: time.Second}))
		s := snapshot(t, rt)
		for range 8 {
			dispatch(t, observePhase, s, write)
		}
		if err := rt.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "time-outs on record", len(list(t, journal, hook.Filter{States: []hook.State{hook.TimedOut}})), 8)
		out := dispatch(t, observePhase, s, write)
		same(t, "the ninth", codesOf(out.Diagnostics), []codes.Code{codes.Quarantined})
		close(release)
		synctest.Wait()
		out = dispatch(t, observePhase, s, write)
		same(t, "after they returned", codesOf(out.Diagnostics), nil)
		if err := rt.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// SPEC H-09
func TestFiredRunsAreBounded(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		rt := newRuntime(t, &hook.RuntimeOptions{InFlight: 3},
			observePhase.On("a", does[remark](func(context.Context, call) { <-release }), &hook.Options{Execution: hook.FireAndRecord}))
		s := snapshot(t, rt)
		for range 3 {
			same(t, "diagnostics", codesOf(dispatch(t, observePhase, s, write).Diagnostics), nil)
		}
		out := dispatch(t, observePhase, s, write)
		same(t, "diagnostics of one too many", codesOf(out.Diagnostics), []codes.Code{codes.Overloaded})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := rt.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drain while runs are under way: got %v, want the end of its patience", err)
		}
		close(release)
		if err := rt.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		same(t, "diagnostics afterwards", codesOf(dispatch(t, observePhase, s, write).Diagnostics), nil)
		if err := rt.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// SPEC H-09, H-12
func TestFiredRunThatMisbehaves(t *testing.T) {
	t.Parallel()
	for _, m := range misdeeds {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				journal := hook.NewMemoryJournal(8)
				rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
					observePhase.On("bad", commits[remark](m), &hook.Options{Execution: hook.FireAndRecord, Timeout: time.Second}))
				s := snapshot(t, rt)
				dispatch(t, observePhase, s, write)
				if err := rt.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				run := runOf(t, list(t, journal, hook.Filter{}), "bad")
				equal(t, "state", run.State, m.state)
				equal(t, "class", run.Class, m.code)
			})
		})
	}
}

// Drain is safe while others start more detached runs.
//
// SPEC H-12, H-14
func TestDrainWhileFiring(t *testing.T) {
	t.Parallel()
	watchdog(t)
	rt := newRuntime(t, nil, observePhase.On("a", says(remark{}), &hook.Options{Execution: hook.FireAndRecord}))
	s := snapshot(t, rt)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			if _, err := observePhase.Dispatch(context.Background(), s, write); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 200 {
		if err := rt.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	}
	<-done
	if err := rt.Drain(context.Background()); err != nil {
		t.Error(err)
	}
}
