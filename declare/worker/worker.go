package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/belay-run/belay/hook"
)

// Version is the version of the protocol and of the envelope.
const Version = 1

// Envelope is what a command, a worker or a webhook gets: the input of a phase, with its
// session, turn and origin.
type Envelope struct {
	// V is the version of the envelope, see [Version].
	V int `json:"v"`
	// Phase is the wire name of the phase.
	Phase   string `json:"phase"`
	Session string `json:"session"`
	Turn    string `json:"turn"`
	Step    int    `json:"step"`
	Agent   string `json:"agent"`
	// Cwd is the directory in which the agent works. The hook itself runs in the
	// directory of the file that declares it.
	Cwd string `json:"cwd"`
	// Origin says where the hook comes from.
	Origin Origin `json:"origin"`
	// Input is the phase's input.
	Input json.RawMessage `json:"input"`
	// Traceparent is the span of the turn in which the hook runs, as the header traceparent
	// of W3C. It is empty if nobody traces the agent.
	Traceparent string `json:"traceparent,omitempty"`
}

// Origin says where a hook comes from.
type Origin struct {
	Kind hook.OriginKind `json:"kind"`
	Name string          `json:"name,omitempty"`
}

// Scope returns the session, turn, step and agent of the envelope.
func (e *Envelope) Scope() hook.Scope {
	return hook.Scope{Session: e.Session, Turn: e.Turn, Step: e.Step, Agent: e.Agent}
}

// Handler is a handler for a phase. Make one with [On].
type Handler struct {
	phase string
	run   func(ctx context.Context, e *Envelope) (any, error)
}

// On makes a Handler that runs handler at a phase.
func On[In any, Out hook.Output](phase hook.Phase[In, Out], handler hook.Handler[In, Out]) Handler {
	return Handler{phase.Name(), func(ctx context.Context, e *Envelope) (any, error) {
		in, err := phase.DecodeInput(e.Scope(), e.Input)
		if err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		return handler(ctx, in)
	}}
}

// Main serves standard input and output. It ends the process when standard input ends.
// While it serves, everything that handlers print to os.Stdout goes to standard error.
func Main(handlers ...Handler) {
	out := os.Stdout
	os.Stdout = os.Stderr
	if err := Serve(context.Background(), os.Stdin, out, handlers...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Serve answers calls until in ends. Then it cancels the contexts of running calls, waits
// for their answers, and returns. If the first line is an envelope, as for a command,
// Serve writes one answer and returns.
func Serve(ctx context.Context, in io.Reader, out io.Writer, handlers ...Handler) error {
	s := &server{out: out, handlers: handlers, calls: make(map[string]context.CancelFunc)}
	return s.serve(ctx, in)
}

// answer calls the handler for the envelope's phase. It returns a panic as an error.
func (s *server) answer(ctx context.Context, e *Envelope) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("the handler panicked: %v", p)
		}
	}()
	if e.V != Version {
		return nil, fmt.Errorf("the envelope has version %d, but this worker supports only %d", e.V, Version)
	}
	i := slices.IndexFunc(s.handlers, func(h Handler) bool { return h.phase == e.Phase })
	if i < 0 {
		return nil, fmt.Errorf("this worker has no handler for %s", e.Phase)
	}
	return s.handlers[i].run(ctx, e)
}
