package assembly

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/sandbox"
)

// An Assembler makes agents from settings. It is safe for concurrent use.
type Assembler struct {
	Options

	looked sync.Once
	box    *sandbox.Sandbox // the sandbox of this machine, set by MachineSandbox
}

// Options are what a program adds to the settings. The zero value adds nothing.
type Options struct {
	// Environ are the environment variables that hooks and MCP servers may get. Defaults to
	// os.Environ.
	Environ []string
	// MCP are files that declare more MCP servers.
	MCP []string
	// Servers are more MCP servers, which the program declares itself.
	Servers []mcptool.Server
	// Hooks and Extensions are added to every agent.
	Hooks      []hook.Subscription
	Extensions []belay.Extension
	// Events gets the events of every agent. Defaults to a separate one for each agent.
	Events *belay.Events
	// Place replaces the directory .belay of the project. Defaults to "": it is not
	// replaced.
	Place string
	// Trial makes all declared programs run in the sandbox, where they can change only
	// temporary files and have no network. If there is no sandbox, they do not run. Webhooks
	// are not called.
	Trial bool
	// Reserved are slash commands that the program handles itself. A user cannot type a
	// skill with such a name.
	Reserved []string
	// Logger logs what the runtime does. If nil, nothing is logged, but declared hooks log
	// to a file beside the store.
	Logger *slog.Logger
	// Notify receives the notices. Any goroutine may call it. If nil, notices are dropped.
	Notify func(Notice)
}

// A Notice is a message for people about the files and servers of an agent.
type Notice struct {
	// Warning is false for a mere remark.
	Warning bool
	// Label is the kind of the notice: "warning", "not loaded", "not used", or empty.
	Label string
	// Text is the message, without control characters for terminals.
	Text string
	// Later means that the problem appeared while agents were running, for example because
	// a file changed.
	Later bool
}

// String returns the label and the text.
func (n Notice) String() string {
	if n.Label == "" {
		return n.Text
	}
	return n.Label + ": " + n.Text
}

// New returns an assembler. opts may be nil.
func New(opts *Options) *Assembler {
	a := &Assembler{}
	if opts != nil {
		a.Options = *opts
	}
	return a
}

func (a *Assembler) notify(n Notice) {
	if a.Notify != nil {
		a.Notify(n)
	}
}

// remark sends a notice. caution sends a notice that is a warning.
func (a *Assembler) remark(text string)  { a.notify(Notice{Text: text}) }
func (a *Assembler) caution(text string) { a.notify(Notice{Warning: true, Text: text}) }

// warn sends a warning with the label "warning". label sends a warning with another
// label.
func (a *Assembler) warn(text string) { a.label("warning", visible.All(visible.OneLine(text))) }

func (a *Assembler) label(label, text string) {
	a.notify(Notice{Warning: true, Label: label, Text: text})
}

// warned reports a problem that appeared while agents were running. relieved reports that
// such a problem is solved.
func (a *Assembler) warned(text string)   { a.notify(Notice{Warning: true, Text: text, Later: true}) }
func (a *Assembler) relieved(text string) { a.notify(Notice{Text: text, Later: true}) }

// logger returns the logger of the runtime.
func (a *Assembler) logger() *slog.Logger {
	if a.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return a.Logger
}

// environ returns the environment variables that hooks and MCP servers may get.
func (a *Assembler) environ() []string {
	if a.Environ == nil {
		return os.Environ()
	}
	return a.Environ
}

// An Error is an error with a hint for the user.
type Error struct {
	Err error
	// Hint says what to do next. It may be empty.
	Hint string
	// Mistake means that the user must correct the settings, a file or the command. If it
	// is false, an operation failed.
	Mistake bool
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *Error) Unwrap() error { return e.Err }

// mistake returns an error for something that the user must correct.
func mistake(format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...), Mistake: true}
}

// IsMistake reports whether err means that the user must correct something.
func IsMistake(err error) bool {
	found, ok := errors.AsType[*Error](err)
	return ok && found.Mistake
}
