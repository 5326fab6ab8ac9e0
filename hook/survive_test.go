package hook_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// SPEC H-12
func TestPanicsAmongInlineHandlers(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	var want []string
	for i := range 20 {
		id := fmt.Sprintf("n%02d", i)
		if i%3 == 0 {
			install(t, rt, collectPhase.On(id, does[findings](func(context.Context, call) { panic(id) }), nil))
			continue
		}
		want = append(want, id)
		install(t, rt, collectPhase.On(id, says(note(id)), nil))
	}
	s := snapshot(t, rt)
	for range 3 { // The runtime stays usable.
		out := dispatch(t, collectPhase, s, write)
		same(t, "notes", out.Output.Notes, want)
		equal(t, "diagnostics", len(out.Diagnostics), 7)
	}
	equal(t, "runs", len(s.Take()), 60)
}

// Goexit ends the calling goroutine, and nothing can prevent that. In a blocking handler,
// this is the caller's goroutine. The run is recorded before the goroutine ends, and other
// goroutines are not affected.
//
// SPEC H-12
func TestGoexitInAnInlineHandler(t *testing.T) {
	t.Parallel()
	watchdog(t)
	for name, o := range map[string]hook.Options{"plain": {}, "with a timeout": {Timeout: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leave := true
			o.Failure = hook.Open
			rt := newRuntime(t, nil,
				gatePhase.On("a", says(verdict{}), nil),
				gatePhase.On("b", does[verdict](func(context.Context, call) {
					if leave {
						runtime.Goexit()
					}
				}), &o),
				gatePhase.On("c", says(deny("no")), nil),
				gatePhase.On("d", says(verdict{}), &hook.Options{Concurrent: true, After: []string{"c"}}))
			s := snapshot(t, rt)
			returned := true
			var ended sync.WaitGroup
			ended.Go(func() {
				returned = false
				_, _ = gatePhase.Dispatch(context.Background(), s, write)
				returned = true
			})
			ended.Wait()
			equal(t, "the goroutine went on", returned, false)
			equal(t, "runs", brief(s.Take()), "a:completed b:failed(hook.goexit) c:skipped(hook.skipped) d:skipped(hook.skipped)")
			leave = false
			equal(t, "verdict afterwards", dispatch(t, gatePhase, s, write).Output.Severity, hook.SeverityDeny)
			equal(t, "runs afterwards", brief(s.Take()), "a:completed b:completed c:completed d:skipped(hook.skipped)")
		})
	}
}

// SPEC H-12
func TestNilOutputIsNoOpinion(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*hook.Options{
		"inline": nil, "concurrent": {Concurrent: true}, "deadline": {Execution: hook.Deadline, Timeout: time.Minute},
		"with a timeout": {Timeout: time.Minute}, "shadow": {Shadow: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt := newRuntime(t, nil,
				pagePhase.On("a", says[*page](nil), o),
				pagePhase.On("b", says(new(page)), o))
			s := snapshot(t, rt)
			out := dispatch(t, pagePhase, s, write)
			if out.Output != nil || len(out.Diagnostics) > 0 {
				t.Errorf("got %v, %v; want no opinion", out.Output, out.Diagnostics)
			}
			for _, r := range s.Take() {
				equal(t, "state of "+r.Subscription, r.State, hook.Completed)
				equal(t, "contributions of "+r.Subscription, len(r.Contributed), 0)
			}
		})
	}
	rt := newRuntime(t, nil, pagePhase.On("a", says[*page](nil), nil), pagePhase.On("b", says(&page{Lines: []string{"b"}}), nil))
	out := dispatch(t, pagePhase, snapshot(t, rt), write)
	if out.Output == nil || len(out.Output.Lines) != 1 {
		t.Errorf("got %v, want the line of b", out.Output)
	}
}

// SPEC H-12
func TestHandlerThatChangesTheRuntime(t *testing.T) {
	t.Parallel()
	for _, w := range append(ways[:3:3], struct {
		name  string
		alone bool
		opts  hook.Options
	}{"plain", false, hook.Options{}}) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			watchdog(t)
			o := w.opts
			if o.Timeout > 0 {
				o.Timeout = time.Minute
			}
			rt := newRuntime(t, nil)
			var own *hook.Lease
			var asked trail
			own = install(t, rt, gatePhase.On("a", func(ctx context.Context, _ call) (verdict, error) {
				if _, err := rt.Install(gatePhase.On("late", asked.gate("late"), nil)); err != nil {
					return verdict{}, err
				}
				if _, err := rt.Plan("test.gate"); err != nil {
					return verdict{}, err
				}
				if err := own.Close(); err != nil { // The handler closes its own lease.
					return verdict{}, err
				}
				patience, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				if own.Drain(patience) == nil {
					return verdict{}, errors.New("drained while it runs")
				}
				return ask("done"), nil
			}, &o), gatePhase.On("b", asked.gate("b"), nil))
			s := snapshot(t, rt)
			out := dispatch(t, gatePhase, s, write)
			equal(t, "reason", out.Output.Reason, "done")
			same(t, "asked", asked.all(), []string{"b"}) // The turn keeps the subscriptions that it started with.
			same(t, "plan afterwards", planOf(t, rt, gatePhase), []string{"late"})
			dispatch(t, gatePhase, snapshot(t, rt), write)
			same(t, "asked by the next turn", asked.all(), []string{"b", "late"})
		})
	}
}

// SPEC H-12
func TestHandlerThatDispatchesAgain(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			watchdog(t)
			o := w.opts
			o.Timeout = time.Minute
			rt := newRuntime(t, nil)
			var turn *hook.Snapshot
			again := func(ctx context.Context, s *hook.Snapshot, in call) error {
				out, err := gatePhase.Dispatch(ctx, s, in)
				if err != nil || out.Output.Severity != hook.SeverityDeny {
					return fmt.Errorf("inner dispatch: %v, %w", out.Output, err)
				}
				return nil
			}
			install(t, rt, gatePhase.On("a", func(ctx context.Context, in call) (verdict, error) {
				if len(in.text) >= 40 {
					return deny(in.text), nil
				}
				fresh := rt.Snapshot()
				deepest := in
				deepest.text = strings.Repeat(".", 40)
				in.text += "."
				err := errors.Join(again(ctx, turn, in), again(ctx, fresh, deepest), fresh.Release(ctx))
				return deny("from the depths"), err
			}, &o))
			turn = snapshot(t, rt)
			equal(t, "reason", dispatch(t, gatePhase, turn, write).Output.Reason, "from the depths")
			equal(t, "runs of the turn", len(turn.Take()), 36)
		})
	}
}

// SPEC H-11, H-12
func TestHandlerThatNeverReturnsUnderADeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		never := make(chan struct{}) // Nobody sends on it before the test is over.
		rt := newRuntime(t, nil,
			gatePhase.On("stuck", does[verdict](func(context.Context, call) { <-never }),
				&hook.Options{Execution: hook.Deadline, Timeout: time.Second, Failure: hook.Open}),
			gatePhase.On("next", says(ask("sure?")), &hook.Options{After: []string{"stuck"}}))
		s := snapshot(t, rt)
		for range 20 {
			equal(t, "reason", dispatch(t, gatePhase, s, write).Output.Reason, "sure?")
		}
		close(never)
		synctest.Wait()
	})
}

// blurt is an output whose Answer method panics, unless fine is set.
type blurt struct{ fine bool }

// Answer panics, unless b.fine is set.
func (b blurt) Answer() *hook.Answer {
	if b.fine {
		return &hook.Answer{Audit: []hook.Audit{{Code: "fine"}}}
	}
	panic("no answer")
}

// If the Answer method of an output panics, the handler has failed.
//
// SPEC H-12
func TestOutputThatPanics(t *testing.T) {
	t.Parallel()
	phase := hook.Define(hook.Definition[call, blurt]{
		Name: "test.blurt", Kind: hook.Observe, Capabilities: hook.CanAudit, Reference: call.reference, Decode: decodeCall,
	})
	for name, o := range map[string]hook.Options{
		"inline": {}, "concurrent": {Concurrent: true}, "deadline": {Execution: hook.Deadline, Timeout: time.Second},
		"with a timeout": {Timeout: time.Second}, "fire_and_record": {Execution: hook.FireAndRecord}, "background": {Execution: hook.Background},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				journal := hook.NewMemoryJournal(8)
				rt, err := hook.NewRuntime([]hook.AnyPhase{phase}, &hook.RuntimeOptions{Journal: journal, Queue: hook.NewMemoryQueue(journal, nil)})
				if err != nil {
					t.Fatal(err)
				}
				install(t, rt, phase.On("bad", says(blurt{}), &o), phase.On("good", says(blurt{fine: true}), nil))
				s := rt.Snapshot()
				dispatch(t, phase, s, write)
				work(t, rt)
				if err := s.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				got := brief(list(t, journal, hook.Filter{Subscription: "bad", States: []hook.State{hook.Completed, hook.Failed}}))
				equal(t, "runs", got, "bad:failed(hook.panic)")
				equal(t, "the other one", brief(list(t, journal, hook.Filter{Subscription: "good"})), "good:completed")
			})
		})
	}
}

// If a merge rule panics, the dispatch fails, and a gate denies. The runtime stays usable.
//
// SPEC H-12
func TestMergeThatPanics(t *testing.T) {
	t.Parallel()
	broken := true
	phase := hook.Define(hook.Definition[call, verdict]{
		Name: "test.broken", Kind: hook.Gate, Capabilities: hook.CanAsk,
		Merge: func(_ *hook.Merging, _, answer verdict) verdict {
			if broken {
				panic("the phase is broken")
			}
			return answer
		},
		Closed: func(p hook.Problem) (verdict, bool) { return deny(p.Reason()), true },
	})
	rt, err := hook.NewRuntime([]hook.AnyPhase{phase}, nil)
	if err != nil {
		t.Fatal(err)
	}
	install(t, rt, phase.On("a", says(ask("sure?")), nil))
	s := snapshot(t, rt)
	out, err := phase.Dispatch(context.Background(), s, write)
	if err == nil || out.Output.Severity != hook.SeverityDeny {
		t.Errorf("got %v, %v; want a denial and an error", out.Output, err)
	}
	broken = false
	equal(t, "verdict afterwards", dispatch(t, phase, s, write).Output.Severity, hook.SeverityAsk)
	equal(t, "runs", len(s.Take()), 2)
}

// If reading a label panics, the subscription that matches on the label fails.
//
// SPEC H-10, H-12
func TestLabelThatPanics(t *testing.T) {
	t.Parallel()
	def := collectDefinition
	def.Name = "test.labels"
	def.Labels = map[string]func(call) string{"tool": func(call) string { panic("no label") }}
	phase := hook.Define(def)
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			rt, err := hook.NewRuntime([]hook.AnyPhase{phase}, nil)
			if err != nil {
				t.Fatal(err)
			}
			o := w.opts
			o.Timeout, o.Match = time.Minute, hook.Match{Tools: []string{"write"}}
			install(t, rt, phase.On("a", says(note("a")), &o), phase.On("b", says(note("b")), nil))
			s := snapshot(t, rt)
			for range 2 {
				same(t, "notes", dispatch(t, phase, s, write).Output.Notes, []string{"b"})
				runs := s.Take()
				equal(t, "class", runOf(t, runs, "a").Class, codes.Panic)
				equal(t, "the other", runOf(t, runs, "b").State, hook.Completed)
			}
		})
	}
}
