package declare

import (
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
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/proc"
)

// exitBlock is the exit code that means a denial.
const exitBlock = 2

// command runs the hook's program once.
func (h *handler) command(ctx context.Context, e *worker.Envelope) (json.RawMessage, error) {
	stdin, err := encode(e)
	if err != nil {
		return nil, err
	}
	run, err := h.set.execution(ctx, h.d, e)
	if err != nil {
		return nil, err
	}
	stdout, stderr := newOutput(), new(errorOutput)
	exit, err := proc.Run(ctx, &proc.Command{
		Argv: run.Argv, Dir: run.Dir, Env: run.Env, Stdin: append(stdin, '\n'), Stdout: stdout, Stderr: stderr, Grace: h.set.opts.Grace,
	})
	if err != nil {
		return nil, startError(run, err)
	}
	if exit.Code == exitBlock {
		return h.codec.blockOr(stdout.denials(), printedText(stderr.head, h.set.redact), "exit code 2")
	}
	answer, err := h.codec.read(stdout, sandboxed(h.ended(ctx, exit, stdout, stderr), run, stderr.tail.shown(h.set.redact)))
	if safe, ok := errors.AsType[*hook.SafeError](err); ok && exit.Code == 0 {
		if said := stderr.tail.shown(h.set.redact); said != "" { // standard error may explain the invalid output
			err = &hook.SafeError{Code: safe.Code, Message: safe.Message, Err: errors.Join(safe.Err, fmt.Errorf("its standard error: %s", said))}
		}
	}
	return answer, err
}

// ended returns an error if the program was stopped, failed or printed too much.
func (h *handler) ended(ctx context.Context, exit proc.Exit, stdout *output, stderr *errorOutput) error {
	said := stderr.tail.shown(h.set.redact)
	switch {
	case ctx.Err() != nil && exit.Stopped != nil:
		return context.Cause(ctx)
	case exit.Stopped != nil: // Belay stopped it because it printed too much
		if err := tooMuch(stdout, stderr); err != nil {
			return err
		}
		return exit.Stopped
	case exit.Signal != nil:
		return failed(fmt.Sprintf("the program was killed (signal %d)", exit.Signal), said)
	case exit.Code != 0:
		return h.exited(exit.Code, said)
	default:
		return tooMuch(stdout, stderr)
	}
}

// execution returns the program to run for a declaration, after Options.Confine has changed
// it.
func (s *Set) execution(ctx context.Context, d *Declaration, e *worker.Envelope) (*Execution, error) {
	run := &Execution{Argv: append([]string{}, d.Argv...), Env: s.env.of(d, e), Dir: d.Dir}
	if s.opts.Confine != nil {
		if err := s.opts.Confine(ctx, d, run); err != nil {
			if errors.Is(err, exec.ErrNotFound) { // Confine looks up the program, so the error can come from there
				return nil, startError(run, err)
			}
			return nil, &hook.SafeError{Code: codes.Error, Message: "the hook's program did not run, because the sandbox rejected it", Err: err}
		}
	}
	if len(run.Argv) == 0 {
		return nil, errors.New("there is nothing to run")
	}
	return run, nil
}

// failed returns the error of a failed program. The error contains the program's output,
// which users and the model see. The output is not stored.
func failed(what, said string) error {
	e := &hook.SafeError{Code: codes.Error, Message: what}
	if said != "" {
		e.Err = errors.New(said)
	}
	return e
}

// exited returns the error for an exit code. If a gate fails closed, the program's output
// becomes the reason of the denial. If a shell exits with 126 or 127, the shell could not
// start the program.
func (h *handler) exited(code int, said string) error {
	e := &hook.SafeError{Code: codes.Error, Message: fmt.Sprintf("exit code %d", code), Reason: withSignal(code, said)}
	if h.d.Argv[0] == "sh" && len(h.d.Argv) == 3 {
		switch code {
		case 126:
			e.Code, e.Message = codes.ExecutableMissing, "the program is not executable (exit code 126)"
		case 127:
			e.Code, e.Message = codes.ExecutableMissing, "the program was not found (exit code 127)"
		}
	}
	return e
}

// withSignal makes the output of a shell clearer if a signal killed a command. The last
// line is then only a word such as "Killed", and withSignal replaces it by a sentence.
// The exit code of such a shell is 128 plus the number of the signal.
func withSignal(code int, said string) string {
	before, last := "", said
	if i := strings.LastIndexByte(said, '\n'); i >= 0 {
		before, last = said[:i+1], said[i+1:]
	}
	if code <= 128 || !strings.EqualFold(shellPrefix.ReplaceAllString(last, ""), syscall.Signal(code-128).String()) {
		return said
	}
	return fmt.Sprintf("%sa command was killed (signal %d)", before, code-128)
}

// shellPrefix matches what bash prints before and after the name of a signal: the
// position in the script and the process number before it, and the command after it.
var shellPrefix = lazyregexp.New(`^.*: line \d+: +\d+ |(?: \(core dumped\))?(?: {2,}.*)?$`)

// startError explains why the program did not start.
func startError(run *Execution, err error) error {
	what := "the program could not be started"
	_, gone := os.Stat(run.Dir)
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case gone != nil:
		what = "the directory of the hook file no longer exists"
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		what = "the program was not found"
	case errors.Is(err, fs.ErrPermission):
		what = "the program is not executable"
	case errors.Is(err, syscall.ENOEXEC):
		what = "the program cannot be executed: if it is a script, its first line must name the interpreter, as #!/bin/sh does"
	}
	return &hook.SafeError{Code: codes.ExecutableMissing, Message: what, Err: err}
}
