package belay

import (
	"context"
	"sync/atomic"
	"time"
)

// boundContext is a context that ends at a deadline, or when end is called. Its timer and
// its channel are made on first use: most tools and handlers return without using them, and
// context.WithTimeout would be a large part of the cost of calling them.
type boundContext struct {
	context.Context //nolint:containedctx // the parent, as in every context
	deadline        time.Time
	made            atomic.Pointer[madeContext]
	ended           atomic.Bool
}

// madeContext is the real context that a boundContext makes on first use.
type madeContext struct {
	context.Context //nolint:containedctx // it stands for the one that has it
	cancel          context.CancelFunc
}

// bind sets the context's parent and its time limit.
func (c *boundContext) bind(parent context.Context, bound time.Duration) {
	c.Context, c.deadline = parent, time.Now().Add(bound)
}

// end ends the context. It is called once, when the context is not used any more.
func (c *boundContext) end() {
	c.ended.Store(true)
	if made := c.made.Load(); made != nil {
		made.cancel()
	}
}

// Deadline returns the parent's deadline, or the context's own if that is earlier.
func (c *boundContext) Deadline() (time.Time, bool) {
	if earlier, ok := c.Context.Deadline(); ok && earlier.Before(c.deadline) {
		return earlier, true
	}
	return c.deadline, true
}

// Done makes the channel on first use.
func (c *boundContext) Done() <-chan struct{} {
	made := c.made.Load()
	if made == nil {
		made = new(madeContext)
		made.Context, made.cancel = context.WithDeadline(c.Context, c.deadline)
		if !c.made.CompareAndSwap(nil, made) {
			made.cancel()
			made = c.made.Load()
		}
		if c.ended.Load() { // otherwise end would have seen it
			made.cancel()
		}
	}
	return made.Done()
}

// Err compares the time itself if the channel was not made.
func (c *boundContext) Err() error {
	if made := c.made.Load(); made != nil {
		return made.Err()
	}
	switch err := c.Context.Err(); {
	case err != nil:
		return err
	case c.ended.Load():
		return context.Canceled
	case !time.Now().Before(c.deadline):
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value lets derived contexts find the real context.
func (c *boundContext) Value(key any) any {
	if made := c.made.Load(); made != nil {
		return made.Value(key)
	}
	return c.Context.Value(key)
}
