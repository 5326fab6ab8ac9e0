package subagent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

// Subagent is somebody to hand tasks to.
type Subagent struct {
	// Name is what the model calls it: 1 to 64 letters, digits, _ and -, beginning with
	// a letter or a digit.
	Name string
	// Description tells the model what it is for, and what to put into the prompt.
	// Defaults to none.
	Description string
	// Factory makes what does a task.
	Factory Factory
	// Durable gives it one session for each session of the parent, so that it remembers
	// earlier tasks. Defaults to a fresh session for each task.
	Durable bool
	// Isolated leaves the child's questions to its own agent. Defaults to asking whoever
	// the parent asks.
	Isolated bool
	// Timeout bounds a task, with whatever it waits for; negative means no bound.
	// Defaults to DefaultTimeout.
	Timeout time.Duration
	// Agents are the names of the agents that may call it. Defaults to all.
	Agents []string
}

// DefaultTimeout is how long a task may take if its subagent does not say. People who
// are asked meanwhile take their time, so it is long.
const DefaultTimeout = time.Hour

// Factory makes what does a task. It is called for each task, and again when a child
// that was parked is resumed: then the task's session is the one from before. An error
// is told to the model, and so is a panic.
type Factory func(ctx context.Context, task *Task) (Runner, error)

// Task is what a subagent is asked to do.
type Task struct {
	// Name is the subagent's name, and Prompt what it is asked.
	Name, Prompt string
	// Session is the id of the child's session, for a child that keeps one.
	Session string
	// Store keeps the parent's sessions; the child's belong there too.
	Store belay.Store
	// Controls are those of the parent's call. They are good until the task is over.
	Controls *belay.Controls
	// Resumed says that the child was parked and is to go on.
	Resumed bool

	owner *Extension // whose task it is
}

// Runner does one task. It yields events, and at the end one of the kind turn_end, which
// says how it went; without that, the text deltas are the answer. An error fails the task.
// A [*belay.Session] is a Runner.
type Runner interface {
	Run(ctx context.Context, text string, parts ...belay.Part) iter.Seq2[belay.Event, error]
}

// ResumeRunner is a Runner that can go on with a task which was parked. Without it such
// a task fails.
type ResumeRunner interface {
	Runner
	Resume(ctx context.Context) iter.Seq2[belay.Event, error]
}

// AbandonRunner is a Runner that can end a task which was parked and will never be
// resumed, so that the next one of a durable subagent can begin. Without it the next one
// is told whatever Run says.
type AbandonRunner interface {
	Runner
	Abandon(ctx context.Context) (*belay.Turn, error)
}

// CloseRunner is a Runner that is closed when its task is over, or parked.
type CloseRunner interface {
	Runner
	Close(ctx context.Context) error
}

var (
	_ ResumeRunner  = (*belay.Session)(nil)
	_ AbandonRunner = (*belay.Session)(nil)
	_ CloseRunner   = (*belay.Session)(nil)
)

// validName is what a subagent may be called: it is part of session ids, in which a dot
// tells calls from names.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

const nameRule = "a name is 1 to 64 letters, digits, _ and -, and begins with a letter or a digit"

// sound says what is wrong with a subagent.
func (s *Subagent) sound() error {
	switch {
	case !validName.MatchString(s.Name):
		return fmt.Errorf("subagent %q: name: %s", s.Name, nameRule)
	case s.Factory == nil:
		return fmt.Errorf("subagent %q: factory: there is none", s.Name)
	case !utf8.ValidString(s.Description):
		return fmt.Errorf("subagent %q: description: it is not UTF-8", s.Name)
	case slices.Contains(s.Agents, ""):
		return fmt.Errorf("subagent %q: agents: a name is empty", s.Name)
	default:
		return nil
	}
}

// timeout is the bound on a task, 0 for none.
func (s *Subagent) timeout() time.Duration {
	switch {
	case s.Timeout < 0:
		return 0
	case s.Timeout == 0:
		return DefaultTimeout
	default:
		return s.Timeout
	}
}

// errNoRunner says that a factory made nothing.
var errNoRunner = errors.New("its factory returned nothing to run")
