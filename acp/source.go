package acp

import (
	"context"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
)

// Source opens the agents of sessions. Its methods may be called from several goroutines.
type Source interface {
	// Open opens the agent of a session. An error that wraps a [*NoModelError] tells the
	// editor that the user must set up a model first.
	Open(ctx context.Context, p *Project) (*Workspace, error)
	// Sessions returns the store with the sessions of a directory, and the directory of its
	// project. An empty dir means the working directory. Call done when the store is no
	// longer used.
	Sessions(ctx context.Context, dir string) (store belay.ListStore, project string, done func(), err error)
	// Ready returns why no agent can run in the working directory, such as a missing key, or
	// nil.
	Ready(ctx context.Context) error
}

// NoModelError says that there is no model, or no key for it.
type NoModelError struct{ Err error }

func (e *NoModelError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NoModelError) Unwrap() error { return e.Err }

// Project says where a session works.
type Project struct {
	// Dir is the working directory, an absolute path. Dirs are more directories that the
	// session may use.
	Dir  string
	Dirs []string
	// Session is the id of the session. Stored is true if it is in the store already.
	Session string
	Stored  bool
	// Servers are the MCP servers that the editor passes along.
	Servers []mcptool.Server
	// Notify gets messages for the user about the files and servers of the agent. It may be
	// called from any goroutine.
	Notify func(text string)
}

// Workspace is the agent of a session, and what an editor can show and change. Functions that
// are nil switch their feature off. Functions may be called while a turn runs.
type Workspace struct {
	// Agent runs the turns. Calls that need approval must park the turn: leave out
	// [belay.Options.Approver].
	Agent *belay.Agent
	// Store is the store of the agent.
	Store belay.ListStore
	// Dir is the directory that the relative paths of tools start from.
	Dir string

	// Modes are the permission modes of a session. Mode returns the current one, and SetMode
	// switches to another one, also for a turn that runs.
	Modes   []Choice
	Mode    func() string
	SetMode func(mode string) error
	// Models returns the models that the user can choose, and the name of the session's
	// model. SetModel switches to another one, from the next turn on.
	Models   func(ctx context.Context) (models []Choice, current string, err error)
	SetModel func(ctx context.Context, session *belay.Session, name string) error
	// Advise describes a call that needs approval.
	Advise func(ctx context.Context, q *belay.Question) (Advice, error)
	// ReadFile returns the text of a file that a call is about to replace, for a diff. It
	// returns false if there is no such file, or if its text may not be shown.
	ReadFile func(ctx context.Context, path string) (string, bool)
	// Window is the size of the model's context in tokens. Defaults to 0, for unknown.
	Window int
	// Close frees everything that the workspace uses. Defaults to nothing.
	Close func() error
}

// Choice is something that a user can choose.
type Choice struct{ ID, Name, About string }

// Advice helps a person to decide about a call.
type Advice struct {
	// Why is one sentence: who asks for approval, and why. Run says how a command would run.
	Why, Run string
	// Pattern covers this call and similar calls. It is empty if there is no such pattern.
	Pattern string
}

// Fixed returns a source that uses one agent for all sessions, whatever their directory is.
// dir is the directory of the agent's tools. The agent must have a store that lists
// sessions, and no approver.
func Fixed(agent *belay.Agent, store belay.ListStore, dir string) Source { //nolint:ireturn // a source is used through the interface
	return &fixed{agent, store, dir}
}

type fixed struct {
	agent *belay.Agent
	store belay.ListStore
	dir   string
}

// Open returns the agent.
func (f *fixed) Open(_ context.Context, p *Project) (*Workspace, error) {
	if len(p.Servers) > 0 {
		return nil, errors.New("this agent takes no MCP servers from the editor: remove them from the settings of the editor")
	}
	return &Workspace{Agent: f.agent, Store: f.store, Dir: f.dir}, nil
}

// Sessions returns the store of the agent.
func (f *fixed) Sessions(context.Context, string) (belay.ListStore, string, func(), error) { //nolint:ireturn // the interface asks for it
	return f.store, f.dir, func() {}, nil
}

// Ready returns nil.
func (f *fixed) Ready(context.Context) error { return nil }
