package belay

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// errSilent is the cancel cause when the model sends nothing for too long.
var errSilent = errors.New("the model sends nothing")

// idleContext is the context of a stream. It ends with its parent, or when the model sends
// nothing for too long. It makes its timer and its channel on first use. A model that never
// asks for the channel could not be cancelled anyway.
type idleContext struct {
	context.Context //nolint:containedctx // the parent, as in every context
	idle            time.Duration
	of              *exchange
	made            atomic.Pointer[madeIdle]
	ended           atomic.Bool
}

// madeIdle is the real context that an idleContext makes on first use.
type madeIdle struct {
	context.Context //nolint:containedctx // it stands for the one that has it
	cancel          context.CancelCauseFunc
	timer           *time.Timer
}

// bind sets the parent, the maximum time without data, and the exchange.
func (c *idleContext) bind(parent context.Context, idle time.Duration, of *exchange) {
	c.Context, c.idle, c.of = parent, idle, of
}

func (c *idleContext) isMade() bool { return c.made.Load() != nil }

// make makes the channel and the timer on first use.
func (c *idleContext) make() *madeIdle {
	if made := c.made.Load(); made != nil {
		return made
	}
	made := new(madeIdle)
	made.Context, made.cancel = context.WithCancelCause(c.Context)
	armed := make(chan struct{})
	made.timer = time.AfterFunc(c.idle, func() {
		<-armed
		c.check(made)
	})
	close(armed)
	if !c.made.CompareAndSwap(nil, made) {
		made.end()
		return c.made.Load()
	}
	if c.ended.Load() { // end ran before the channel was made
		made.end()
	}
	return made
}

// check ends the context if the model has sent nothing for too long. Otherwise it checks
// again later.
func (c *idleContext) check(made *madeIdle) {
	if left := c.idle - c.of.silent(c.idle); left > 0 {
		made.timer.Reset(left)
		return
	}
	made.cancel(errSilent)
}

func (m *madeIdle) end() {
	m.timer.Stop()
	m.cancel(nil)
}

// end ends the context. It must be called once, when nobody uses the context any more.
func (c *idleContext) end() {
	c.ended.Store(true)
	if made := c.made.Load(); made != nil {
		made.end()
	}
}

// cause returns why the context has ended. It returns nil if the context has not ended.
func (c *idleContext) cause() error {
	if made := c.made.Load(); made != nil {
		return context.Cause(made)
	}
	return nil
}

// Done returns the channel. The first call makes it.
func (c *idleContext) Done() <-chan struct{} { return c.make().Done() }

// Err returns nil until the channel is closed.
func (c *idleContext) Err() error { return c.make().Err() }

// Value returns a value of the real context, if there is one. So derived contexts find the
// real context.
func (c *idleContext) Value(key any) any {
	if made := c.made.Load(); made != nil {
		return made.Value(key)
	}
	return c.Context.Value(key)
}
