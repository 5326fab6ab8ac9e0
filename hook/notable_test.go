package hook_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// Only a run that did something is notable, until it is taken.
func TestNotable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler hook.Handler[call, verdict]
		limit   time.Duration
		want    bool
	}{
		"a run without an answer":       {says(verdict{}), time.Hour, false},
		"a run that took long enough":   {says(verdict{}), 0, true},
		"a run with an answer":          {says(deny("no")), time.Hour, true},
		"a run that failed":             {func(context.Context, call) (verdict, error) { return verdict{}, errors.New("broken") }, time.Hour, true},
		"a run that ended with a panic": {func(context.Context, call) (verdict, error) { panic("broken") }, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshot(t, newRuntime(t, nil, gatePhase.On("a", test.handler, nil)))
			equal(t, "before it runs", s.Notable(test.limit), false)
			_, _ = gatePhase.Dispatch(context.Background(), s, write)
			equal(t, "after it has run", s.Notable(test.limit), test.want)
			s.Take()
			equal(t, "after it was taken", s.Notable(test.limit), false)
		})
	}
}
