package hook

import (
	"context"
	"sync"
	"time"
)

// runContext is the context of a handler on its own goroutine. It makes a full context,
// with a channel and an entry in its parent, only when the handler needs one. Most handlers
// never do.
//
// context.Cause returns why the run was abandoned.
type runContext struct {
	parent   context.Context //nolint:containedctx // it is a context
	rt       *Runtime
	deadline int64 // by rt.now; 0 for none

	mu   sync.Mutex
	over *contextEnd  // nil until the context ends
	full *fullContext // nil until it is needed
}

// contextEnd says that a context has ended, and why.
type contextEnd struct{ err, cause error }

// returned is the usual end of the context: the handler has returned.
var returned = &contextEnd{err: context.Canceled}

type fullContext struct {
	context.Context //nolint:containedctx // see above
	cancel          context.CancelCauseFunc
}

// Deadline returns the earlier of the run's own deadline and the parent's.
func (c *runContext) Deadline() (time.Time, bool) {
	outer, has := c.parent.Deadline()
	if c.deadline == 0 {
		return outer, has
	}
	own := c.rt.base.Add(time.Duration(c.deadline))
	if has && outer.Before(own) {
		return outer, true
	}
	return own, true
}

// Done returns a channel that is closed when the context ends.
func (c *runContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.real().Done()
}

// Err returns an error if the run was abandoned, has ended, or if the parent was cancelled.
func (c *runContext) Err() error {
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	if over != nil {
		return over.err
	}
	return c.parent.Err()
}

// Value returns the value of a key. The context package also calls Value, to find causes
// and children. So if there is a full context, Value asks that one.
func (c *runContext) Value(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full != nil || c.over != nil {
		return c.real().Value(key)
	}
	return c.parent.Value(key)
}

// real returns the full context. The caller holds c.mu.
func (c *runContext) real() context.Context {
	if c.full == nil {
		ctx, cancel := context.WithCancelCause(c.parent)
		c.full = &fullContext{ctx, cancel}
		if c.over != nil {
			cancel(c.over.cause)
		}
	}
	return c.full.Context
}

// cancel ends the context. Only the first call has an effect. cause is nil if the handler
// returned.
func (c *runContext) cancel(cause error) {
	end := returned
	if cause != nil {
		end = &contextEnd{context.Canceled, cause}
		if _, ok := cause.(*timeoutError); ok { //nolint:errorlint // it is made here
			end.err = context.DeadlineExceeded
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		return
	}
	c.over = end
	if c.full != nil {
		c.full.cancel(end.cause)
	}
}

// why returns the cause, or nil.
func (c *runContext) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		return nil
	}
	return c.over.cause
}
