package anthropic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

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
		answer, names, err := m.send(attempt, req, to)
		if err != nil {
			to.Send(belay.Chunk{}, wire.UnlessDone(ctx, err))
			return
		}
		a := assembly{by: m.encoder.provider.Value(), names: names}
		if wire.IsWhole(answer) {
			defer func() { _ = answer.Body.Close() }()
			m.readWhole(ctx, answer, &a, to.Send)
			return
		}
		events := ssestream.NewDecoder(answer)
		defer func() { _ = events.Close() }()
		for events.Next() {
			chunk, err := a.add(events.Event())
			if err != nil {
				to.Send(belay.Chunk{}, m.inStream(err))
				return
			}
			if a.stopped {
				wire.Drain(events, cancel)
				to.Send(belay.Chunk{Response: a.response()}, nil)
				return
			}
			if chunk != (belay.Chunk{}) && !to.Send(chunk, nil) {
				return
			}
		}
		to.Send(belay.Chunk{}, wire.UnlessDone(ctx, m.failures.Cut(errCut, events.Err())))
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

// send sends a request and returns the answer and the original names of renamed tools. The
// caller closes the answer.
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
	// The SDK's call for messages would parse and copy the encoded body again, so this uses
	// the generic one.
	var answer *http.Response
	if err := m.client.Execute(ctx, http.MethodPost, "v1/messages", nil, &answer, option.WithMiddleware(body.Send)); err != nil {
		return nil, nil, m.refused(answer, err)
	}
	if err := wire.Accept(answer, to); err != nil {
		return nil, nil, m.failures.NotAResponse(answer, err)
	}
	return answer, names, nil
}
