package declare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/proc"
)

// Protocol is the language of a command that was not written for Belay. It translates what
// the command reads and what it answers. Everything else about the command is as for other
// commands: its limits, its sandbox, and whether it is trusted.
//
// A protocol must look for a denial first. No output that means a denial may become
// another answer.
type Protocol interface {
	// Ask returns what the command gets for an event.
	Ask(ctx context.Context, e *worker.Envelope) (*Question, error)
	// Read returns the answer of the phase, in the phase's JSON form. No answer means that
	// the command has no opinion. An error means that the command failed.
	Read(ctx context.Context, e *worker.Envelope, r *Reply) (json.RawMessage, error)
}

// Question is what a command gets.
type Question struct {
	// Stdin is the text for standard input.
	Stdin []byte
	// Env lists variables as NAME=value, besides those of the declaration.
	Env []string
	// Answer is used instead of running the command, if Known is true.
	Answer json.RawMessage
	Known  bool
}

// Reply is how a command ended.
type Reply struct {
	// Code is the exit code. It is -1 if a signal ended the command.
	Code int
	// Cut means that the command printed more than Stdout has.
	Cut bool
	// Stdout and Stderr are what the command printed, up to the limits of commands. Stderr
	// has no secrets.
	Stdout, Stderr string
	// Err says why the command did not end by itself, for example after a timeout, or that
	// the command printed too much. A protocol without another answer returns it.
	Err error
}

// lateAnswer is the time after its timeout that a command with a protocol has to end, and
// Belay to read what the command printed.
const lateAnswer = 5 * time.Second

// errTimeout means that a command ran longer than its timeout.
var errTimeout = &hook.SafeError{Code: codes.Timeout, Message: "the hook did not answer within its timeout"}

// translated runs a command with a protocol.
func (h *handler) translated(ctx context.Context, e *worker.Envelope) (json.RawMessage, error) {
	asked, err := h.d.Protocol.Ask(ctx, e)
	if err != nil {
		return nil, err
	}
	if asked.Known {
		return asked.Answer, nil
	}
	run, err := h.set.execution(ctx, h.d, e)
	if err != nil {
		return nil, err
	}
	return h.answered(ctx, e, asked, run)
}

// answered runs a command with a protocol, and reads its answer.
func (h *handler) answered(ctx context.Context, e *worker.Envelope, asked *Question, run *Execution) (json.RawMessage, error) {
	run.Env = append(run.Env, asked.Env...)
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(h.d.Options.Timeout, defaultTimeout), errTimeout)
	defer cancel()
	stdout, stderr := newOutput(), new(errorOutput)
	exit, err := proc.Run(ctx, &proc.Command{
		Argv: run.Argv, Dir: run.Dir, Env: run.Env, Stdin: asked.Stdin, Stdout: stdout, Stderr: stderr, Grace: h.set.opts.Grace,
	})
	if err != nil {
		return nil, startError(run, err)
	}
	r := &Reply{Code: exit.Code, Stdout: string(stdout.kept), Stderr: printedText(stderr.head, h.set.redact), Cut: stdout.total > mostOutput}
	switch {
	case ctx.Err() != nil && exit.Stopped != nil:
		r.Err = context.Cause(ctx)
	case exit.Stopped != nil:
		r.Err = errors.Join(tooMuch(stdout, stderr), exit.Stopped)
	case exit.Signal != nil:
		r.Err = h.ended(ctx, exit, stdout, stderr)
	default:
		r.Err = tooMuch(stdout, stderr)
	}
	answer, err := h.d.Protocol.Read(ctx, e, r)
	return answer, sandboxed(err, run, r.Stderr+"\n"+r.Stdout)
}
