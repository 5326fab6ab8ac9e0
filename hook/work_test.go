package hook_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// If a worker is stopped, its job is interrupted. If the job is idempotent, the next worker
// runs it again. Other jobs do not run twice.
//
// SPEC J-04, J-05
func TestWorkerToldToStop(t *testing.T) {
	t.Parallel()
	for _, idempotent := range []bool{true, false} {
		t.Run(fmt.Sprintf("idempotent %t", idempotent), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				journal := hook.NewMemoryJournal(16)
				rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal, Queue: hook.NewMemoryQueue(journal, nil)})
				started := make(chan struct{}, 2)
				install(t, rt, observePhase.On("slow", func(ctx context.Context, _ call) (remark, error) {
					started <- struct{}{}
					select {
					case <-ctx.Done():
						return remark{}, context.Cause(ctx)
					case <-time.After(time.Minute):
						return remark{}, nil
					}
				}, &hook.Options{Execution: hook.Background, Idempotent: idempotent}))
				s := rt.Snapshot()
				dispatch(t, observePhase, s, write)
				if err := s.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				worked := make(chan error, 1)
				go func() { worked <- rt.Work(ctx) }()
				<-started
				stop()
				if err := <-worked; err != nil {
					t.Fatal(err)
				}
				workAnHour(t, rt)
				want := "slow:backgrounded slow:interrupted(hook.canceled)"
				if idempotent {
					want += " slow:completed"
				}
				equal(t, "runs", brief(list(t, journal, hook.Filter{})), want)
			})
		})
	}
}

// refusingQueue rejects a number of calls of Settle, and then works.
type refusingQueue struct {
	*hook.MemoryQueue
	refusals int
	err      error
}

func (q *refusingQueue) Settle(ctx context.Context, job hook.Job, attempt hook.Run, again time.Time) error {
	if q.refusals > 0 {
		q.refusals--
		return q.err
	}
	return q.MemoryQueue.Settle(ctx, job, attempt, again)
}

// If the queue cannot be written, the worker retries until the finished work is recorded.
// If another process has settled a job, the worker continues with the next one.
//
// SPEC J-01
func TestWorkerSettlesWhenItCan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"the disk was full":               {errors.New("disk full"), "slow:backgrounded slow:completed"},
		"somebody else has settled a job": {hook.ErrNotFound, "slow:backgrounded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				journal := hook.NewMemoryJournal(16)
				queue := &refusingQueue{hook.NewMemoryQueue(journal, nil), 1, test.err}
				rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal, Queue: queue},
					observePhase.On("slow", says(remark{}), &hook.Options{Execution: hook.Background}))
				s := rt.Snapshot()
				dispatch(t, observePhase, s, write)
				if err := s.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				workAnHour(t, rt)
				equal(t, "runs", brief(list(t, journal, hook.Filter{})), test.want)
			})
		})
	}
}
