package host

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/mcptool"
)

// Main is the name of the agent that the settings describe. Other agents are declared in
// files.
const Main = assembly.MainAgent

// Options are the parts that a program provides itself. The zero value means the same
// behaviour as the command line.
type Options struct {
	// Dir is the directory where the search for the project begins. The search goes up from
	// there. Defaults to the working directory.
	Dir string
	// UserDir is the directory in which programs keep the user's settings. Defaults to
	// os.UserConfigDir.
	UserDir string
	// Environ has the environment variables for settings, keys, hooks and MCP servers.
	// Defaults to os.Environ.
	Environ []string
	// Settings override the settings from files and from the environment.
	Settings []Setting
	// MCP lists files that declare more MCP servers.
	MCP []string
	// Servers are more MCP servers. They start without the user's trust, as those of MCP.
	Servers []mcptool.Server
	// Spaces are directories of spaces that every agent loads, besides those that the user has
	// loaded with "belay space load". Their programs run only if the user has trusted them.
	Spaces []string
	// Roots are more directories that the tools may use like the project, besides permit.roots
	// of the settings.
	Roots []string

	// Model replaces the model that the settings name. An agent that is declared with its
	// own model keeps that model.
	Model belay.Model
	// Store replaces the store that the settings name. Host.Close does not close it.
	Store belay.Store
	// Approver decides about calls that need approval. Without one, turns park.
	Approver belay.Approver
	// Hooks and Extensions are added to every agent.
	Hooks      []hook.Subscription
	Extensions []belay.Extension

	// NoJobs leaves background jobs to the program, for example to a worker of package
	// engine.
	NoJobs bool
	// Logger gets the log of the runtime and of declared hooks. Without one, the log of the
	// runtime is dropped, and declared hooks log to the file hooks.log beside the store.
	Logger *slog.Logger
	// Notify gets the notices. It may be called from any goroutine. Without it, notices are
	// dropped.
	Notify func(Notice)
}

// A Setting is one value of the settings. docs/cli.md lists all settings.
type Setting struct {
	// Path is the name of the setting, such as "model", "mode" or "limits.steps".
	Path string
	// Value is written as in an environment variable, such as "read-only", "20" or "a,b".
	Value string
	// From says in messages where the value comes from, such as a flag of the program.
	// Defaults to "host.Options".
	From string
}

// A Notice is a message for people about the files and services that an agent uses.
type Notice struct {
	// Warning is true for a warning and false for information.
	Warning bool
	// Label is the kind of the notice: "warning", "not loaded", "not used", or empty.
	Label string
	// Text is the notice. It contains no control sequences for a terminal.
	Text string
	// Later is true if the problem appeared while agents were running, for example because
	// a file changed.
	Later bool
}

// String returns the notice as one text, with its label in front.
func (n Notice) String() string { return assembly.Notice(n).String() }

// A Host makes agents from the settings. They share one store.
type Host struct {
	opts   Options
	makes  *assembly.Assembler
	events *belay.Events // of all agents
	store  belay.Store
	closes func() error // closes the store, if the host opened it

	mu     sync.Mutex
	agents map[string]*assembly.Assembled
	order  []string // the names of the agents, in the order in which they were made
	closed bool
}

// Open reads the settings and opens the store. If the model cannot be opened, Open returns
// an error and opens no store. The options may be nil. Close the host when the program
// ends.
func Open(ctx context.Context, opts *Options) (*Host, error) {
	h := &Host{events: belay.NewEvents(), agents: make(map[string]*assembly.Assembled), closes: func() error { return nil }}
	if opts != nil {
		h.opts = *opts
	}
	o := &h.opts
	with := &assembly.Options{Environ: o.Environ, MCP: o.MCP, Servers: o.Servers, Hooks: o.Hooks, Extensions: o.Extensions, Logger: o.Logger, Events: h.events}
	if o.Notify != nil {
		with.Notify = func(n assembly.Notice) { o.Notify(Notice(n)) }
	}
	h.makes = assembly.New(with)
	settings, err := h.settings()
	if err != nil {
		return nil, err
	}
	if o.Model == nil {
		if _, err := assembly.OpenModel(settings); err != nil {
			return nil, err
		}
	}
	if h.store = o.Store; h.store != nil {
		if err := assembly.MakeHome(settings.Home()); err != nil { // the directory for long results and the log of hooks
			return nil, err
		}
	} else {
		store, err := h.makes.OpenStore(ctx, settings)
		if err != nil {
			return nil, err
		}
		h.store, h.closes = store, store.Close
	}
	return h, nil
}

// settings reads the settings. Each agent needs its own copy, because a declared agent
// changes it.
func (h *Host) settings() (*config.Loaded, error) {
	settings, err := config.Load(&config.Options{Dir: h.opts.Dir, UserDir: h.opts.UserDir, Environ: h.opts.Environ})
	if err != nil {
		return nil, err
	}
	for _, dir := range h.opts.Spaces {
		full, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		settings.Spaces = append(settings.Spaces, full)
	}
	for _, dir := range h.opts.Roots {
		full, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		settings.Permit.Roots = append(settings.Permit.Roots, full)
	}
	for _, s := range h.opts.Settings {
		from := s.From
		if from == "" {
			from = "host.Options"
		}
		if err := settings.Overrule(s.Path, from, s.Value); err != nil {
			return nil, err
		}
	}
	return settings, nil
}

// Store returns the store that keeps the sessions.
func (h *Host) Store() belay.Store { return h.store } //nolint:ireturn // which one it is, the program or the settings say

// Watch yields the events of all agents of the host. With belay.WatchOptions.After it also
// yields the stored events of turns that other processes run: see [belay.Events.Watch].
func (h *Host) Watch(ctx context.Context, opts *belay.WatchOptions) iter.Seq2[belay.Event, error] {
	return h.events.Watch(ctx, h.store, opts)
}

// Share exchanges the events of running turns with other processes that use the store, until
// ctx ends: see [belay.Events.Share]. It returns at once if the store cannot carry messages.
func (h *Host) Share(ctx context.Context) {
	if bus, ok := h.store.(belay.BusStore); ok {
		h.events.Share(ctx, bus)
	}
}

// Project describes the hooks, skills, agents and models of the project. Package serve uses
// it.
func (h *Host) Project() *inspect.Project {
	return &inspect.Project{From: h.makes, Settings: h.settings}
}

// errClosed is the error of a host that is closed.
var errClosed = errors.New("host: the host is closed")

// Agent returns the agent with the given name: [Main], or an agent that is declared in a
// file. The first call makes the agent. Host.Close closes it.
func (h *Host) Agent(ctx context.Context, name string) (*belay.Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	if made := h.agents[name]; made != nil {
		return made.Agent, nil
	}
	settings, err := h.settings()
	if err != nil {
		return nil, err
	}
	made := &assembly.Assembled{Settings: settings, Store: h.store, Serves: true, GivenModel: h.opts.Model}
	if name != Main {
		if err := made.TakeDeclared(name); err != nil {
			return nil, err
		}
	}
	ctx = context.WithoutCancel(ctx) // the agent lives as long as the host
	model, err := made.Model()
	if err == nil {
		err = h.makes.Assemble(ctx, made, model, h.opts.Approver)
	}
	if err != nil {
		return nil, errors.Join(err, made.Close())
	}
	if !h.opts.NoJobs {
		h.makes.Background(ctx, made)
	}
	h.agents[name] = made
	h.order = append(h.order, name)
	return made.Agent, nil
}

// SetMode switches the permission mode of a session of an agent, and of the sessions of its
// subagents, from the next call on. That also applies to a running turn. With an empty mode the
// session follows the settings again. The agent must have been made.
func (h *Host) SetMode(agent, session, mode string) error {
	made, err := h.made(agent)
	if err != nil {
		return err
	}
	return made.Floor.SetMode(session, mode)
}

// ModeOf returns the permission mode of a session of an agent. The agent must have been made.
func (h *Host) ModeOf(agent, session string) (string, error) {
	made, err := h.made(agent)
	if err != nil {
		return "", err
	}
	return made.Floor.ModeOf(session).Name, nil
}

// made returns an agent that was made.
func (h *Host) made(name string) (*assembly.Assembled, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if made := h.agents[name]; made != nil {
		return made, nil
	}
	return nil, fmt.Errorf("host: the agent %q was not made: call Agent first", name)
}

// Close closes the agents, the last one first, and everything that they use. It also closes
// the store, if Open opened it.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	var problems []error
	for len(h.order) > 0 {
		last := len(h.order) - 1
		problems = append(problems, h.agents[h.order[last]].Close())
		h.order = h.order[:last]
	}
	return errors.Join(append(problems, h.closes())...)
}
