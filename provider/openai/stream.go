package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

var errCut = errors.New("the stream ended before the response was complete")

// Stream sends a request and yields the response as it arrives.
func (m *Model) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		attempt, cancel := context.WithCancel(ctx)
		defer cancel()
		to := wire.NewListener(yield)
		answer, names, err := m.send(attempt, req, to)
		if err != nil {
			to.Send(belay.Chunk{}, wire.UnlessDone(ctx, err))
			return
		}
		defer func() { _ = answer.Body.Close() }()
		a := m.protocol.assemble(names)
		if wire.IsWhole(answer) {
			err = m.readWhole(answer, a, to.Send)
		} else {
			err = m.readStream(answer, a, to.Send, cancel)
		}
		switch {
		case errors.Is(err, wire.ErrStopped):
		case err != nil:
			to.Send(belay.Chunk{}, wire.UnlessDone(ctx, err))
		default:
			to.Send(belay.Chunk{Response: a.response()}, nil)
		}
	}
}

// readStream reads an answer that is a stream.
func (m *Model) readStream(answer *http.Response, a assembler, yield func(belay.Chunk, error) bool, cancel func()) error {
	events := wire.NewEvents(answer.Body)
	for {
		e, cause := events.Next()
		if cause != nil {
			if _, atEnd := a.complete(); atEnd && errors.Is(cause, io.EOF) {
				return nil
			}
			return m.failures.Cut(errCut, cause)
		}
		if e.Stray != nil {
			if err := strayError(e.Stray); err != nil {
				return m.inStream(err)
			}
			continue
		}
		chunks, err := a.event(e)
		if err != nil {
			return m.inStream(err)
		}
		for _, chunk := range chunks {
			if !yield(chunk, nil) {
				return wire.ErrStopped
			}
		}
		if now, _ := a.complete(); now {
			events.Drain(cancel)
			return nil
		}
	}
}

// readWhole reads an answer that is not a stream.
func (m *Model) readWhole(answer *http.Response, a assembler, yield func(belay.Chunk, error) bool) error {
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return m.failures.Cut(errors.New("the answer ended too early"), err)
	}
	chunks, err := a.whole(body)
	if err != nil {
		return m.inStream(err)
	}
	for _, chunk := range chunks {
		if !yield(chunk, nil) {
			return wire.ErrStopped
		}
	}
	return nil
}

// send sends a request. It returns the answer and the original names of renamed tools. The
// caller must close the answer's body.
func (m *Model) send(ctx context.Context, req *belay.Request, to *wire.Listener) (*http.Response, map[string]string, error) {
	if m.broken != nil {
		return nil, nil, m.failures.Unusable(m.broken)
	}
	if err := m.CheckSettings(req); err != nil {
		return nil, nil, err
	}
	body, names, err := m.body(req)
	if err != nil {
		return nil, nil, m.failures.New(belay.ModelInvalid, fmt.Errorf("the request cannot be encoded: %w", err))
	}
	answer, err := m.endpoint.Post(ctx, m.protocol.path(), body)
	if err != nil {
		return nil, nil, m.refused(err)
	}
	if err := wire.Accept(answer, to); err != nil {
		return nil, nil, m.failures.NotAResponse(answer, err)
	}
	return answer, names, nil
}
