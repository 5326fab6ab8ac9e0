package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"time"

	"github.com/belay-run/belay"
)

// drainTime bounds the wait for the end of a stream behind the event that says
// why the model stopped. Something may still come there, and a stream that was
// read to its end lets the connection be used again.
const drainTime = 250 * time.Millisecond

var errCut = errors.New("the stream ended before it said why the model stopped")

// Stream sends a request and yields the response as it arrives.
func (m *Model) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		attempt, cancel := m.attempt(ctx)
		defer cancel()
		to := &listener{yield: yield}
		answer, head, err := m.send(attempt, req, to)
		if err != nil {
			to.tell(belay.Chunk{}, unlessDone(ctx, err))
			return
		}
		defer func() { _ = answer.Body.Close() }()
		a := assembly{model: m.name, names: head.names}
		tell := func(c belay.Chunk) bool { return to.tell(c, nil) }
		if isWhole(answer) {
			err = a.readWhole(answer.Body, tell)
		} else {
			err = a.read(newEvents(answer.Body), cancel, tell)
		}
		switch {
		case errors.Is(err, errLeft):
		case err == nil:
			to.tell(belay.Chunk{Response: a.response()}, nil)
		case isFailure(err):
			to.tell(belay.Chunk{}, m.inStream(err))
		case errors.Is(err, errEndless) || errors.Is(err, errTooLarge):
			to.tell(belay.Chunk{}, m.failed(belay.ModelInvalid, err)) // the next would be as long
		default:
			to.tell(belay.Chunk{}, unlessDone(ctx, m.failed(belay.ModelNetwork, err)))
		}
	}
}

// isWhole reports whether an answer is not a stream of events, as that of some
// gateways.
func isWhole(answer *http.Response) bool {
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// readWhole reads an answer that is not a stream of events: a response, or a list of
// the pieces of one.
func (a *assembly) readWhole(r io.Reader, tell func(belay.Chunk) bool) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	pieces := []json.RawMessage{body}
	if body = bytes.TrimSpace(body); len(body) > 0 && body[0] == '[' {
		if err := json.Unmarshal(body, &pieces); err != nil {
			return &failure{Message: fmt.Sprintf("the answer is not what was agreed: %v", err)}
		}
	}
	for _, piece := range pieces {
		if err := a.add(piece, tell); err != nil {
			return err
		}
	}
	if a.stop == "" {
		return errCut
	}
	return a.verdict()
}

// attempt bounds an attempt by the timeout of the HTTP client.
func (m *Model) attempt(ctx context.Context) (context.Context, context.CancelFunc) {
	if m.timeout > 0 {
		return context.WithTimeout(ctx, m.timeout)
	}
	return context.WithCancel(ctx)
}

// read reads a stream to its end and tells what is worth telling at once.
func (a *assembly) read(events *events, cancel func(), tell func(belay.Chunk) bool) error {
	var drain *time.Timer
	defer func() {
		if drain != nil {
			drain.Stop()
		}
	}()
	for {
		data, stray, err := events.next()
		switch {
		case err != nil && a.stop != "":
			return a.verdict()
		case errors.Is(err, io.EOF):
			return errCut
		case err != nil:
			return fmt.Errorf("%w: %w", errCut, err)
		case stray != nil:
			err = strayError(stray)
		default:
			err = a.add(data, tell)
		}
		if err != nil && (a.stop == "" || errors.Is(err, errLeft)) {
			return err
		}
		if a.stop != "" && drain == nil {
			drain = time.AfterFunc(drainTime, cancel)
		}
	}
}

// send sends a request and returns the answer, whose body is a stream of events.
func (m *Model) send(ctx context.Context, req *belay.Request, to *listener) (*http.Response, *head, error) {
	switch {
	case errors.Is(m.broken, errNoKey):
		return nil, nil, m.failed(belay.ModelAuth, m.broken)
	case m.broken != nil:
		return nil, nil, m.failed(belay.ModelInvalid, m.broken)
	}
	body, head, err := m.body(req)
	if err != nil {
		return nil, nil, m.failed(belay.ModelInvalid, fmt.Errorf("the request cannot be encoded: %w", err))
	}
	x, err := m.post(ctx, body)
	if err != nil {
		return nil, nil, m.refused(x, err)
	}
	if err := strange(x.answer); err != nil {
		_ = x.answer.Body.Close() // nobody reads it
		return nil, nil, m.isStrange(x.answer, err)
	}
	x.answer.Body = &bounded{x.answer.Body, mostAnswered, to}
	return x.answer, head, nil
}

// unlessDone returns the error of an attempt, or that of its context if that is
// why it failed.
func unlessDone(ctx context.Context, err error) error {
	done := ctx.Err()
	if done == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, done) {
		return fmt.Errorf("%w: %w", done, cause)
	}
	return done
}
