package riverjobs_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/riverjobs"
)

// Tend is called before work begins and while it runs. Work stops when Closed is closed.
func TestWorkIsTended(t *testing.T) {
	t.Parallel()
	queue := newQueue(t, newDatabase(t), nil)
	enqueue(t, queue, testJob("one"))
	closed, lasts, why := make(chan struct{}), make(chan struct{}), errors.New("the owner is closed")
	var tended atomic.Int32
	performed := make(chan int32, 1) // how often Tend was called before the job
	perform := func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		performed <- tended.Load()
		return succeed(ctx, job)
	}
	var cause error
	tend := func(ctx context.Context) {
		if tended.Add(1) == 3 { // the third call happens during the work
			close(lasts)
			<-ctx.Done()
			cause = context.Cause(ctx)
		}
	}
	worked := make(chan error, 1)
	go func() {
		worked <- queue.WorkTended(t.Context(), perform, riverjobs.Tending{Tend: tend, Every: time.Millisecond, Closed: closed, Why: why})
	}()
	if <-performed == 0 {
		t.Error("a job was performed before the queue was tended")
	}
	<-lasts
	close(closed)
	if err := <-worked; err != nil {
		t.Error(err)
	}
	if !errors.Is(cause, why) {
		t.Errorf("work was stopped for %v, want %v", cause, why)
	}
}

// If Work fails, WorkTended returns, and Tend is not called again.
func TestWorkThatIsTendedFails(t *testing.T) {
	t.Parallel()
	queue := newQueue(t, newDatabase(t), nil)
	enqueue(t, queue, testJob("one"))
	err := workUntil(t, queue, succeed, func() {
		awaitIdle(t, queue)
		tending := riverjobs.Tending{Tend: func(context.Context) {}, Every: time.Hour, Closed: make(chan struct{})}
		if err := queue.WorkTended(t.Context(), succeed, tending); err == nil {
			t.Error("a second Work was accepted")
		}
	})
	if err != nil {
		t.Error(err)
	}
}
