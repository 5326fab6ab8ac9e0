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
	"github.com/belay-run/belay/sandbox"
)

// An Assembler makes agents of settings. Several goroutines may use it at once.
type Assembler struct {
	Options

	looked sync.Once
	box    *sandbox.Sandbox // features of the machine, once they were detected
}

// Options are what a program adds to the settings. The zero value adds nothing.
type Options struct {
	// Environ are the variables that hooks and MCP servers may get. Defaults to os.Environ.
	Environ []string
	// MCP are files that declare further MCP servers.
	MCP []string
	// Hooks and Extensions are part of every agent.
	Hooks      []hook.Subscription
	Extensions []belay.Extension
	// Reserved are names that the program itself handles when they are typed with a slash in front. A skill with
	// such a name cannot be typed.
	Reserved []string
	// Logger logs what the runtime does. Without one nothing is logged, except that declared hooks log to a file beside
	// the store.
	Logger *slog.Logger
	// Notify gets the notices. It may be called by any goroutine. Without it they are dropped.
	Notify func(Notice)
}

// A Notice tells people something about the files and the services that an agent is made of.
type Notice struct {
	// Warning is false for a remark.
	Warning bool
	// Label says what the notice is about: "warning", "not loaded", "not used". It may be empty.
	Label string
	// Text is the notice. It contains nothing that a terminal would interpret.
	Text string
	// Later is true if the problem appeared while agents were running, for example because a file
	// changed.
	Later bool
}

// String returns the notice as one text, with its label in front.
func (n Notice) String() string {
	if n.Label == "" {
		return n.Text
	}
	return n.Label + ": " + n.Text
}

// New returns an assembler. The options may be nil.
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

// remark reports a line, and caution a line that needs attention.
func (a *Assembler) remark(text string)  { a.notify(Notice{Text: text}) }
func (a *Assembler) caution(text string) { a.notify(Notice{Warning: true, Text: text}) }

// warn reports a warning, and label a line with a label in front.
func (a *Assembler) warn(text string) { a.label("warning", visible.All(visible.OneLine(text))) }

func (a *Assembler) label(label, text string) {
	a.notify(Notice{Warning: true, Label: label, Text: text})
}

// warned reports a problem that appeared while agents were running, and relieved that it is
// solved.
func (a *Assembler) warned(text string)   { a.notify(Notice{Warning: true, Text: text, Later: true}) }
func (a *Assembler) relieved(text string) { a.notify(Notice{Text: text, Later: true}) }

// logger returns where the runtime logs to.
func (a *Assembler) logger() *slog.Logger {
	if a.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return a.Logger
}

// environ returns the variables that hooks and MCP servers may get.
func (a *Assembler) environ() []string {
	if a.Environ == nil {
		return os.Environ()
	}
	return a.Environ
}

// An Error is an error with advice.
type Error struct {
	Err error
	// Hint says what to do next. It may be empty.
	Hint string
	// Mistake is true if the settings, the files or the request are wrong, and false if something failed.
	Mistake bool
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *Error) Unwrap() error { return e.Err }

// mistake returns the error for something that the user must correct.
func mistake(format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...), Mistake: true}
}

// IsMistake reports whether the user must correct something.
func IsMistake(err error) bool {
	found, ok := errors.AsType[*Error](err)
	return ok && found.Mistake
}
