package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// message is a call or a notification from Belay.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
}

type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// The error codes. The first two are defined by JSON-RPC. codeHandler is for errors of
// handlers.
const (
	codeMethod  = -32601
	codeParams  = -32602
	codeHandler = -32000
)

// server is the state of one call of Serve. At any time, one goroutine is the leader,
// which reads the input. When the leader has read a call, it starts another leader and
// runs the call itself. So a call does not wait for a goroutine to start. Each goroutine
// ends with its call.
type server struct {
	handlers []Handler
	reader   *bufio.Reader // used only by the leader
	begun    bool          // whether a line was read; used only by the leader
	ended    chan error    // gets the error with which reading ended
	running  sync.WaitGroup

	writing sync.Mutex
	out     io.Writer
	broken  error // the error of a failed write

	mu    sync.Mutex
	calls map[string]context.CancelFunc // by id
}

func (s *server) serve(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	s.reader, s.ended = bufio.NewReaderSize(in, 64<<10), make(chan error, 1)
	s.running.Go(func() { s.lead(ctx) })
	err := <-s.ended
	cancel()
	s.running.Wait()
	if err == nil {
		err = s.broken
	}
	return err
}

// lead reads messages until there is a call to run or the input ends.
func (s *server) lead(ctx context.Context) {
	for {
		line, err := s.reader.ReadBytes('\n')
		var call func()
		if line = bytes.TrimSpace(line); len(line) > 0 {
			first := !s.begun
			s.begun = true
			if first && !bytes.Contains(line, []byte(`"jsonrpc"`)) {
				s.ended <- s.once(ctx, line)
				return
			}
			var bad error
			if call, bad = s.take(ctx, line); bad != nil {
				s.ended <- bad
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			s.ended <- nil
		case err != nil:
			s.ended <- fmt.Errorf("worker: read: %w", err)
		case call != nil:
			s.running.Go(func() { s.lead(ctx) })
		default:
			continue
		}
		if call != nil {
			call()
		}
		return
	}
}

// once answers a single envelope, when the program is used as a command.
func (s *server) once(ctx context.Context, line []byte) error {
	var e Envelope
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("worker: the envelope: %w", err)
	}
	result, err := s.answer(ctx, &e)
	if err != nil {
		return err
	}
	return s.write(result)
}

// take handles a line. For a call that takes time, it returns a function that runs the
// call.
func (s *server) take(ctx context.Context, line []byte) (call func(), err error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil || m.JSONRPC != "2.0" {
		return nil, errors.New("worker: a line on standard input is not a message of JSON-RPC 2.0")
	}
	switch m.Method {
	case "hello":
		return nil, s.write(response{"2.0", m.ID, json.RawMessage(fmt.Sprintf(`{"v":%d}`, Version)), nil})
	case "run":
		ctx, cancel := context.WithCancel(ctx)
		s.mu.Lock()
		s.calls[string(m.ID)] = cancel
		s.mu.Unlock()
		return func() {
			defer s.forget(string(m.ID))
			_ = s.write(s.run(ctx, &m)) // write stores its error in s.broken
		}, nil
	case "cancel":
		var params struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(m.Params, &params) == nil {
			s.forget(string(params.ID))
		}
	default:
		if m.ID != nil {
			return nil, s.write(response{"2.0", m.ID, nil, &failure{codeMethod, fmt.Sprintf("there is no method %q", m.Method)}})
		}
	}
	return nil, nil
}

// forget cancels the context of a call.
func (s *server) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.calls[id]; cancel != nil {
		cancel()
		delete(s.calls, id)
	}
}

func (s *server) run(ctx context.Context, m *message) response {
	var e Envelope
	if err := json.Unmarshal(m.Params, &e); err != nil {
		return response{"2.0", m.ID, nil, &failure{codeParams, "the envelope: " + err.Error()}}
	}
	result, err := s.answer(ctx, &e)
	if err != nil {
		return response{"2.0", m.ID, nil, &failure{codeHandler, err.Error()}}
	}
	data, err := json.Marshal(result)
	if err != nil {
		return response{"2.0", m.ID, nil, &failure{codeHandler, "the answer: " + err.Error()}}
	}
	return response{"2.0", m.ID, data, nil}
}

func (s *server) write(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("worker: the answer: %w", err)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.broken == nil {
		if _, err := s.out.Write(append(line, '\n')); err != nil {
			s.broken = fmt.Errorf("worker: write: %w", err)
		}
	}
	return s.broken
}
