package belay

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// exchange is one request to a model, and what has come of it so far. It holds the
// request itself, so that both take one allocation.
type exchange struct {
	Request
	ctx  idleContext
	turn *turn

	mu       sync.Mutex // held while a chunk is taken
	over     bool       // the exchange is abandoned: nobody listens
	last     time.Time  // when something came; zero if nothing did
	response *Response
	err      error
	returned bool // the sequence came to its end
	sudden   any  // what it panicked with
}

// stream sends a request and passes on what comes of it as it comes. See outcome for what
// it returns.
func (t *turn) stream(model *namedModel, x *exchange) (*Response, error) {
	x.turn = t
	x.ctx.bind(t.ctx, t.agent.opts.Limits.Idle, x)
	defer x.ctx.end()
	began := time.Now()
	if model.isQuick() {
		t.current = x
		if t.hearing == nil {
			t.hearing = func(chunk Chunk, err error) bool { return t.current.hear(chunk, err) }
		}
		model.Stream(&x.ctx, &x.Request)(t.hearing)
	} else if !x.guarded(model, t.agent.opts.Limits.Grace) {
		t.agent.opts.Logger.WarnContext(t.base, "a model's stream does not end when its context does: it is left behind", "session", t.scope.Session, "turn", t.scope.Turn, "model", model.info.Name)
	}
	model.took(time.Since(began))
	return x.outcome(model)
}

// outcome returns what came of the request. A response that comes with an error was paid
// for and cannot be used.
func (x *exchange) outcome(model *namedModel) (*Response, error) {
	x.mu.Lock() // a stream that was left behind may still be here
	response, err := x.response, x.err
	x.mu.Unlock()
	if response != nil {
		response.Usage.Cost = costOf(response.Usage, model.info.Price)
	}
	if err := context.Cause(x.turn.ctx); err != nil {
		return response, err
	}
	switch {
	case err == nil && response != nil:
	case errors.Is(x.ctx.cause(), errSilent):
		err := fmt.Errorf("it sent nothing for %s", x.ctx.idle)
		return response, &ModelError{Kind: ModelNetwork, Model: model.info.Name, Err: err}
	case err != nil:
		return response, classified(model, err)
	}
	if response == nil || len(response.Parts) == 0 && response.StopReason != StopRefusal {
		return response, &ModelError{Kind: ModelEmpty, Model: model.info.Name, Err: errors.New("it answered nothing")}
	}
	return response, nil
}

// classified makes sure that a failed attempt has a kind. One that nobody
// classified is not tried again.
func classified(model *namedModel, err error) error {
	if _, ok := errors.AsType[*ModelError](err); ok {
		return err
	}
	return &ModelError{Kind: ModelInvalid, Model: model.info.Name, Err: err}
}

// hear takes a chunk, and reports whether to continue.
func (x *exchange) hear(chunk Chunk, err error) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.over:
		return false
	case err != nil:
		x.err = err
	case chunk.Response != nil:
		x.response = chunk.Response
	case chunk.Text != "":
		x.turn.emit(Event{Kind: EventTextDelta, Text: chunk.Text})
	case chunk.Thinking != "":
		x.turn.emit(Event{Kind: EventThinkingDelta, Text: chunk.Thinking})
	}
	if x.ctx.isMade() { // else nothing measures the time
		x.last = time.Now()
	}
	return err == nil
}

// silent returns how long the model has sent nothing, at least: since is how long ago
// that was last asked. While somebody takes a chunk it is not the model that is slow.
func (x *exchange) silent(since time.Duration) time.Duration {
	if !x.mu.TryLock() {
		return 0
	}
	defer x.mu.Unlock()
	if x.last.IsZero() {
		return since
	}
	return time.Since(x.last)
}

// guarded reads the sequence on a goroutine of its own, which is left behind if it does
// not end a while after its context: then guarded returns false.
func (x *exchange) guarded(model Model, grace time.Duration) bool {
	done := make(chan struct{})
	go func() { // ends with the sequence
		defer close(done)
		defer func() {
			if !x.returned {
				x.sudden = recover()
			}
		}()
		model.Stream(&x.ctx, &x.Request)(x.hear)
		x.returned = true
	}()
	select {
	case <-done:
	case <-x.ctx.Done():
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case <-done:
		case <-late.C:
			x.mu.Lock()
			x.over = true
			x.mu.Unlock()
			return false
		}
	}
	switch {
	case x.returned:
	case x.sudden != nil:
		panic(x.sudden) // as if it had run here
	default:
		runtime.Goexit()
	}
	return true
}

// Streams of a model run on the turn's own goroutine once the model has answered
// quickCalls times in a row within quickAnswer. Such a model runs in this process, and a
// goroutine for each stream made a turn with it take about a third more processor time when
// this was measured. With a model that takes longer, the goroutine is lost in the noise.
const (
	quickCalls  = 8
	quickAnswer = time.Millisecond
)

// isQuick reports whether the model answers so fast that its streams need no goroutine.
func (n *namedModel) isQuick() bool { return n.quick.Load() >= quickCalls }

// took notes how long a stream of the model took.
func (n *namedModel) took(d time.Duration) {
	switch quick := n.quick.Load(); {
	case d > quickAnswer:
		n.quick.Store(0)
	case quick < quickCalls:
		n.quick.Add(1)
	}
}

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
