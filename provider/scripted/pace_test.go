package scripted_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/provider/scripted"
)

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

func isDeadline(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v, want context.DeadlineExceeded", err)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule        string
		step, model scripted.Pace
		want        time.Duration
	}{
		{"without a pace all comes at once", scripted.Pace{}, scripted.Pace{}, 0},
		{"the delay passes once and the pause between three chunks twice", scripted.Pace{Delay: time.Minute, Pause: time.Second}, scripted.Pace{}, time.Minute + 2*time.Second},
		{"a step takes from the model what it leaves out", scripted.Pace{Pause: time.Second}, scripted.Pace{Delay: time.Hour, Pause: time.Minute}, time.Hour + 2*time.Second},
		{"a whole response has nothing to pause between", scripted.Pace{Pause: time.Second, Chunk: scripted.Whole}, scripted.Pace{}, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				answer(t, scripted.New([]scripted.Step{{Text: "one two three", Pace: test.step}}, &scripted.Options{Pace: test.model}), ask())
				if got := time.Since(start); got != test.want {
					t.Errorf("the response took %s, want %s", got, test.want)
				}
			})
		})
	}
}

func TestPaceEndsWhenCancelled(t *testing.T) {
	t.Parallel()
	for rule, pace := range map[string]scripted.Pace{
		"in the delay": {Delay: time.Hour},
		"in a pause":   {Pause: time.Hour},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := contextFor(t, time.Second)
				defer cancel()
				start := time.Now()
				h := listen(ctx, scripted.New([]scripted.Step{{Text: "one two", Pace: pace}}, nil), ask())
				isDeadline(t, h.err)
				if got := time.Since(start); got != time.Second {
					t.Errorf("the stream ended after %s, want a second", got)
				}
			})
		})
	}
}

func TestCancelledContextTakesNoStep(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	model := scripted.New(says("a"), nil)
	if h := listen(ctx, model, ask()); !errors.Is(h.err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", h.err)
	}
	if got := model.Left(); got != 1 {
		t.Errorf("%d steps are left, want 1", got)
	}
}

func TestCancelBetweenChunks(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	chunks := 0
	for _, err := range scripted.New([]scripted.Step{{Text: "one two three"}}, nil).Stream(ctx, ask()) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want context.Canceled", err)
			}
			break
		}
		chunks++
		cancel()
	}
	cancel()
	if chunks != 1 {
		t.Errorf("%d chunks came after the cancellation, want none", chunks-1)
	}
}

func TestLeavingTheSequenceEndsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for range scripted.New([]scripted.Step{{Text: "one two", Pace: scripted.Pace{Pause: time.Hour}}}, nil).Stream(t.Context(), ask()) {
			break
		}
		if got := time.Since(start); got != 0 {
			t.Errorf("leaving took %s, want no time", got)
		}
	})
}
