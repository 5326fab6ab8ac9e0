package hook

import (
	"context"
	"sync"
	"time"
)

// runContext is the context of a handler on its own goroutine. It becomes a
// full context, with a channel and a place among its parent's children, only
// when the handler asks for it; most handlers never do.
//
// Its cause, as context.Cause tells it, says why the run was given up.
type runContext struct {
	parent   context.Context //nolint:containedctx // it is a context
	rt       *Runtime        // set where there is a deadline
	deadline int64           // by rt.now; 0 for none

	mu         sync.Mutex
	full       context.Context //nolint:containedctx // see above
	cancelFull context.CancelCauseFunc
	err        error // why it is over, or nil
	cause      error
}

// Deadline returns the earlier of the run's own and the parent's.
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

// Done returns a channel that is closed when the run is given up.
func (c *runContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.real().Done()
}

// Err says whether the run was given up.
func (c *runContext) Err() error {
	c.mu.Lock()
	err := c.err
	c.mu.Unlock()
	if err == nil {
		err = c.parent.Err()
	}
	return err
}

// Value looks a value up. The context package finds causes and children this
// way, so it must be asked of the full context where there is one.
func (c *runContext) Value(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full != nil || c.err != nil {
		return c.real().Value(key)
	}
	return c.parent.Value(key)
}

// real returns the full context. c.mu is held.
func (c *runContext) real() context.Context {
	if c.full == nil {
		c.full, c.cancelFull = context.WithCancelCause(c.parent)
		if c.err != nil {
			c.cancelFull(c.cause)
		}
	}
	return c.full
}

// cancel ends the context; the first cause stands.
func (c *runContext) cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err, c.cause = context.Canceled, cause
	if _, ok := cause.(*TimeoutError); ok { //nolint:errorlint // it is made here
		c.err = context.DeadlineExceeded
	}
	if c.cancelFull != nil {
		c.cancelFull(cause)
	}
}

// why returns the cause.
func (c *runContext) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}
