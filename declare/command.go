package declare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/proc"
)

// The most that a command may print.
const (
	mostOutput = 1 << 20
	mostErrors = 64 << 10
)

// exitBlock is the exit code that denies.
const exitBlock = 2

// command runs the hook's program for one call.
func (h *handler) command(ctx context.Context, e *worker.Envelope) (json.RawMessage, error) {
	stdin, err := encode(e)
	if err != nil {
		return nil, err
	}
	run, err := h.set.execution(ctx, h.d, e)
	if err != nil {
		return nil, err
	}
	stdout, stderr := proc.NewCap(mostOutput), proc.NewCap(mostErrors)
	exit, err := proc.Run(ctx, &proc.Command{
		Argv: run.Argv, Dir: run.Dir, Env: run.Env, Stdin: append(stdin, '\n'), Stdout: stdout, Stderr: stderr, Grace: h.set.opts.Grace,
	})
	if err != nil {
		return nil, startError(run, err)
	}
	said := strings.TrimSpace(string(stderr.Bytes()))
	switch {
	case exit.Stopped != nil:
		return nil, stopped(ctx, exit.Stopped)
	case exit.Signal != nil:
		return nil, failed(fmt.Sprintf("it was killed by a signal (%s)", exit.Signal), said)
	case exit.Code == exitBlock:
		return h.codec.block(cmp.Or(said, "exit code 2"))
	case exit.Code != 0:
		return nil, h.exited(exit.Code, said)
	}
	return h.codec.read(stdout.Bytes())
}

// execution is what is about to run for a declaration.
func (s *Set) execution(ctx context.Context, d *Declaration, e *worker.Envelope) (*Execution, error) {
	run := &Execution{Argv: append([]string{}, d.Argv...), Env: s.env.of(d, e), Dir: d.Dir}
	if s.opts.Confine != nil {
		if err := s.opts.Confine(ctx, d, run); err != nil {
			if errors.Is(err, exec.ErrNotFound) { // whoever confines looks for the program first
				return nil, startError(run, err)
			}
			return nil, &hook.SafeError{Code: hook.CodeError, Message: "it cannot be confined and did not run", Err: err}
		}
	}
	if len(run.Argv) == 0 {
		return nil, errors.New("there is nothing to run")
	}
	return run, nil
}

// failed is the failure of a program. What it said goes to the person and the model,
// and is not stored.
func failed(what, said string) error {
	e := &hook.SafeError{Code: hook.CodeError, Message: what}
	if said != "" {
		e.Err = errors.New(said)
	}
	return e
}

// exited is a failure by exit code. A shell tells by it what it could not start.
func (h *handler) exited(code int, said string) error {
	what := fmt.Sprintf("exit code %d", code)
	if h.d.Argv[0] == "sh" && len(h.d.Argv) == 3 {
		switch code {
		case 126:
			return missing("the program is not executable (exit code 126)", said)
		case 127:
			return missing("the program was not found (exit code 127)", said)
		}
	}
	return failed(what, said)
}

func missing(what, said string) error {
	e := &hook.SafeError{Code: hook.CodeExecutableMissing, Message: what}
	if said != "" {
		e.Err = errors.New(said)
	}
	return e
}

// startError says why there was no process.
func startError(run *Execution, err error) error {
	what := "the program could not be started"
	_, gone := os.Stat(run.Dir)
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case gone != nil:
		what = "the directory of the file that declares it is gone"
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		what = "the program was not found"
	case errors.Is(err, fs.ErrPermission):
		what = "the program is not executable"
	case errors.Is(err, syscall.ENOEXEC):
		what = "the program cannot be executed: if it is a script, its first line must name the interpreter, as #!/bin/sh does"
	}
	return &hook.SafeError{Code: hook.CodeExecutableMissing, Message: what, Err: err}
}

// stopped says why a program was ended.
func stopped(ctx context.Context, why error) error {
	if tooMuch, ok := errors.AsType[*proc.TooMuchError](why); ok {
		stream := "standard error"
		if tooMuch.Max == mostOutput {
			stream = "standard output"
		}
		return invalid(fmt.Sprintf("it printed more than %d KiB to %s and was ended", tooMuch.Max>>10, stream), nil)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return why
}
