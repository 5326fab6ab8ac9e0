package belay

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// errSilent is the cause when the model sends nothing for too long.
var errSilent = errors.New("the model sends nothing")

// idleContext is the context of a stream. It ends with its parent, and when the model is
// silent for too long. Its timer and its channel are made on first use: a model that does
// not use them cannot be cancelled anyway.
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

// bind sets the context's parent, the maximum silence, and the exchange.
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
	if c.ended.Load() { // otherwise end would have seen it
		made.end()
	}
	return made
}

// check ends the context if the model was silent for too long. Otherwise it checks again
// later.
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

// end ends the context. It is called once, when the context is not used any more.
func (c *idleContext) end() {
	c.ended.Store(true)
	if made := c.made.Load(); made != nil {
		made.end()
	}
}

// cause returns why the context has ended, or nil.
func (c *idleContext) cause() error {
	if made := c.made.Load(); made != nil {
		return context.Cause(made)
	}
	return nil
}

// Done makes the channel on first use.
func (c *idleContext) Done() <-chan struct{} { return c.make().Done() }

// Err returns nil until the channel is closed.
func (c *idleContext) Err() error { return c.make().Err() }

// Value lets derived contexts find the real context.
func (c *idleContext) Value(key any) any {
	if made := c.made.Load(); made != nil {
		return made.Value(key)
	}
	return c.Context.Value(key)
}
