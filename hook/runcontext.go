package hook

import (
	"context"
	"sync"
	"time"
)

// runContext is the context of a handler on its own goroutine. It becomes a full context,
// with a channel and a place among its parent's children, only when the handler uses that.
// Most handlers never do.
//
// Its cause, see context.Cause, says why the run was abandoned.
type runContext struct {
	parent   context.Context //nolint:containedctx // it is a context
	rt       *Runtime
	deadline int64 // by rt.now; 0 for none

	mu   sync.Mutex
	over *contextEnd  // nil until it ends
	full *fullContext // nil until it is needed
}

// contextEnd says that a context has ended, and why.
type contextEnd struct{ err, cause error }

// returned is the usual end: the handler has returned.
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

// Done returns a channel that is closed when the run is abandoned.
func (c *runContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.real().Done()
}

// Err reports whether the run was abandoned.
func (c *runContext) Err() error {
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	if over != nil {
		return over.err
	}
	return c.parent.Err()
}

// Value returns a value. The context package finds causes and children this way, so the
// full context must answer if there is one.
func (c *runContext) Value(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full != nil || c.over != nil {
		return c.real().Value(key)
	}
	return c.parent.Value(key)
}

// real returns the full context. c.mu is held.
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

// cancel ends the context. Only the first call counts. A run that was not abandoned has no
// cause.
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

// why returns the cause.
func (c *runContext) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		return nil
	}
	return c.over.cause
}
