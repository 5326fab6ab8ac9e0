package belay

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// errSilent is why an exchange is cancelled in which the model sends nothing.
var errSilent = errors.New("the model sends nothing")

// idleContext is the context of a stream. It ends with its parent, and when the model is
// silent for too long. Its timer and its channel are made when somebody asks for them: a
// model that never does cannot be cancelled anyway.
type idleContext struct {
	context.Context //nolint:containedctx // the parent, as in every context
	idle            time.Duration
	of              *exchange
	made            atomic.Pointer[madeIdle]
	ended           atomic.Bool
}

// madeIdle is the context that an idleContext became.
type madeIdle struct {
	context.Context //nolint:containedctx // it stands for the one that has it
	cancel          context.CancelCauseFunc
	timer           *time.Timer
}

// bind sets the context's parent, how long the model may be silent, and its exchange.
func (c *idleContext) bind(parent context.Context, idle time.Duration, of *exchange) {
	c.Context, c.idle, c.of = parent, idle, of
}

func (c *idleContext) isMade() bool { return c.made.Load() != nil }

// make makes the channel and the timer if they are not there.
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
	if c.ended.Load() { // or end would have seen it
		made.end()
	}
	return made
}

// check ends the context if the model was silent for too long, and looks again later if
// not.
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

// end ends the context. It is called once, and nobody needs it any more.
func (c *idleContext) end() {
	c.ended.Store(true)
	if made := c.made.Load(); made != nil {
		made.end()
	}
}

// cause is why the context has ended, or nil.
func (c *idleContext) cause() error {
	if made := c.made.Load(); made != nil {
		return context.Cause(made)
	}
	return nil
}

// Done makes the channel if it must.
func (c *idleContext) Done() <-chan struct{} { return c.make().Done() }

// Err is nil until the channel is closed.
func (c *idleContext) Err() error { return c.make().Err() }

// Value lets contexts that are made of this one find what it became.
func (c *idleContext) Value(key any) any {
	if made := c.made.Load(); made != nil {
		return made.Value(key)
	}
	return c.Context.Value(key)
}
