package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

var errCut = errors.New("the stream ended before the finish reason arrived")

// Stream sends a request and yields the response as it arrives.
func (m *Model) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		attempt, cancel := context.WithCancel(ctx)
		defer cancel()
		to := wire.NewListener(yield)
		answer, head, err := m.send(attempt, req, to)
		if err != nil {
			to.Send(belay.Chunk{}, wire.UnlessDone(ctx, err))
			return
		}
		defer func() { _ = answer.Body.Close() }()
		a := assembly{model: m.name, names: head.Names}
		send := func(c belay.Chunk) bool { return to.Send(c, nil) }
		if wire.IsWhole(answer) {
			err = a.readWhole(answer.Body, send)
		} else {
			err = a.read(wire.NewEvents(answer.Body), cancel, send)
		}
		switch {
		case errors.Is(err, wire.ErrStopped):
		case err == nil:
			to.Send(belay.Chunk{Response: a.response()}, nil)
		case isFailure(err):
			to.Send(belay.Chunk{}, m.inStream(err))
		case errors.Is(err, wire.ErrTooLong) || errors.Is(err, wire.ErrEventTooLong):
			to.Send(belay.Chunk{}, m.failures.New(belay.ModelInvalid, err)) // a retry would get an answer of the same length
		default:
			to.Send(belay.Chunk{}, wire.UnlessDone(ctx, m.failures.New(belay.ModelNetwork, err)))
		}
	}
}

// readWhole reads an answer that is not a stream of events. The answer is one response or
// a list of pieces of a response.
func (a *assembly) readWhole(r io.Reader, send func(belay.Chunk) bool) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	pieces := []json.RawMessage{body}
	if body = bytes.TrimSpace(body); len(body) > 0 && body[0] == '[' {
		if err := json.Unmarshal(body, &pieces); err != nil {
			return &failure{Message: wire.Unexpected("the answer", err).Error()}
		}
	}
	for _, piece := range pieces {
		if err := a.add(piece, send); err != nil {
			return err
		}
	}
	if a.stop == "" {
		return errCut
	}
	return a.verdict()
}

// read reads a stream to its end and sends its chunks. After the finish reason, read waits
// for the end of the stream, but at most wire.DrainTime. More data may follow, and the
// connection can be reused only if the stream was read to its end.
func (a *assembly) read(events *wire.Events, cancel func(), send func(belay.Chunk) bool) error {
	var drain *time.Timer
	defer func() {
		if drain != nil {
			drain.Stop()
		}
	}()
	for {
		e, err := events.Next()
		switch {
		case err != nil && a.stop != "":
			return a.verdict()
		case errors.Is(err, io.EOF):
			return errCut
		case err != nil:
			return fmt.Errorf("%w: %w", errCut, err)
		case e.Stray != nil:
			err = strayError(e.Stray)
		default:
			err = a.add(e.Data, send)
		}
		if err != nil && (a.stop == "" || errors.Is(err, wire.ErrStopped)) {
			return err
		}
		if a.stop != "" && drain == nil {
			drain = time.AfterFunc(wire.DrainTime, cancel)
		}
	}
}

// send sends a request. It returns the answer and the head of the request. The caller must
// close the answer's body.
func (m *Model) send(ctx context.Context, req *belay.Request, to *wire.Listener) (*http.Response, *wire.Head, error) {
	if m.broken != nil {
		return nil, nil, m.failures.Unusable(m.broken)
	}
	if !modelName.MatchString(m.name) {
		return nil, nil, m.failures.New(belay.ModelInvalid, fmt.Errorf("%q is not the name of a model: write a name such as gemini-3-flash-preview", m.name))
	}
	if err := m.CheckSettings(req); err != nil {
		return nil, nil, err
	}
	body, head, err := m.body(req)
	if err != nil {
		return nil, nil, m.failures.New(belay.ModelInvalid, fmt.Errorf("the request cannot be encoded: %w", err))
	}
	answer, err := m.endpoint.Post(ctx, m.path(), body)
	if err != nil {
		return nil, nil, m.refused(err)
	}
	if err := wire.Accept(answer, to); err != nil {
		return nil, nil, m.failures.NotAResponse(answer, err)
	}
	return answer, head, nil
}
