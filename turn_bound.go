package belay

import (
	"context"
	"sync/atomic"
	"time"
)

// boundContext is a context that ends at a deadline, or when end is called. It makes its
// timer and its channel on first use. Most tools and handlers return without using them,
// and context.WithTimeout would be a large part of the cost of a call.
type boundContext struct {
	context.Context //nolint:containedctx // the parent, as in every context
	deadline        time.Time
	call            *Invocation // what CallOf returns, if this is the context of a tool
	made            atomic.Pointer[madeContext]
	ended           atomic.Bool
}

// madeContext is the real context that a boundContext makes on first use.
type madeContext struct {
	context.Context //nolint:containedctx // it stands for the one that has it
	cancel          context.CancelFunc
}

// bind sets the parent and the time limit, which begins now.
func (c *boundContext) bind(parent context.Context, now time.Time, bound time.Duration) {
	c.Context, c.deadline = parent, now.Add(bound)
}

// end ends the context. It must be called once, when nobody uses the context any more.
func (c *boundContext) end() {
	c.ended.Store(true)
	if made := c.made.Load(); made != nil {
		made.cancel()
	}
}

// Deadline returns the earlier of the parent's deadline and the context's own deadline.
func (c *boundContext) Deadline() (time.Time, bool) {
	if earlier, ok := c.Context.Deadline(); ok && earlier.Before(c.deadline) {
		return earlier, true
	}
	return c.deadline, true
}

// Done returns the channel of the real context, and makes the real context if there is
// none yet.
func (c *boundContext) Done() <-chan struct{} {
	made := c.made.Load()
	if made == nil {
		made = new(madeContext)
		made.Context, made.cancel = context.WithDeadline(c.Context, c.deadline)
		if !c.made.CompareAndSwap(nil, made) {
			made.cancel()
			made = c.made.Load()
		}
		if c.ended.Load() { // end ran before the channel was made
			made.cancel()
		}
	}
	return made.Done()
}

// Err returns the error of the context. If the channel was not made yet, Err compares the
// deadline with the time.
func (c *boundContext) Err() error { return c.errAt(time.Time{}) }

// errAt is Err for a caller that has just read the clock. A zero now means that nobody has.
func (c *boundContext) errAt(now time.Time) error {
	if made := c.made.Load(); made != nil {
		return made.Err()
	}
	switch err := c.Context.Err(); {
	case err != nil:
		return err
	case c.ended.Load():
		return context.Canceled
	}
	if now.IsZero() {
		now = time.Now()
	}
	if !now.Before(c.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value returns a value of the real context, if the real context exists. The context
// package needs this to connect derived contexts with the real context.
func (c *boundContext) Value(key any) any {
	if _, ok := key.(callKey); ok && c.call != nil {
		return c.call
	}
	if made := c.made.Load(); made != nil {
		return made.Value(key)
	}
	return c.Context.Value(key)
}
