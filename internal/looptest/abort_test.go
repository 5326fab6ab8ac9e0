package looptest_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/store/memstore"
)

// richEvents returns the number of events of a rich turn, and the index of its last text
// event.
func richEvents(t *testing.T) (n, before int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		all := take(newRich(t, nil).session.Run(t.Context(), richWork))
		if all.err != nil || all.Reason != belay.EndTurn {
			t.Fatalf("the turn is %+v, %v", all.Turn, all.err)
		}
		for n = range all.events {
			if all.events[n].Kind == belay.EventTextDelta {
				before = n
			}
		}
		n++
	})
	return n, before
}

// A turn may be aborted at any event, by leaving its stream or by cancelling its context.
// In both cases the turn is over when the stream ends, with the reason aborted.
// turn.post_turn fires once, the transcript is well formed, and the next turn works. No
// goroutine is left: otherwise the synctest bubble fails.
//
// SPEC L-03, L-05, T-10
func TestAbortAtEveryEvent(t *testing.T) {
	t.Parallel()
	events, before := richEvents(t)
	for at := range events {
		for _, how := range []string{"left", "cancelled"} {
			t.Run(how+" at event "+strconv.Itoa(at), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { abortAt(t, at, at >= before, how == "left") })
			})
		}
	}
}

// abortAt aborts a rich turn at one of its events. If late is true, the turn may end
// normally before it sees the abort. If leave is true, the reader leaves the stream;
// otherwise the context is cancelled.
func abortAt(t *testing.T, at int, late, leave bool) {
	r := newRich(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	seen := 0
	var end *belay.Turn
	var failure error
	for event, err := range r.session.Run(ctx, richWork) {
		if err != nil {
			failure = err
			continue
		}
		if event.End != nil {
			end = event.End
		}
		if seen == at && leave {
			break
		}
		if seen == at {
			cancel(enough)
		}
		seen++
	}
	cancel(nil)
	got := r.phases.ends()
	over := late && slices.Equal(got, []string{"1 end_turn"})
	if !slices.Equal(got, []string{"1 aborted"}) && !over {
		t.Errorf("when the stream was over, turn.post_turn had got %v, want aborted", got)
	}
	if !leave && !over && (end == nil || end.Reason != belay.EndAborted || !errors.Is(failure, enough)) {
		t.Errorf("the turn is %+v, %v, want it aborted because of the cause", end, failure)
	}
	if r.phases.count(belay.Error.Name()) > 0 {
		t.Error("an abort is no failure, but the phase error fired")
	}
	r.sound(t)
	r.goesOn(t)
	if err := r.session.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := r.session.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := r.phases.count(belay.SessionEnd.Name()); n != 1 {
		t.Errorf("session.end fired %d times", n)
	}
	for _, run := range r.runsOf(t, "log") {
		if !run.State.Final() {
			t.Errorf("the journal has a run that is not over: %v", run)
		}
	}
}

// A turn can also be aborted while hooks of a phase run. The end phases still fire.
//
// SPEC L-05
func TestAbortAtEveryPhase(t *testing.T) {
	t.Parallel()
	for _, p := range everyPhase() {
		switch p.Name() {
		case "subagent.start", "subagent.stop", "error", "turn.post_turn", "session.end":
			continue // this turn does not fire the phase, or fires it only after its end
		}
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := newRich(t, func(o *belay.Options) {
					o.Hooks = append(o.Hooks, p.on("abort", func(context.Context, any) (any, error) { cancel(); return nil, nil }, nil))
				})
				turn, err := r.session.Turn(ctx, richWork)
				if turn.Reason != belay.EndAborted || !errors.Is(err, context.Canceled) {
					t.Errorf("the turn is %+v, %v", turn, err)
				}
				want := []string{"1 aborted"}
				if p.Name() == "session.start" {
					want = nil // no turn had begun yet
				}
				if got := r.phases.ends(); !slices.Equal(got, want) {
					t.Errorf("turn.post_turn got %v", got)
				}
				r.sound(t)
				r.goesOn(t)
			})
		})
	}
}

// If a turn is aborted, it cancels its running tools, and their results say that they
// were aborted. The turn waits for a tool that must finish.
//
// SPEC T-10
func TestAbortWhileToolsRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := newRich(t, func(o *belay.Options) {
			o.Tools = append(o.Tools[2:],
				anyTool("read", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
					<-ctx.Done()
					return belay.Result{}, ctx.Err()
				}, nil),
				anyTool("write", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
					time.Sleep(time.Minute)
					cancel()
					time.Sleep(time.Minute)
					return belay.Result{Text: "written"}, ctx.Err()
				}, &belay.ToolTraits{MustFinish: true}))
		})
		turn, err := r.session.Turn(ctx, richWork)
		if turn.Reason != belay.EndAborted || !errors.Is(err, context.Canceled) {
			t.Errorf("the turn is %+v, %v", turn, err)
		}
		results := storedResults(t, r.session)
		if got := results[0]; got.Class != belay.ClassAborted {
			t.Errorf("the cancelled tool answered %+v", got)
		}
		if got := results[2]; got.IsError || got.Text != "written" {
			t.Errorf("the tool that must finish answered %+v", got)
		}
		if n := r.phases.count(belay.ToolPost.Name()); n != 3 {
			t.Errorf("tool.post fired %d times, want once for each tool that was started", n)
		}
		r.goesOn(t)
	})
}

// The phases that end a turn have their own time limit. If a hook never answers, an aborted
// turn still ends, and the session can still be closed and released.
//
// SPEC L-03
func TestEndPhasesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const bound = 3 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := newRich(t, func(o *belay.Options) {
			o.Limits.End = bound
			o.Store = &strictRelease{o.Store.(*memstore.Store)}
		})
		lease, err := r.agent.Hooks().Install(
			belay.TurnPostTurn.On("hangs", hooktest.Hangs[belay.TurnEnded, belay.Note](), nil),
			belay.SessionEnd.On("hangs", hooktest.Hangs[belay.SessionClosed, belay.Note](), nil))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for event := range r.session.Run(ctx, richWork) {
			if event.Kind == belay.EventTextDelta {
				break
			}
		}
		if took := time.Since(start); took != bound {
			t.Errorf("leaving took %s, want %s", took, bound)
		}
		if got := r.phases.ends(); !slices.Equal(got, []string{"1 aborted"}) {
			t.Errorf("turn.post_turn got %v", got)
		}
		start = time.Now()
		if err := r.session.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v, want it to say that time was over", err)
		}
		if took := time.Since(start); took != bound {
			t.Errorf("closing took %s, want %s", took, bound)
		}
		if err := lease.Close(); err != nil {
			t.Fatal(err)
		}
		r.session = r.agent.Session("s")
		r.goesOn(t)
		if n := len(r.runsOf(t, "hangs")); n != 2 {
			t.Errorf("the journal tells of %d runs, want 2", n)
		}
	})
}

// strictRelease is a store that does not release a session if the context is done.
type strictRelease struct{ *memstore.Store }

func (s *strictRelease) Release(ctx context.Context, session string, epoch int64) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.Store.Release(ctx, session, epoch)
}
