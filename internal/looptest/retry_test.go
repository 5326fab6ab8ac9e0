package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// timed returns a step that also notes when it is played.
func timed(at *[]time.Time, step scripted.Step) scripted.Step {
	return scripted.Step{Compute: func(context.Context, *belay.Request) (scripted.Step, error) {
		*at = append(*at, time.Now())
		return step, nil
	}}
}

// SPEC L-04.
func TestRetryByKind(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault scripted.Fault
		again bool
	}{
		"rate limited (429)":        {scripted.Fault{Kind: belay.ModelRateLimited, Status: 429}, true},
		"overloaded (529)":          {scripted.Fault{Kind: belay.ModelOverloaded, Status: 529}, true},
		"server error (5xx)":        {scripted.Fault{Kind: belay.ModelServer, Status: 503}, true},
		"network":                   {scripted.Fault{Kind: belay.ModelNetwork}, true},
		"a stream that is cut":      {scripted.Fault{Cut: true}, true},
		"invalid (400) is final":    {scripted.Fault{Kind: belay.ModelInvalid, Status: 400}, false},
		"credentials (401) are too": {scripted.Fault{Kind: belay.ModelAuth, Status: 401}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d logbook
				pre := belay.ModelPre.On("pre", func(_ context.Context, r belay.ModelRequest) (belay.Aside, error) {
					d.notef("attempt %d", r.Attempt())
					return belay.Aside{}, nil
				}, nil)
				model := scriptOf(scripted.Step{Fault: &test.fault}, says("one"))
				s := agentOf(t, model, &belay.Options{Hooks: []hook.Subscription{pre}}).Session("s")
				all := take(s.Run(t.Context(), "a"))
				retried := all.of(belay.EventError)
				if !test.again {
					if failure, ok := errors.AsType[*belay.ModelError](all.err); !ok || failure.Kind != test.fault.Kind || all.Reason != belay.EndError {
						t.Errorf("the turn ended %s: %v", all.Reason, all.err)
					}
					if len(retried) != 1 || retried[0].Retry {
						t.Errorf("the errors are %+v", retried)
					}
					wantEqual(t, "model.pre", d.all(), []string{"attempt 1"})
					return
				}
				if all.err != nil || all.Text != "one" || all.Steps != 1 {
					t.Errorf("the turn ended with %q after %d steps: %v", all.Text, all.Steps, all.err)
				}
				if len(retried) != 1 || !retried[0].Retry || retried[0].Text == "" || retried[0].Step != 1 {
					t.Errorf("the errors are %+v", retried)
				}
				wantEqual(t, "model.pre", d.all(), []string{"attempt 1", "attempt 2"})
			})
		})
	}
}

// New refuses a Retry that cannot work, and says what to write instead.
func TestRetryIsChecked(t *testing.T) {
	t.Parallel()
	for want, retry := range map[string]hook.Retry{
		"retry.attempts: it is negative: set 1 for no retry": {Attempts: -1},
		"retry.delay is negative":                            {Delay: -time.Second},
		"retry.cap is negative":                              {Attempts: 3, Cap: -time.Second},
		"retry.jitter: it is 2: set a value from 0 to 1":     {Jitter: 2},
	} {
		agent, err := belay.New(scriptOf(), &belay.Options{Retry: retry})
		if err == nil {
			succeeds(t, agent.Close(t.Context()))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New with %+v: %v, want %q", retry, err, want)
		}
	}
}

// SPEC L-04.
func TestRetryPauses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		retry hook.Retry
		after time.Duration // the pause that the provider asks for
		least []time.Duration
		most  []time.Duration
	}{
		"by default they double from a second, less up to half": {
			hook.Retry{},
			0,
			[]time.Duration{time.Second / 2, time.Second, 2 * time.Second, 4 * time.Second},
			[]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second},
		},
		"they are capped": {
			hook.Retry{Attempts: 4, Delay: 10 * time.Second, Exponential: true, Cap: 15 * time.Second},
			0,
			[]time.Duration{10 * time.Second, 15 * time.Second, 15 * time.Second},
			[]time.Duration{10 * time.Second, 15 * time.Second, 15 * time.Second},
		},
		"a longer Retry-After is heeded": {
			hook.Retry{Attempts: 3},
			time.Minute,
			[]time.Duration{time.Minute, time.Minute},
			[]time.Duration{time.Minute, time.Minute},
		},
		"a shorter Retry-After is no reason to hurry": {
			hook.Retry{Attempts: 3, Delay: 2 * time.Second},
			time.Second,
			[]time.Duration{2 * time.Second, 2 * time.Second},
			[]time.Duration{2 * time.Second, 2 * time.Second},
		},
		"a Retry-After of more than ten minutes is not waited for": {hook.Retry{Attempts: 3}, 10*time.Minute + 1, nil, nil},
		"one of ten minutes is": {
			hook.Retry{Attempts: 2},
			10 * time.Minute,
			[]time.Duration{10 * time.Minute},
			[]time.Duration{10 * time.Minute},
		},
		"without a number of attempts there are five": {
			hook.Retry{Delay: 2 * time.Second},
			0,
			[]time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second},
			[]time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second},
		},
		"one attempt is none again": {hook.Retry{Attempts: 1}, 0, nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var at []time.Time
				step := timed(&at, scripted.Step{Fault: &scripted.Fault{Kind: belay.ModelRateLimited, RetryAfter: test.after}})
				model := scripted.New([]scripted.Step{step}, &scripted.Options{Repeat: true})
				_, err := agentOf(t, model, &belay.Options{Retry: test.retry}).Session("s").Turn(t.Context(), "a")
				if _, ok := errors.AsType[*belay.ModelError](err); !ok {
					t.Errorf("the error is %v", err)
				}
				if n := len(test.least) + 1; len(at) != n || n > 1 && !strings.Contains(err.Error(), fmt.Sprintf("after %d attempts", n)) {
					t.Fatalf("there were %d attempts, not %d: %v", len(at), n, err)
				}
				for i, least := range test.least {
					if pause := at[i+1].Sub(at[i]); pause < least || pause > test.most[i] {
						t.Errorf("pause %d is %s, not between %s and %s", i+1, pause, least, test.most[i])
					}
				}
			})
		})
	}
}

// SPEC L-04: jitter spreads the retries of many sessions over time.
func TestRetryJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pauses := map[time.Duration]bool{}
		for i := range 20 {
			var at []time.Time
			model := scriptOf(timed(&at, scripted.Step{Fault: &scripted.Fault{}}), timed(&at, says("one")))
			say(t, agentOf(t, model, nil).Session(fmt.Sprint(i)), "a")
			pauses[at[1].Sub(at[0])] = true
		}
		if len(pauses) < 15 {
			t.Errorf("20 first pauses have %d lengths", len(pauses))
		}
	})
}

// SPEC L-04.
func TestRetryIsAborted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		model := scriptOf(scripted.Step{Fault: &scripted.Fault{RetryAfter: 5 * time.Minute}})
		turn, err := agentOf(t, model, nil).Session("s").Turn(ctx, "a")
		if !errors.Is(err, context.DeadlineExceeded) || turn.Reason != belay.EndAborted {
			t.Errorf("the turn ended %s: %v", turn.Reason, err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// strangeModel is a model whose error has no kind.
type strangeModel struct{ attempts int }

func (m *strangeModel) Stream(context.Context, *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		m.attempts++
		yield(belay.Chunk{}, errors.New("strange"))
	}
}

// SPEC L-04.
func TestUnclassifiedErrorsAreFinal(t *testing.T) {
	t.Parallel()
	model := &strangeModel{}
	_, err := agentOf(t, model, nil).Session("s").Turn(t.Context(), "a")
	if failure, ok := errors.AsType[*belay.ModelError](err); !ok || failure.Kind != belay.ModelInvalid || model.attempts != 1 {
		t.Errorf("after %d attempts: %v", model.attempts, err)
	}
}
