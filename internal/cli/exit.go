package cli

import (
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
)

// These are the exit codes. docs/cli.md lists them.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2   // wrong command line, configuration or model name
	exitRefused = 3   // a hook blocked the turn, or the model refused it
	exitParked  = 4   // the turn waits for a decision
	exitLimit   = 5   // the turn reached its step limit or its budget
	exitStuck   = 6   // the turn repeated itself
	exitAborted = 130 // a signal interrupted the command
)

// exitError ends a command with an exit code. If err is nil, the command has already
// printed its message.
type exitError struct {
	code int
	err  error
	hint string
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage returns an error for a wrong command line.
func usage(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// interruptedError is the cause of a context that a signal cancelled.
type interruptedError struct{ signal string }

func (e *interruptedError) Error() string { return "interrupted by " + e.signal }

func exitCode(err error) int {
	var exit *exitError
	var interrupted *interruptedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case assembly.IsMistake(err):
		return exitUsage
	case errors.As(err, &interrupted):
		return exitAborted
	case errors.Is(err, belay.ErrParked):
		return exitParked
	default:
		return exitFailed
	}
}

// endCode returns the exit status for the reason a turn ended.
func endCode(end belay.EndReason) int {
	switch end {
	case belay.EndTurn:
		return exitOK
	case belay.EndBlocked, belay.EndRefused:
		return exitRefused
	case belay.EndParked:
		return exitParked
	case belay.EndMaxSteps, belay.EndBudget:
		return exitLimit
	case belay.EndStuck:
		return exitStuck
	case belay.EndAborted:
		return exitAborted
	case belay.EndError:
		return exitFailed
	default:
		return exitFailed
	}
}
