package looptest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
)

type contextKey struct{}

// A boundContext behaves like a normal context. It ends at the tool's timeout, when the
// turn is aborted, and when the tool returns. All its methods agree about this.
//
// SPEC T-08
func TestToolContextIsAWholeContext(t *testing.T) {
	t.Parallel()
	reached := errors.New("the turn's own bound")
	for _, test := range []struct {
		rule string
		// run is the tool. It returns what went wrong, or "".
		run func(ctx context.Context) string
		// bound is the timeout of the turn's context; 0: none.
		bound time.Duration
	}{
		{"it can be polled until its bound", func(ctx context.Context) string {
			for polls := 0; ; polls++ {
				if err := ctx.Err(); err != nil {
					if polls != 60 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
						return "it ended early, late, or in another way: " + err.Error()
					}
					return ""
				}
				time.Sleep(time.Second)
			}
		}, 0},
		{"its children end with it", func(ctx context.Context) string {
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			select {
			case <-child.Done():
			case <-time.After(2 * time.Minute):
				return "the child did not end"
			}
			if !errors.Is(child.Err(), context.DeadlineExceeded) || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return "they ended in another way"
			}
			return ""
		}, 0},
		{"it tells its deadline", func(ctx context.Context) string {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != time.Minute {
				return "it does not"
			}
			return ""
		}, 0},
		{"it tells the turn's deadline if that is earlier, and why it ended", func(ctx context.Context) string {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != time.Second {
				return "it tells another"
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), reached) {
				return "it ended because of " + context.Cause(ctx).Error()
			}
			return ""
		}, time.Second},
		{"the turn's end can be polled too", func(ctx context.Context) string {
			for ctx.Err() == nil {
				time.Sleep(100 * time.Millisecond)
			}
			if !errors.Is(context.Cause(ctx), reached) {
				return "it ended because of " + context.Cause(ctx).Error()
			}
			return ""
		}, time.Second},
		{"it has the values of the turn's", func(ctx context.Context) string {
			before := ctx.Value(contextKey{})
			ctx.Done()
			if before != "here" || ctx.Value(contextKey{}) != "here" {
				return "it does not"
			}
			return ""
		}, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := context.WithValue(t.Context(), contextKey{}, "here")
				if test.bound > 0 {
					bounded, cancel := context.WithTimeoutCause(ctx, test.bound, reached)
					defer cancel()
					ctx = bounded
				}
				var kept, asked context.Context
				wrong := "the tool was not called"
				tool := anyTool("look", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
					kept, wrong = ctx, test.run(ctx) //nolint:fatcontext // it is looked at when it is over
					asked = context.WithValue(ctx, contextKey{}, "asked")
					return belay.Result{Text: "looked"}, nil
				}, &belay.ToolTraits{Timeout: time.Minute})
				agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}}, calls("look"))
				_, _ = agent.Session("s").Turn(ctx, "go")
				if wrong != "" {
					t.Error(wrong)
				}
				if kept.Err() == nil || asked.Err() == nil {
					t.Error("the context goes on when the tool has returned")
				}
				select {
				case <-kept.Done():
				default:
					t.Error("the context's channel is open when the tool has returned")
				}
			})
		})
	}
}

// A context whose Done channel was never used also ends when the tool returns.
//
// SPEC T-08
func TestToolContextEndsUnasked(t *testing.T) {
	t.Parallel()
	var kept context.Context
	tool := anyTool("keep", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
		kept = ctx //nolint:fatcontext // it is looked at when it is over
		return belay.Result{Text: "kept"}, nil
	}, nil)
	agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}}, calls("keep"))
	if _, err := agent.Session("s").Turn(context.Background(), "go"); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(kept.Err(), context.Canceled) {
		t.Errorf("the context ended with %v, not as cancelled", kept.Err())
	}
	select {
	case <-kept.Done():
	default:
		t.Error("its channel is open")
	}
}
