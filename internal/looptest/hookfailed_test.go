package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// At every phase, each failure of a hook is reported once: in a turn by an event, outside
// of a turn by RuntimeOptions.Failed.
//
// SPEC C-13
func TestAFailedHookIsShownAtEveryPhase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		shown := make(map[string]int)
		r := newRich(t, func(o *belay.Options) {
			for _, p := range everyPhase() {
				o.Hooks = append(o.Hooks, p.on("fails", func(context.Context, any) (any, error) {
					return nil, &hook.SafeError{Message: "exit code 1", Err: errors.New("what it said")}
				}, &hook.Options{Failure: hook.Open}))
			}
			o.Runtime = &hook.RuntimeOptions{Failed: func(scope hook.Scope, p hook.Problem) {
				mu.Lock()
				defer mu.Unlock()
				shown[p.Phase]++
				if scope.Session != "s" || p.Subscription != "fails" || p.Phase != belay.SessionEnd.Name() {
					t.Errorf("unexpected call of Failed: %+v in %+v", p, scope)
				}
			}}
		})
		for _, text := range []string{richWork, richFail} {
			for _, e := range take(r.session.Run(t.Context(), text)).events {
				if e.Kind != belay.EventHookFailed {
					continue
				}
				shown[e.Diagnostic.Phase]++
				if e.By != "fails" || e.Text != "what it said" || e.Diagnostic.Message != "exit code 1" || e.Diagnostic.Code != codes.Error {
					t.Errorf("the event is %+v of %+v", e, e.Diagnostic)
				}
			}
		}
		if err := r.session.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, p := range belay.Phases() {
			if n := r.phases.count(p.Name()); shown[p.Name()] != n {
				t.Errorf("%s fired %d times, and %d failures are shown", p.Name(), n, shown[p.Name()])
			}
		}
	})
}

// The event of a failure has the end of the hook's output. It leaves out the text that is
// already in the diagnostic.
//
// SPEC C-13
func TestWhatIsShownOfAFailedHook(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 2000) + "the end"
	for _, test := range []struct {
		rule          string
		fails         func() error
		message, want string
	}{
		{"what it said", func() error { return &hook.SafeError{Message: "exit code 1", Err: errors.New("a\nb")} }, "exit code 1", "a\nb"},
		{"nothing, if it said nothing", func() error { return &hook.SafeError{Message: "exit code 1"} }, "exit code 1", ""},
		{"the error of a handler in Go", func() error { return errors.New("no route") }, "", "no route"},
		{"the end of a long text, in whole characters", func() error { return errors.New(long) }, "", long[len(long)-2047:]},
		{"text in another encoding", func() error { return errors.New("\xff bad") }, "", "\uFFFD bad"},
		{"a panic", func() error { panic("it is broken") }, "", "the handler panicked: it is broken"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			agent, _ := newAgent(t, &belay.Options{Hooks: []hook.Subscription{
				belay.ModelPost.On("h", func(context.Context, belay.ModelResponse) (belay.Note, error) { return belay.Note{}, test.fails() }, nil),
			}})
			var got []string
			for _, e := range takeTurn(t, agent.Session("s").Run(t.Context(), "a"), belay.EndTurn).events {
				if e.Kind == belay.EventHookFailed {
					got = append(got, fmt.Sprintf("%s at %s: %s: %s", e.By, e.Diagnostic.Phase, e.Diagnostic.Message, e.Text))
				}
			}
			wantEqual(t, "what is shown", got, []string{fmt.Sprintf("h at model.post: %s: %s", test.message, test.want)})
		})
	}
}

// If a hook is cancelled together with its turn, this does not count as a failure of the
// hook.
//
// SPEC C-13
func TestAnAbortIsNoFailureOfAHook(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	agent, _ := newAgent(t, &belay.Options{Hooks: []hook.Subscription{
		belay.ModelPre.On("h", func(ctx context.Context, _ belay.ModelRequest) (belay.Aside, error) {
			cancel()
			<-ctx.Done()
			return belay.Aside{}, context.Cause(ctx)
		}, &hook.Options{Execution: hook.Deadline, Timeout: time.Minute}),
	}})
	for _, e := range take(agent.Session("s").Run(ctx, "a")).events {
		if e.Kind == belay.EventHookFailed {
			t.Errorf("there is a failure: %+v", e.Diagnostic)
		}
	}
}
