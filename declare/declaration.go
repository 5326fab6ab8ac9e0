package declare

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/phasejson"
)

// Declaration is a hook as a file declares it. It is only data: a [Set] runs it.
type Declaration struct {
	// ID is the id of the subscription.
	ID string
	// Phase is the wire name of the phase.
	Phase string
	// File and Line are its position.
	File string
	Line int
	// Dir is the directory of the file, as an absolute path. Commands and workers
	// run there.
	Dir string
	// Kind is what it runs: a command, a worker, a webhook or an action.
	Kind hook.HandlerKind
	// Argv is the program of a command or worker, with its arguments. The text of
	// run is the last argument of sh -c.
	Argv []string
	// Scripts are the files below the directory that Argv names, as absolute paths.
	// [Load] fills it in.
	Scripts []string
	// Env lists the extra variables of a command or worker: NAME passes on the
	// host's value, NAME=value sets one.
	Env []string
	// Webhook is the endpoint of a webhook.
	Webhook *Endpoint
	// Action is the built-in action.
	Action *Action
	// Secrets are the names of variables whose values are secret.
	Secrets []string
	// Options are the order and the limits, see [hook.Subscription]. A set fills in
	// Kind and Origin.
	Options hook.Options

	wire *phasejson.Phase // nil if it was not read from a file
}

// Endpoint is where a webhook is called.
type Endpoint struct {
	// URL is where the envelope is posted: https, or http to this machine.
	URL string
	// Secret names the variable with the key of the signature. If it is empty,
	// calls are not signed.
	Secret string
}

// Action is a built-in action that needs no program.
type Action struct {
	// Name is log, save_json, approve, deny or remind.
	Name string
	// Text is its message or reason, or the file of save_json below the directory of
	// the declaring file.
	Text string
	// Level is the level of what log writes. Defaults to info.
	Level slog.Level
	// Content makes log write the input as well, without secrets. Defaults to names,
	// the size and the hash of the input.
	Content bool
}

// FaultError is a mistake in a file, and where it is.
type FaultError struct {
	File string
	Line int
	// Message explains what is wrong and what to do.
	Message string
}

func (f *FaultError) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message) }

// Faults lists the faults that an error of this package joins, in order.
func Faults(err error) []*FaultError {
	var faults []*FaultError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			faults = append(faults, Faults(e)...)
		}
		return faults
	}
	if f, ok := errors.AsType[*FaultError](err); ok {
		faults = append(faults, f)
	}
	return faults
}
