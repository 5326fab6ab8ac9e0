package anthropic

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

var errCut = errors.New("the stream ended before message_stop")

// Stream sends a request and yields the response as it arrives.
func (m *Model) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		attempt, cancel := context.WithCancel(ctx)
		defer cancel()
		to := wire.NewListener(yield)
		answer, sent, err := m.send(attempt, req, to)
		if err != nil {
			to.Send(belay.Chunk{}, wire.UnlessDone(ctx, err))
			return
		}
		defer func() { _ = answer.Body.Close() }()
		a := assembly{by: m.encoder.provider.Value(), names: sent.names, ignored: sent.ignored}
		if wire.IsWhole(answer) {
			m.readWhole(ctx, answer, &a, to.Send)
			return
		}
		events := wire.NewEvents(answer.Body)
		for {
			e, err := events.Next()
			if err != nil {
				to.Send(belay.Chunk{}, wire.UnlessDone(ctx, m.failures.Cut(errCut, err)))
				return
			}
			if e.Stray != nil {
				if err := strayError(e.Stray); err != nil {
					to.Send(belay.Chunk{}, m.inStream(err))
					return
				}
				continue
			}
			chunk, err := a.add(e)
			if err != nil {
				to.Send(belay.Chunk{}, m.inStream(err))
				return
			}
			if a.stopped {
				events.Drain(cancel)
				to.Send(belay.Chunk{Response: a.response()}, nil)
				return
			}
			if chunk != (belay.Chunk{}) && !to.Send(chunk, nil) {
				return
			}
		}
	}
}

// readWhole reads an answer that is not a stream.
func (m *Model) readWhole(ctx context.Context, answer *http.Response, a *assembly, yield func(belay.Chunk, error) bool) {
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		yield(belay.Chunk{}, wire.UnlessDone(ctx, m.failures.Cut(errors.New("the answer ended too early"), err)))
		return
	}
	chunks, err := a.whole(body)
	if err != nil {
		yield(belay.Chunk{}, m.inStream(err))
		return
	}
	for _, chunk := range append(chunks, belay.Chunk{Response: a.response()}) {
		if !yield(chunk, nil) {
			return
		}
	}
}

// send sends a request and returns the answer. The caller must close the answer's body.
func (m *Model) send(ctx context.Context, req *belay.Request, to *wire.Listener) (*http.Response, sent, error) {
	if m.broken != nil {
		return nil, sent{}, m.failures.Unusable(m.broken)
	}
	if err := m.CheckSettings(req); err != nil {
		return nil, sent{}, err
	}
	body, sent, err := m.body(req)
	if err != nil {
		return nil, sent, m.failures.New(belay.ModelInvalid, fmt.Errorf("the request cannot be encoded: %w", err))
	}
	answer, err := m.endpoint.Post(ctx, "v1/messages", body)
	if err != nil {
		return nil, sent, m.refused(err)
	}
	if err := wire.Accept(answer, to); err != nil {
		return nil, sent, m.failures.NotAResponse(answer, err)
	}
	return answer, sent, nil
}
