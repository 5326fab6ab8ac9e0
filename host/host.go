package host

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
)

// Main is the name of the agent that the settings describe. The other agents are declared in files.
const Main = assembly.MainAgent

// Options are the parts that a program provides itself. With the zero value everything is as for the command
// line.
type Options struct {
	// Dir is where the search for the project begins; it goes up from there. Defaults to the working
	// directory.
	Dir string
	// UserDir is the user's directory for the settings of all programs. Defaults to os.UserConfigDir.
	UserDir string
	// Environ are the environment variables for settings, keys, hooks and MCP servers. Defaults to os.Environ.
	Environ []string
	// Settings overrule those of the files and the environment.
	Settings []Setting
	// MCP are files that declare further MCP servers.
	MCP []string

	// Model answers in place of the model that the settings name. A declared agent that names a model keeps its own.
	Model belay.Model
	// Store keeps the sessions in place of the store that the settings name. The program closes it.
	Store belay.Store
	// Approver decides about calls that need approval. Without one their turns park.
	Approver belay.Approver
	// Hooks and Extensions are added to every agent.
	Hooks      []hook.Subscription
	Extensions []belay.Extension

	// NoJobs leaves background work to the program, for example to a worker of package engine.
	NoJobs bool
	// Logger logs what the runtime does. Without one nothing is logged, except that declared hooks log to the file
	// hooks.log beside the store.
	Logger *slog.Logger
	// Notify gets the notices, from any goroutine. Without it they are dropped.
	Notify func(Notice)
}

// A Setting is one value of the settings. The page docs/cli.md lists them.
type Setting struct {
	// Path names the setting: "model", "mode", "limits.steps".
	Path string
	// Value is written as in an environment variable: "read-only", "20", "a,b".
	Value string
	// From is the source of the value in messages, such as a flag of the program. Defaults to "host.Options".
	From string
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
func (n Notice) String() string { return assembly.Notice(n).String() }

// A Host makes agents of the settings, on one store.
type Host struct {
	opts   Options
	makes  *assembly.Assembler
	store  belay.Store
	closes func() error // the store, if the host opened it

	mu     sync.Mutex
	agents map[string]*assembly.Assembled
	order  []string // in the order in which the agents were made
	closed bool
}

// Open reads the settings and opens the store. Without a model it opens no store. The options may be nil. Close the host
// when the program ends.
func Open(ctx context.Context, opts *Options) (*Host, error) {
	h := &Host{agents: make(map[string]*assembly.Assembled), closes: func() error { return nil }}
	if opts != nil {
		h.opts = *opts
	}
	o := &h.opts
	with := &assembly.Options{Environ: o.Environ, MCP: o.MCP, Hooks: o.Hooks, Extensions: o.Extensions, Logger: o.Logger}
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
		if err := assembly.MakeHome(settings.Home()); err != nil { // for long results, and the log of hooks
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

// settings reads the settings. Each agent has its own: a declared agent changes them.
func (h *Host) settings() (*config.Loaded, error) {
	settings, err := config.Load(&config.Options{Dir: h.opts.Dir, UserDir: h.opts.UserDir, Environ: h.opts.Environ})
	if err != nil {
		return nil, err
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

// errClosed is the error of a host that is closed.
var errClosed = errors.New("host: it is closed")

// Agent returns the agent with a name: [Main], or one that is declared in a file. The first call makes it. The host closes
// it.
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

// Close ends the agents and everything that they use, the last one first, and closes the store that Open opened.
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
