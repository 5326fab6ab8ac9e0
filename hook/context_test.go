package hook_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/hook"
)

type key struct{}

// inHandler calls look in the handler of a subscription. Call it in a synctest bubble.
func inHandler(t *testing.T, parent context.Context, o hook.Options, look func(ctx context.Context)) { //nolint:revive // the parent is what the test is about
	t.Helper()
	rt := newRuntime(t, nil, observePhase.On("a", does[remark](func(ctx context.Context, _ call) { look(ctx) }), &o))
	_, _ = observePhase.Dispatch(parent, snapshot(t, rt), write)
}

// eachWay runs a test in a synctest bubble, once for each entry of ways.
func eachWay(t *testing.T, test func(t *testing.T, o hook.Options)) {
	t.Helper()
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) { test(t, w.opts) })
		})
	}
}

// SPEC H-11
func TestHandlerContextHasTheCallersValues(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, o hook.Options) {
		parent := context.WithValue(t.Context(), key{}, "v")
		inHandler(t, parent, o, func(ctx context.Context) {
			equal(t, "value", ctx.Value(key{}), any("v"))
			child, cancel := context.WithCancel(ctx)
			equal(t, "value of a child", child.Value(key{}), any("v"))
			cancel()
			<-ctx.Done()
			equal(t, "value when it is over", ctx.Value(key{}), any("v"))
		})
	})
}

// SPEC H-11
func TestHandlerContextKnowsItsDeadline(t *testing.T) {
	t.Parallel()
	for _, w := range ways[1:] { // The context of an inline handler has no deadline: it is cancelled after the timeout.
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				began := time.Now()
				sooner, cancelSooner := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancelSooner()
				later, cancelLater := context.WithTimeout(t.Context(), time.Hour)
				defer cancelLater()
				for _, test := range []struct {
					rule   string
					parent context.Context //nolint:containedctx // a table
					want   time.Duration
				}{
					{"its own", t.Context(), time.Second},
					{"its own, if the caller's is later", later, time.Second},
					{"the caller's, if that is sooner", sooner, 500 * time.Millisecond},
				} {
					inHandler(t, test.parent, w.opts, func(ctx context.Context) {
						at, ok := ctx.Deadline()
						if !ok || !at.Equal(began.Add(test.want)) {
							t.Errorf("%s: got %v, %t; want %s from the start", test.rule, at.Sub(began), ok, test.want)
						}
						child, cancel := context.WithTimeout(ctx, time.Hour)
						defer cancel()
						if at, _ := child.Deadline(); !at.Equal(began.Add(test.want)) {
							t.Errorf("%s: a child's deadline is %v, want %s from the start", test.rule, at.Sub(began), test.want)
						}
					})
				}
				o := w.opts
				if o.Concurrent {
					o.Timeout = 0
					inHandler(t, t.Context(), o, func(ctx context.Context) {
						if at, ok := ctx.Deadline(); ok {
							t.Errorf("without a timeout: got the deadline %v", at)
						}
					})
				}
			})
		})
	}
}

// SPEC H-11
func TestContextsDerivedFromAHandlersContextEndWithIt(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, o hook.Options) {
		var began time.Time
		var ends []time.Duration
		var causes []error
		told := make(chan struct{})
		look := func(ctx context.Context) {
			defer close(told)
			began = time.Now()
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			grandchild, cancelToo := context.WithTimeout(context.WithValue(child, key{}, 1), time.Hour)
			defer cancelToo()
			called := make(chan struct{})
			stop := context.AfterFunc(ctx, func() { close(called) })
			defer stop()
			if ctx.Err() != nil || child.Err() != nil || context.Cause(ctx) != nil {
				t.Error("it is over before it began")
			}
			for _, c := range []context.Context{grandchild, child, ctx} {
				<-c.Done()
				ends = append(ends, time.Since(began))
				causes = append(causes, context.Cause(c))
				if c.Err() == nil {
					t.Error("done without an error")
				}
			}
			<-called
			late := context.WithValue(ctx, key{}, 2) // This context is derived after the handler's context has ended.
			after, cancelAfter := context.WithCancel(late)
			defer cancelAfter()
			<-after.Done()
			causes = append(causes, context.Cause(after))
		}
		inHandler(t, t.Context(), o, look)
		<-told
		same(t, "when they ended", ends, []time.Duration{time.Second, time.Second, time.Second})
		for _, cause := range causes {
			if !errors.Is(cause, context.DeadlineExceeded) {
				t.Errorf("cause: got %v, want a timeout", cause)
			}
		}
	})
}

// The context of a handler ends when the handler returns. So work that the handler started
// with this context ends too.
//
// SPEC H-11
func TestHandlerContextEndsWithTheHandler(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, o hook.Options) {
		ended := make(chan time.Duration, 1)
		began := time.Now()
		inHandler(t, t.Context(), o, func(ctx context.Context) {
			go func() {
				<-ctx.Done()
				ended <- time.Since(began)
			}()
			synctest.Wait()
		})
		equal(t, "end", <-ended, 0)
	})
}

// The handler's context ends when the caller cancels its own context.
//
// SPEC H-11
func TestHandlerContextFollowsTheCaller(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, o hook.Options) {
		parent, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		seen := make(chan error, 1)
		inHandler(t, parent, o, func(ctx context.Context) {
			cancel(enough)
			synctest.Wait()
			if ctx.Err() == nil {
				t.Error("its context does not know of the cancel")
			}
			seen <- context.Cause(ctx)
		})
		if cause := <-seen; !errors.Is(cause, enough) {
			t.Errorf("cause: got %v, want %v", cause, enough)
		}
	})
}
