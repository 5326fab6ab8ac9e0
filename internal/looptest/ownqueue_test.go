package looptest_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
)

// An agent without a store performs background work itself. No caller needs to call Work.
func TestBackgroundWorkOfAnAgentWithoutAStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var learned atomic.Int32
		agent, err := belay.New(belaytest.Script(belaytest.Says("hi"), belaytest.Says("bye")), &belay.Options{Hooks: []hook.Subscription{
			belay.TurnPostTurn.On("learn", func(context.Context, belay.TurnEnded) (belay.Note, error) {
				time.Sleep(time.Second)
				learned.Add(1)
				return belay.Note{}, nil
			}, &hook.Options{Execution: hook.Background}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"hello", "good bye"} {
			if _, err := agent.Session("s").Turn(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		time.Sleep(1500 * time.Millisecond)
		if got := learned.Load(); got != 1 {
			t.Errorf("%d jobs were performed before the agent was closed, want 1", got)
		}
		if err := agent.Close(t.Context()); err != nil || learned.Load() != 2 {
			t.Errorf("after Close %d jobs were performed, %v", learned.Load(), err)
		}
	})
}

// If a job does not end, Close does not wait forever.
func TestCloseDoesNotWaitForEndlessWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		agent, err := belay.New(belaytest.Script(belaytest.Says("hi")), &belay.Options{Hooks: []hook.Subscription{
			belay.TurnPostTurn.On("learn", func(ctx context.Context, _ belay.TurnEnded) (belay.Note, error) {
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return belay.Note{}, context.Cause(ctx)
			}, &hook.Options{Execution: hook.Background}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := agent.Session("s").Turn(t.Context(), "hello"); err != nil {
			t.Fatal(err)
		}
		if err := agent.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "Limits.End") {
			t.Errorf("err = %v, want one that names the limit", err)
		}
		<-ended
	})
}
