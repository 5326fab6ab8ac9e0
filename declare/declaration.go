package declare

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/phasejson"
)

// Declaration is a hook as a file declares it. It contains only data. A [Set] runs it.
type Declaration struct {
	// ID is the id of the subscription.
	ID string
	// Phase is the wire name of the phase.
	Phase string
	// File and Line are the position of the declaration.
	File string
	Line int
	// Dir is the directory of the file, as an absolute path. Commands and workers run in
	// it.
	Dir string
	// Kind says what the hook runs: a command, a worker, a webhook or an action.
	Kind hook.HandlerKind
	// Argv is the program of a command or a worker, with its arguments. For the key run,
	// Argv is sh -c and the text.
	Argv []string
	// Scripts are the files below Dir that Argv names, as absolute paths. [Load] sets it.
	Scripts []string
	// Env lists extra variables for a command or a worker. NAME passes the value from
	// [Options].Environ, and NAME=value sets a value.
	Env []string
	// Webhook is the endpoint of a webhook.
	Webhook *Endpoint
	// Action is the built-in action.
	Action *Action
	// Secrets are the names of variables whose values are secret.
	Secrets []string
	// Dialect says that the command was written for another agent. It is nil for a command
	// that was written for Belay. [Options].Speak sets the Protocol of such a hook.
	Dialect *Dialect
	// Protocol is the language of a command. Nil means Belay's own.
	Protocol Protocol
	// Detached means that the phase does not wait for the command, and that its answer does
	// not count. It needs a Protocol. Unlike [hook.FireAndRecord], a gate can have it.
	Detached bool
	// Replaced means that another declaration has the same hook and runs in its place. The
	// hook is then also disabled.
	Replaced bool
	// Options are the order and the limits, see [hook.Subscription]. The set fills in
	// Kind and Origin.
	Options hook.Options

	wire  *phasejson.Phase // nil if the declaration was not read from a file
	tests *testSource      // nil if the hook has no tests
}

// Dialect says for which event of which agent a command was written.
type Dialect struct {
	// Agent is the other agent, and Event is its name of the event.
	Agent dialect.Vendor
	Event string
	// Matcher and If limit the hook, in the words of that agent. Both may be empty.
	Matcher, If string
	// Async means that the agent does not wait for the command. Rewake means that such a
	// command gives the model a message if its exit code is 2.
	Async, Rewake bool
	// RewakeMessage stands before that message. It may be empty.
	RewakeMessage string
	// Original says of which hook of that agent this one is a copy. "belay import" sets it.
	Original string
}

// Endpoint is the server of a webhook.
type Endpoint struct {
	// URL is the address to which the envelope is posted. It must be https, or http to
	// this machine.
	URL string
	// Secret is the name of the variable with the signing key. If it is empty, calls are
	// not signed.
	Secret string
}

// Action is a built-in action that needs no program.
type Action struct {
	// Name is log, save_json, approve, deny or remind.
	Name string
	// Text is the message or the reason. For save_json, it is the path of the file,
	// relative to the directory of the hook file.
	Text string
	// Level is the level at which log writes. Defaults to info.
	Level slog.Level
	// Content makes log also write the input, without secrets. By default, log writes
	// only names, and the size and hash of the input.
	Content bool
}

// FaultError is a mistake in a file.
type FaultError struct {
	File string
	Line int
	// Message explains what is wrong and what to do.
	Message string
}

func (f *FaultError) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message) }

// Faults returns the faults that an error of this package joins, in order.
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
