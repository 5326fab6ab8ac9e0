package belay

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// exchange is one request to a model, with everything that was received so far. The request
// is embedded, so that both need one allocation.
type exchange struct {
	Request
	ctx     idleContext
	turn    *turn
	model   Model
	attempt int // of the step; 0 for a request that is not a step's

	mu       sync.Mutex // held while a chunk is handled
	over     bool       // the turn has stopped waiting for the stream
	last     time.Time  // when the last chunk was received; zero: none yet
	response *Response
	err      error
	returned bool // the sequence has ended
	sudden   any  // the value of a panic
}

// stream sends a request and emits the deltas of the response as they arrive. See outcome
// for the results.
func (t *turn) stream(model *namedModel, x *exchange) (*Response, error) {
	if t.spans.followers == nil {
		return t.send(t.ctx, model, x)
	}
	s := newSpan(Span{Kind: SpanModel, Name: model.info.Name, Attempt: x.attempt, Request: &x.Request})
	ctx := t.beginSpan(t.ctx, s)
	response, err := t.send(ctx, model, x)
	s.Response, s.Err = response, err
	t.endSpan(ctx, s)
	s.free()
	return response, err
}

func (t *turn) send(ctx context.Context, model *namedModel, x *exchange) (*Response, error) {
	x.turn, x.model = t, model
	x.ctx.bind(ctx, t.agent.opts.Limits.Idle, x)
	defer x.ctx.end()
	if !x.guarded() {
		t.agent.opts.Logger.WarnContext(t.base, "the stream of a model ignored its cancelled context; Belay no longer waits for it", "session", t.scope.Session, "turn", t.scope.Turn, "model", model.info.Name)
	}
	return x.outcome(model)
}

// outcome returns the result of the request. If it returns both a response and an error,
// the response cannot be used, but its cost must be counted.
func (x *exchange) outcome(model *namedModel) (*Response, error) {
	x.mu.Lock() // an abandoned stream may still be running
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
		err := fmt.Errorf("the model sent nothing for %s", x.ctx.idle)
		return response, &ModelError{Kind: ModelNetwork, Model: model.info.Name, Err: err}
	case err != nil:
		return response, classified(model, err)
	}
	if response == nil || len(response.Parts) == 0 && response.StopReason != StopRefusal {
		return response, &ModelError{Kind: ModelEmpty, Model: model.info.Name, Err: errors.New("the response is empty")}
	}
	return response, nil
}

// classified makes sure that a failed attempt has a kind. An error without a kind gets
// the kind ModelInvalid, which Belay does not retry.
func classified(model *namedModel, err error) error {
	if _, ok := errors.AsType[*ModelError](err); ok {
		return err
	}
	return &ModelError{Kind: ModelInvalid, Model: model.info.Name, Err: err}
}

// receive handles a chunk. It reports whether the stream should continue.
func (x *exchange) receive(chunk Chunk, err error) bool {
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
	if x.ctx.isMade() { // otherwise no timer reads x.last
		x.last = time.Now()
	}
	return err == nil
}

// silent returns for how long the model has sent nothing. If no chunk has arrived yet, it
// returns since, the time since the last check. It returns 0 while a chunk is being
// handled, because then the turn is slow and not the model.
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

// guarded reads the sequence on the goroutine of a helper. If the sequence does not end soon
// after its context, guarded stops waiting for it and returns false.
func (x *exchange) guarded() bool {
	session, grace := x.turn.session, x.turn.agent.opts.Limits.Grace
	h := session.newHelper()
	if !h.start(x) && !h.waitFor(x.ctx.Done(), never, grace) {
		h.abandon()
		x.mu.Lock()
		x.over = true
		x.mu.Unlock()
		return false
	}
	session.freeHelper(h)
	switch {
	case x.returned:
	case x.sudden != nil:
		panic(x.sudden) // panic on the turn's goroutine instead
	default:
		runtime.Goexit()
	}
	return true
}

// do reads the sequence.
func (x *exchange) do() {
	defer func() {
		if !x.returned {
			x.sudden = recover()
		}
	}()
	x.model.Stream(&x.ctx, &x.Request)(x.receive)
	x.returned = true
}
