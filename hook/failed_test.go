package hook_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// The runtime calls RuntimeOptions.Failed once for each failure that no outcome reports. It
// does not call it for attempts that are retried.
//
// SPEC C-13
func TestFailuresThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	broken := errors.New("it is broken")
	retries := hook.Retry{Attempts: 3, Delay: time.Second}
	for _, test := range []struct {
		rule string
		opts hook.Options
		err  error
		want []string
	}{
		{"Failed is not called for a handler that the dispatch waits for", hook.Options{}, broken, nil},
		{"fire_and_record", hook.Options{Execution: hook.FireAndRecord}, broken, []string{"hook.error: it is broken"}},
		{"fire_and_record that succeeds", hook.Options{Execution: hook.FireAndRecord}, nil, nil},
		{"background work", hook.Options{Execution: hook.Background}, broken, []string{"hook.error: it is broken"}},
		{"background work that is tried three times", hook.Options{Execution: hook.Background, Idempotent: true, Retry: retries}, broken, []string{"hook.error: it is broken"}},
		{"background work with an error that is not retried", hook.Options{Execution: hook.Background, Idempotent: true, Retry: retries}, &hook.SafeError{Code: codes.OutputInvalid, Message: "no answer"}, []string{"hook.output_invalid: no answer"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []string
				journal := hook.NewMemoryJournal(64)
				rt := newRuntime(t, &hook.RuntimeOptions{
					Journal: journal, Queue: hook.NewMemoryQueue(journal, nil), Failed: func(scope hook.Scope, p hook.Problem) {
						mu.Lock()
						defer mu.Unlock()
						if scope != *write.scope || p.Subscription != "a" || p.Phase != observePhase.Name() {
							t.Errorf("told of %+v in %+v", p, scope)
						}
						got = append(got, fmt.Sprintf("%s: %v", p.Code, p.Err))
						panic("the host is careless")
					},
				}, observePhase.On("a", fails[remark](test.err), &test.opts))
				dispatch(t, observePhase, snapshot(t, rt), write)
				workAnHour(t, rt)
				if err := rt.Drain(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if !slices.Equal(got, test.want) {
					t.Errorf("told %q, want %q", got, test.want)
				}
			})
		})
	}
}

// Cancelled work did not fail.
func TestACancelIsNoFailure(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		began := make(chan struct{})
		journal := hook.NewMemoryJournal(64)
		rt := newRuntime(t, &hook.RuntimeOptions{
			Journal: journal, Queue: hook.NewMemoryQueue(journal, nil), Failed: func(_ hook.Scope, p hook.Problem) { t.Errorf("told of %+v", p) },
		}, observePhase.On("a", func(ctx context.Context, _ call) (remark, error) {
			close(began)
			<-ctx.Done()
			return remark{}, context.Cause(ctx)
		}, &hook.Options{Execution: hook.Background}))
		dispatch(t, observePhase, snapshot(t, rt), write)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- rt.Work(ctx) }()
		<-began
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
