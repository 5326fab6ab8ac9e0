package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/belay-run/belay"
)

// drainTime bounds the wait for the end of a stream behind its last event.
const drainTime = 250 * time.Millisecond

var errCut = errors.New("the stream ended before the response was complete")

// Stream sends a request and yields the response as it arrives.
func (m *Model) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		attempt, cancel := context.WithCancel(ctx)
		defer cancel()
		to := &listener{yield: yield}
		answer, names, err := m.send(attempt, req, to)
		if err != nil {
			to.tell(belay.Chunk{}, unlessDone(ctx, err))
			return
		}
		defer func() { _ = answer.Body.Close() }()
		a := m.wire.assemble(names)
		if isWhole(answer) {
			err = m.readWhole(answer, a, to.tell)
		} else {
			err = m.readStream(answer, a, to.tell, cancel)
		}
		switch {
		case errors.Is(err, errLeft):
		case err != nil:
			to.tell(belay.Chunk{}, unlessDone(ctx, err))
		default:
			to.tell(belay.Chunk{Response: a.response()}, nil)
		}
	}
}

// isWhole reports whether an answer is not streamed.
func isWhole(answer *http.Response) bool {
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// readStream reads the events of an answer.
func (m *Model) readStream(answer *http.Response, a assembler, yield func(belay.Chunk, error) bool, cancel func()) error {
	events := ssestream.NewDecoder(answer)
	for events.Next() {
		chunks, err := a.event(events.Event())
		if err != nil {
			return m.inStream(err)
		}
		for _, chunk := range chunks {
			if !yield(chunk, nil) {
				return errLeft
			}
		}
		if now, _ := a.complete(); now {
			drain(events, cancel)
			return nil
		}
	}
	cause := events.Err()
	if _, atEnd := a.complete(); atEnd && cause == nil {
		return nil
	}
	return m.cut(errCut, cause)
}

// cut makes the error of an answer that ends before its end, for a reason or for none.
func (m *Model) cut(err, cause error) error {
	switch {
	case errors.Is(cause, errEndless):
		return m.failed(belay.ModelInvalid, cause) // the next would be as long
	case cause != nil:
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return m.failed(belay.ModelNetwork, err)
}

// readWhole reads an answer that is not streamed.
func (m *Model) readWhole(answer *http.Response, a assembler, yield func(belay.Chunk, error) bool) error {
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return m.cut(errors.New("the answer was cut"), err)
	}
	chunks, err := a.whole(body)
	if err != nil {
		return m.inStream(err)
	}
	for _, chunk := range chunks {
		if !yield(chunk, nil) {
			return errLeft
		}
	}
	return nil
}

// drain reads a stream to its end, which lets the connection be used again. The
// end is there by now, or it is not worth waiting for.
func drain(events ssestream.Decoder, cancel func()) {
	timer := time.AfterFunc(drainTime, cancel)
	defer timer.Stop()
	for events.Next() {
		continue
	}
}

// send sends a request and returns the answer, whose body is to be read.
func (m *Model) send(ctx context.Context, req *belay.Request, to *listener) (*http.Response, map[string]string, error) {
	switch {
	case errors.Is(m.broken, errNoKey):
		return nil, nil, m.failed(belay.ModelAuth, m.broken)
	case m.broken != nil:
		return nil, nil, m.failed(belay.ModelInvalid, m.broken)
	}
	body, names, err := m.body(req)
	if err != nil {
		return nil, nil, m.failed(belay.ModelInvalid, fmt.Errorf("the request cannot be sent: %w", err))
	}
	// The body is encoded already, so that the generic call is used: those for the
	// two protocols would parse and copy all of it again.
	var answer *http.Response
	if err := m.client.Execute(ctx, http.MethodPost, m.wire.path(), nil, &answer, option.WithMiddleware(body.fill)); err != nil {
		return nil, nil, m.refused(answer, err)
	}
	if err := strange(answer); err != nil {
		_ = answer.Body.Close() // nobody reads it
		return nil, nil, m.isStrange(answer, err)
	}
	answer.Body = &bounded{answer.Body, mostAnswered, to}
	return answer, names, nil
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
