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

// Version is the version of the protocol, and of the envelope.
const Version = 1

// Envelope is the input of a hook outside Go: a phase's input with its session,
// turn and origin.
type Envelope struct {
	// V is the version of this form.
	V int `json:"v"`
	// Phase is the wire name of the phase.
	Phase   string `json:"phase"`
	Session string `json:"session"`
	Turn    string `json:"turn"`
	Step    int    `json:"step"`
	Agent   string `json:"agent"`
	// Cwd is the directory that the agent works in. The hook itself runs in the
	// directory of the file that declares it.
	Cwd string `json:"cwd"`
	// Origin is where the hook came from.
	Origin Origin `json:"origin"`
	// Input is the phase's input.
	Input json.RawMessage `json:"input"`
}

// Origin is where the hook came from.
type Origin struct {
	Kind hook.OriginKind `json:"kind"`
	Name string          `json:"name,omitempty"`
}

// Scope names the session and turn of the input.
func (e *Envelope) Scope() hook.Scope {
	return hook.Scope{Session: e.Session, Turn: e.Turn, Step: e.Step, Agent: e.Agent}
}

// Handler is a handler on a phase. [On] makes one.
type Handler struct {
	phase string
	run   func(ctx context.Context, e *Envelope) (any, error)
}

// On binds a handler to a phase.
func On[In any, Out hook.Output](phase hook.Phase[In, Out], handler hook.Handler[In, Out]) Handler {
	return Handler{phase.Name(), func(ctx context.Context, e *Envelope) (any, error) {
		in, err := phase.DecodeInput(e.Scope(), e.Input)
		if err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		return handler(ctx, in)
	}}
}

// Main serves standard input and output, and ends the process when standard input
// ends. Output that handlers print goes to standard error.
func Main(handlers ...Handler) {
	out := os.Stdout
	os.Stdout = os.Stderr
	if err := Serve(context.Background(), os.Stdin, out, handlers...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Serve answers calls until in ends, and returns when running calls are answered;
// their contexts end with in. If the first message is an envelope, as for a
// command, it writes one answer and returns.
func Serve(ctx context.Context, in io.Reader, out io.Writer, handlers ...Handler) error {
	s := &server{out: out, handlers: handlers, calls: make(map[string]context.CancelFunc)}
	return s.serve(ctx, in)
}

// answer calls the handler of the envelope's phase. A panic becomes an error.
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
