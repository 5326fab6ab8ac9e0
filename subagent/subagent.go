package subagent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// Subagent is an agent, a function or a service that gets tasks.
type Subagent struct {
	// Name is the name that the model uses. It has 1 to 64 letters, digits, _ and -, and
	// begins with a letter or a digit.
	Name string
	// Description tells the model what the subagent is for, and what to put into the
	// prompt. May be empty.
	Description string
	// Factory makes the runner of a task.
	Factory Factory
	// Durable gives the subagent one session for each session of the parent, so that the
	// subagent remembers earlier tasks. By default, each task has a new session.
	Durable bool
	// Isolated means that the child's own agent handles the child's questions. By
	// default, the parent's agent handles them.
	Isolated bool
	// Timeout is the maximum time of a task, including all waiting. A negative value
	// means no timeout. Defaults to DefaultTimeout.
	Timeout time.Duration
	// Agents are the names of the agents that may call the subagent. Defaults to all.
	Agents []string
}

// DefaultTimeout is the timeout of a task if the subagent sets none. It is long because a
// task may wait for people.
const DefaultTimeout = time.Hour

// Factory makes the runner of a task. It is called for each task. It is called again when
// a parked child is resumed; then the task has the same session as before. If the factory
// returns an error or panics, the model gets the error as the result.
type Factory func(ctx context.Context, task *Task) (Runner, error)

// Task is one task of a subagent.
type Task struct {
	// Name is the name of the subagent. Prompt is the text of the task.
	Name, Prompt string
	// Session is the id of the child's session. A child that keeps no session ignores it.
	Session string
	// Store is the parent's store. The child should keep its session there too.
	Store belay.Store
	// Controls are the controls of the parent's call. They are valid until the task is
	// over.
	Controls *belay.Controls
	// Resumed means that the child was parked and must now be resumed.
	Resumed bool

	owner *Extension // the extension that runs the task
}

// Runner runs one task. It yields events. The last event should be turn_end, which has
// the answer. Without turn_end, the text deltas are the answer. An error fails the task.
// A [*belay.Session] is a Runner.
type Runner interface {
	Run(ctx context.Context, text string, parts ...belay.Part) iter.Seq2[belay.Event, error]
}

// ResumeRunner is a Runner that can resume a parked task. With other runners, resuming a
// parked task fails.
type ResumeRunner interface {
	Runner
	Resume(ctx context.Context) iter.Seq2[belay.Event, error]
}

// AbandonRunner is a Runner that can end a parked task that will never be resumed. A
// durable subagent needs this before its next task can begin. With other runners, Run is
// called although the earlier task has not ended.
type AbandonRunner interface {
	Runner
	Abandon(ctx context.Context) (*belay.Turn, error)
}

// CloseRunner is a Runner that must be closed when its task is over or parked.
type CloseRunner interface {
	Runner
	Close(ctx context.Context) error
}

var (
	_ ResumeRunner  = (*belay.Session)(nil)
	_ AbandonRunner = (*belay.Session)(nil)
	_ CloseRunner   = (*belay.Session)(nil)
)

// validName matches valid names. A name must not have a dot: names are part of session
// ids, and there a dot marks the id of a call.
var validName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

const nameRule = "a name is 1 to 64 letters, digits, _ and -, and begins with a letter or a digit"

// sound returns an error if the subagent is not valid.
func (s *Subagent) sound() error {
	switch {
	case !validName.MatchString(s.Name):
		return fmt.Errorf("subagent %q: name: %s", s.Name, nameRule)
	case s.Factory == nil:
		return fmt.Errorf("subagent %q: the factory is nil: set Factory", s.Name)
	case !utf8.ValidString(s.Description):
		return fmt.Errorf("subagent %q: the description is not UTF-8", s.Name)
	case slices.Contains(s.Agents, ""):
		return fmt.Errorf("subagent %q: agents: a name is empty", s.Name)
	default:
		return nil
	}
}

// timeout returns the timeout of a task, or 0 for none.
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

// errNoRunner means that a factory returned nil without an error.
var errNoRunner = errors.New("its factory returned nothing to run")
