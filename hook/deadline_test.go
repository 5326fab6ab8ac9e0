package hook_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// SPEC H-09, H-11
func TestLateAnswerIsNeverUsed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		opts hook.Options
		took time.Duration
	}{
		{"deadline: it is abandoned", hook.Options{Execution: hook.Deadline}, time.Second},
		{"blocking: it is waited for", hook.Options{}, 5 * time.Second},
		{"blocking and concurrent: it is waited for", hook.Options{Concurrent: true}, 5 * time.Second},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				journal := hook.NewMemoryJournal(8)
				o := test.opts
				o.Timeout, o.Failure = time.Second, hook.Open
				rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal}, gatePhase.On("late", func(context.Context, call) (verdict, error) {
					time.Sleep(5 * time.Second) // The handler ignores its context.
					return verdict{Severity: hook.SeverityHalt, Context: []string{"late"}}, nil
				}, &o))
				s := rt.Snapshot()
				began := time.Now()
				out := dispatch(t, gatePhase, s, write)
				equal(t, "time", time.Since(began), test.took)
				equal(t, "verdict", out.Output.Severity, hook.SeverityPass)
				same(t, "context", out.Output.Context, nil)
				same(t, "diagnostics", codesOf(out.Diagnostics), []codes.Code{codes.Timeout})
				time.Sleep(time.Minute) // The handler has answered by now.
				if err := s.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				runs := list(t, journal, hook.Filter{})
				equal(t, "record", brief(runs), "late:timed_out(hook.timeout)")
				equal(t, "latency", time.Duration(runs[0].Latency), test.took)
				equal(t, "contributions on record", len(runs[0].Contributed), 0)
				equal(t, "verdict of the outcome, much later", out.Output.Severity, hook.SeverityPass)
			})
		})
	}
}

// An answer counts if it arrives before the timeout, even one nanosecond before.
//
// SPEC H-11
func TestDeadlineIsExact(t *testing.T) {
	t.Parallel()
	for takes, want := range map[time.Duration]codes.Code{
		time.Second - 1: "", time.Second: codes.Timeout, time.Second + 1: codes.Timeout,
	} {
		for _, w := range ways {
			t.Run(fmt.Sprint(takes, " ", w.name), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					o := w.opts
					rt := newRuntime(t, nil, collectPhase.On("a", slowly(takes, "a"), &o))
					s := snapshot(t, rt)
					out := dispatch(t, collectPhase, s, write)
					equal(t, "class", runOf(t, s.Take(), "a").Class, want)
					equal(t, "used", len(out.Output.Notes) == 1, want == "")
				})
			})
		}
	}
}

// Each handler of a stage has its own deadline.
//
// SPEC H-07, H-11
func TestDeadlinesOfHandlersThatOverlap(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		within := func(d time.Duration) *hook.Options { return &hook.Options{Execution: hook.Deadline, Timeout: d} }
		rt := newRuntime(t, nil,
			collectPhase.On("a", slowly(3*time.Second, "a"), within(2*time.Second)),
			collectPhase.On("b", slowly(3*time.Second, "b"), within(4*time.Second)),
			collectPhase.On("c", slowly(2*time.Second, "c"), within(time.Second)),
			collectPhase.On("d", slowly(0, "d"), within(time.Hour)),
			collectPhase.On("e", slowly(time.Second, "e"), &hook.Options{Concurrent: true}),
		)
		s := snapshot(t, rt)
		began := time.Now()
		out := dispatch(t, collectPhase, s, write)
		equal(t, "time", time.Since(began), 3*time.Second)
		same(t, "notes", out.Output.Notes, []string{"b", "d", "e"})
		equal(t, "runs", brief(s.Take()), "a:timed_out(hook.timeout) b:completed c:timed_out(hook.timeout) d:completed e:completed")
	})
}

// A dispatch that ends early does not affect the timeouts of the next dispatch.
//
// SPEC H-11, H-12
func TestDeadlinesOfOneDispatchAfterTheOther(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		takes, timeout := time.Duration(0), 3*time.Second
		rt := newRuntime(t, nil, collectPhase.On("a", func(context.Context, call) (findings, error) {
			time.Sleep(takes)
			return note("a"), nil
		}, &hook.Options{Execution: hook.Deadline, Timeout: timeout}))
		s := snapshot(t, rt)
		for i, test := range []struct{ takes, want time.Duration }{
			{0, 0},
			{2 * time.Second, 2 * time.Second},
			{9 * time.Second, timeout},
			{0, 0},
			{2900 * time.Millisecond, 2900 * time.Millisecond},
			{9 * time.Second, timeout},
			{time.Second, time.Second},
		} {
			takes = test.takes
			began := time.Now()
			out := dispatch(t, collectPhase, s, write)
			equal(t, fmt.Sprintf("time of dispatch %d", i), time.Since(began), test.want)
			equal(t, fmt.Sprintf("dispatch %d in time", i), len(out.Output.Notes) == 1, test.takes < timeout)
			synctest.Wait()
		}
		time.Sleep(time.Minute)
	})
}

// The runtime reuses the memory of runs. Still, no run sees the input, the answer or the
// result of another run. A handler may keep its context.
//
// SPEC H-08, H-11, H-12
func TestRunsShareNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var handle func() (findings, error)
		var kept []context.Context
		rt := newRuntime(t, nil,
			collectPhase.On("a", func(ctx context.Context, _ call) (findings, error) {
				if ctx.Err() != nil {
					t.Error("a context is over before its handler began")
				}
				kept = append(kept, ctx)
				return handle()
			}, &hook.Options{Execution: hook.Deadline, Timeout: time.Second}),
			collectPhase.On("b", slowly(0, "b"), &hook.Options{Concurrent: true}))
		s := snapshot(t, rt)
		answers := func() (findings, error) { return note("a"), nil }
		for i, step := range []struct {
			handle func() (findings, error)
			notes  string
			code   codes.Code
		}{
			{answers, "a b", ""},
			{func() (findings, error) { return note("not used"), errors.New("no") }, "b", codes.Error},
			{func() (findings, error) { return findings{}, nil }, "b", ""},
			{func() (findings, error) { panic("no") }, "b", codes.Panic},
			{answers, "a b", ""},
			{func() (findings, error) { runtime.Goexit(); return findings{}, nil }, "b", codes.Goexit},
			{func() (findings, error) { time.Sleep(2 * time.Second); return note("late"), nil }, "b", codes.Timeout},
			{answers, "a b", ""},
			{func() (findings, error) { time.Sleep(2 * time.Second); return note("late"), nil }, "b", codes.Timeout},
			{func() (findings, error) { return findings{}, nil }, "b", ""},
		} {
			handle = step.handle
			out := dispatch(t, collectPhase, s, write)
			synctest.Wait() // The abandoned handler has now stored its context.
			equal(t, fmt.Sprintf("notes of dispatch %d", i), strings.Join(out.Output.Notes, " "), step.notes)
			equal(t, fmt.Sprintf("class of dispatch %d", i), runOf(t, s.Take(), "a").Class, step.code)
			for k, ctx := range kept {
				equal(t, fmt.Sprintf("context %d is over after dispatch %d", k, i), ctx.Err() != nil, true)
			}
			last := kept[len(kept)-1]
			late := errors.Is(context.Cause(last), context.DeadlineExceeded)
			equal(t, fmt.Sprintf("context of dispatch %d timed out", i), late, step.code == codes.Timeout)
		}
		time.Sleep(time.Minute)
	})
}

// SPEC H-11
func TestLargestTimeoutDoesNotOverflow(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				o := w.opts
				o.Timeout = math.MaxInt64
				rt := newRuntime(t, nil, collectPhase.On("a", slowly(time.Second, "a"), &o))
				time.Sleep(time.Minute) // The current time plus the timeout overflows.
				same(t, "notes", dispatch(t, collectPhase, snapshot(t, rt), write).Output.Notes, []string{"a"})
			})
		})
	}
}

// SPEC H-11
func TestCauseSaysWhy(t *testing.T) {
	t.Parallel()
	fired := hook.Options{Execution: hook.FireAndRecord, Timeout: time.Second}
	for name, o := range map[string]hook.Options{"inline": ways[0].opts, "concurrent": ways[1].opts, "deadline": ways[2].opts, "fire_and_record": fired} {
		t.Run("timeout, "+name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				causes := make(chan error, 1)
				rt := newRuntime(t, nil, observePhase.On("a", does[remark](func(ctx context.Context, _ call) {
					<-ctx.Done()
					causes <- context.Cause(ctx)
				}), &o))
				dispatch(t, observePhase, snapshot(t, rt), write)
				cause := <-causes
				late, ok := errors.AsType[interface {
					error
					Timeout() bool
				}](cause)
				if !ok || !late.Timeout() || !strings.Contains(cause.Error(), "1s") || !errors.Is(cause, context.DeadlineExceeded) {
					t.Errorf("cause: got %v, want a timeout after 1s", cause)
				}
				if err := rt.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
	enough := errors.New("the user pressed escape")
	for _, w := range ways {
		t.Run("cancel, "+w.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				causes := make(chan error, 1)
				o := w.opts
				o.Timeout = time.Hour
				rt := newRuntime(t, nil, observePhase.On("a", does[remark](func(ctx context.Context, _ call) {
					<-ctx.Done()
					causes <- context.Cause(ctx)
				}), &o))
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(enough) })
				_, _ = observePhase.Dispatch(ctx, snapshot(t, rt), write)
				if cause := <-causes; !errors.Is(cause, enough) {
					t.Errorf("cause: got %v, want %v", cause, enough)
				}
			})
		})
	}
}

// SPEC H-11
func TestQuarantine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		failure hook.Failure
		limit   int // 0: the default
		want    hook.Severity
	}{
		{"after 8 abandoned runs by default, failure mode closed", hook.Closed, 0, hook.SeverityDeny},
		{"after 8 abandoned runs by default, failure mode open", hook.Open, 0, hook.SeverityPass},
		{"after 8 abandoned runs by default, failure mode fallback", gatePhase.Fallback(ask("unsure")), 0, hook.SeverityAsk},
		{"the number of abandoned runs is a setting", hook.Open, 2, hook.SeverityPass},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				limit := test.limit
				if limit == 0 {
					limit = 8
				}
				release := make(chan struct{})
				var started atomic.Int32
				rt := newRuntime(t, &hook.RuntimeOptions{Abandoned: test.limit},
					gatePhase.On("stuck", does[verdict](func(context.Context, call) { started.Add(1); <-release }),
						&hook.Options{Execution: hook.Deadline, Timeout: time.Second, Failure: test.failure}),
					gatePhase.On("other", says(verdict{}), &hook.Options{Execution: hook.Deadline, Timeout: time.Second, Before: []string{"stuck"}}))
				s := snapshot(t, rt)
				for range limit {
					same(t, "diagnostics", codesOf(dispatch(t, gatePhase, s, write).Diagnostics), []codes.Code{codes.Timeout})
				}
				s.Take()
				for range 2 {
					began := time.Now()
					out := dispatch(t, gatePhase, s, write)
					same(t, "diagnostics in quarantine", codesOf(out.Diagnostics), []codes.Code{codes.Quarantined})
					equal(t, "verdict in quarantine", out.Output.Severity, test.want)
					equal(t, "time in quarantine", time.Since(began), 0)
					equal(t, "runs in quarantine", brief(s.Take()), "other:completed stuck:failed(hook.quarantined)")
				}
				equal(t, "started", int(started.Load()), limit)
				release <- struct{}{} // One abandoned run returns.
				synctest.Wait()
				same(t, "diagnostics after one returned", codesOf(dispatch(t, gatePhase, s, write).Diagnostics), []codes.Code{codes.Timeout})
				equal(t, "started", int(started.Load()), limit+1)
				close(release)
				synctest.Wait()
				same(t, "diagnostics after all returned", codesOf(dispatch(t, gatePhase, s, write).Diagnostics), nil)
			})
		})
	}
}

// Runs that were abandoned because the turn was cancelled also count for the quarantine.
//
// SPEC H-11
func TestQuarantineCountsCancelledRuns(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		rt := newRuntime(t, &hook.RuntimeOptions{Abandoned: 1}, gatePhase.On("stuck",
			does[verdict](func(context.Context, call) { <-release }), &hook.Options{Execution: hook.Deadline, Timeout: time.Hour, Failure: hook.Open}))
		s := snapshot(t, rt)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, _ = gatePhase.Dispatch(ctx, s, write)
		equal(t, "time", time.Since(began), time.Second)
		same(t, "diagnostics", codesOf(dispatch(t, gatePhase, s, write).Diagnostics), []codes.Code{codes.Quarantined})
		close(release)
	})
}
