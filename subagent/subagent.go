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

// Subagent is an agent or function that gets tasks.
type Subagent struct {
	// Name is its name for the model: 1 to 64 letters, digits, _ and -, beginning with
	// a letter or a digit.
	Name string
	// Description tells the model what it is for and what to put into the prompt.
	// Defaults to none.
	Description string
	// Factory makes the runner of a task.
	Factory Factory
	// Durable gives it one session for each session of the parent, so that it remembers
	// earlier tasks. Defaults to a fresh session for each task.
	Durable bool
	// Isolated leaves the child's questions to its own agent. Defaults to asking where
	// the parent asks.
	Isolated bool
	// Timeout bounds a task including all waiting; negative means no timeout.
	// Defaults to DefaultTimeout.
	Timeout time.Duration
	// Agents are the names of the agents that may call it. Defaults to all.
	Agents []string
}

// DefaultTimeout is the timeout of a task if its subagent sets none. It is long
// because a task may wait for people.
const DefaultTimeout = time.Hour

// Factory makes the runner of a task. It is called for each task, and again when a
// child that was parked is resumed: then the task's session is the one from before.
// The model gets an error or a panic as the result.
type Factory func(ctx context.Context, task *Task) (Runner, error)

// Task is one task of a subagent.
type Task struct {
	// Name is the subagent's name, and Prompt the task.
	Name, Prompt string
	// Session is the id of the child's session, for a child that keeps one.
	Session string
	// Store keeps the parent's sessions; the child's belong there too.
	Store belay.Store
	// Controls are those of the parent's call. They are valid until the task is
	// over.
	Controls *belay.Controls
	// Resumed means that the child was parked and is resumed now.
	Resumed bool

	owner *Extension // the extension that runs it
}

// Runner runs one task. It yields events, the last of kind turn_end with the result;
// without that, the text deltas are the answer. An error fails the task. A
// [*belay.Session] is a Runner.
type Runner interface {
	Run(ctx context.Context, text string, parts ...belay.Part) iter.Seq2[belay.Event, error]
}

// ResumeRunner is a Runner that can resume a parked task. Without it such a task fails.
type ResumeRunner interface {
	Runner
	Resume(ctx context.Context) iter.Seq2[belay.Event, error]
}

// AbandonRunner is a Runner that can end a parked task that will never be resumed, so
// that the next task of a durable subagent can begin. Without it the next task gets
// whatever Run returns.
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

// validName matches names of subagents. They are part of session ids, where a dot marks
// ids of calls.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

const nameRule = "a name is 1 to 64 letters, digits, _ and -, and begins with a letter or a digit"

// sound returns what is wrong with a subagent, or nil.
func (s *Subagent) sound() error {
	switch {
	case !validName.MatchString(s.Name):
		return fmt.Errorf("subagent %q: name: %s", s.Name, nameRule)
	case s.Factory == nil:
		return fmt.Errorf("subagent %q: factory: it is missing", s.Name)
	case !utf8.ValidString(s.Description):
		return fmt.Errorf("subagent %q: description: it is not UTF-8", s.Name)
	case slices.Contains(s.Agents, ""):
		return fmt.Errorf("subagent %q: agents: a name is empty", s.Name)
	default:
		return nil
	}
}

// timeout returns the timeout of a task, 0 for none.
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

// errNoRunner is the error of a factory that returned nil.
var errNoRunner = errors.New("its factory returned nothing to run")
