package belay

import (
	"context"
	"sync/atomic"
	"time"
)

// boundContext is a context that ends at a deadline, or when it is told to. Its
// timer and its channel are made when somebody asks for them: most tools and
// handlers return without ever having asked, and what context.WithTimeout costs
// is a good part of what calling them costs.
type boundContext struct {
	context.Context //nolint:containedctx // the parent, as in every context
	deadline        time.Time
	made            atomic.Pointer[madeContext]
	ended           atomic.Bool
}

// madeContext is the context that a boundContext became.
type madeContext struct {
	context.Context //nolint:containedctx // it stands for the one that has it
	cancel          context.CancelFunc
}

// bind sets the context's parent and bound.
func (c *boundContext) bind(parent context.Context, bound time.Duration) {
	c.Context, c.deadline = parent, time.Now().Add(bound)
}

// end ends the context. It is called once, and nobody needs it any more.
func (c *boundContext) end() {
	c.ended.Store(true)
	if made := c.made.Load(); made != nil {
		made.cancel()
	}
}

// Deadline is the parent's, or the context's own if that is earlier.
func (c *boundContext) Deadline() (time.Time, bool) {
	if earlier, ok := c.Context.Deadline(); ok && earlier.Before(c.deadline) {
		return earlier, true
	}
	return c.deadline, true
}

// Done makes the channel if it must.
func (c *boundContext) Done() <-chan struct{} {
	made := c.made.Load()
	if made == nil {
		made = new(madeContext)
		made.Context, made.cancel = context.WithDeadline(c.Context, c.deadline)
		if !c.made.CompareAndSwap(nil, made) {
			made.cancel()
			made = c.made.Load()
		}
		if c.ended.Load() { // or end would have seen it
			made.cancel()
		}
	}
	return made.Done()
}

// Err tells the time by itself if nobody asked for the channel.
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

// Value lets contexts that are made of this one find what it became.
func (c *boundContext) Value(key any) any {
	if made := c.made.Load(); made != nil {
		return made.Value(key)
	}
	return c.Context.Value(key)
}
