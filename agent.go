package belay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay/hook"
)

// Agent is a model with its tools, hooks and extensions. Make one with [New]. An Agent is
// safe for concurrent use. It starts goroutines of its own only for a [WatchExtension] and,
// if it has no store, for background work: see [Options.Store].
type Agent struct {
	model *namedModel
	opts  Options
	hooks *hook.Runtime
	tools atomic.Pointer[toolset]
	// stepped caches the most recent toolsets that include tools of a StepToolExtension,
	// newest first.
	stepped atomic.Pointer[[]*steppedTools]
	// toldLists holds the names of tools whose incomplete list turn.stepTools has already
	// reported: see ListingTool. turn.stepTools reports each tool only once.
	toldLists sync.Map
	// limited caches the most recent toolsets of this agent as a child of other agents: see
	// limitedTools.
	limited    atomic.Pointer[[]*limitedTools]
	directives atomic.Pointer[map[string]*Directive]
	prompt     atomic.Pointer[prompt] // the beginning of every turn's prompt
	composed   atomic.Pointer[composition]
	limits     *limits                // from Options.Resources; nil: no limits
	below      atomic.Pointer[limits] // the limits of this agent in its last run as a child: see limitsBelow
	intercepts atomic.Pointer[[]*Interceptor]
	store      Store
	queue      *ownQueue // nil if the agent has a store, or if Options.Runtime has a queue
	// riding says that the records of hook runs are stored in the commits of the turn. It
	// is false for a journal in memory, where this would be a useless copy.
	riding bool
	serial string // distinguishes the turns of this agent from those of others
	turns  atomic.Uint64
	events *Events
	ending chan struct{} // closed when the agent begins to close: turns no longer wait for watchers

	mu       sync.Mutex
	sessions map[string]*Session
	unstored map[string]unstoredUsage // by session id
	closed   atomic.Bool
	done     chan struct{} // closed by Close
	changing sync.Mutex    // guards changes of the tools, the directives, the interceptors and the composition, and the closing of the agent

	leaving      atomic.Bool // Replace is replacing this agent
	registration registration
	watching     []*extensionWatch // guarded by mu
}

// namedModel is a model with its info.
type namedModel struct {
	Model
	info ModelInfo
}

func named(m Model) *namedModel {
	n := &namedModel{Model: m}
	if i, ok := m.(InfoModel); ok {
		n.info = i.Info()
	}
	return n
}

// New makes an agent that uses the model. It calls the Build method of each
// [BuildExtension], which may change the agent's configuration, and the Register method of
// each [RegisterExtension]. [Agent.Close] calls their Unregister method.
func New(model Model, opts *Options) (*Agent, error) {
	return newAgent(context.Background(), model, opts)
}

// newAgent makes an agent and registers it with its extensions.
func newAgent(ctx context.Context, model Model, opts *Options) (*Agent, error) {
	a, err := makeAgent(ctx, model, opts)
	if err != nil {
		return nil, err
	}
	if err := a.registerAll(ctx); err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	a.watchExtensions(a.composed.Load().extensions)
	return a, nil
}

// makeAgent makes an agent. It does not call the Register method of its extensions.
func makeAgent(ctx context.Context, model Model, opts *Options) (*Agent, error) {
	if model == nil {
		return nil, errors.New("new agent: the model is nil: pass a model to New")
	}
	a := &Agent{model: named(model), sessions: make(map[string]*Session), done: make(chan struct{}), ending: make(chan struct{}), serial: "-" + strings.ToLower(rand.Text()[:5])}
	if opts != nil {
		a.opts = *opts
		a.opts.Scope = slices.Clone(opts.Scope)
	}
	if err := a.opts.complete(); err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	a.store = a.opts.Store
	if a.store == nil {
		a.store = newTransientStore()
	}
	if a.events = a.opts.Events; a.events == nil {
		a.events = new(Events)
	}
	if err := a.makeRuntime(); err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	c, err := newComposition(AgentConfig{
		ID: a.opts.Name + a.serial, Name: a.opts.Name, Instructions: a.opts.Instructions, Resources: a.opts.Resources,
	}).with(ctx, a.opts.Extensions)
	if err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	a.composed.Store(c)
	if len(c.config.Resources) > 0 {
		a.limits = &limits{own: c.config.clone().Resources}
	}
	brought, err := gather(c.extensions)
	if err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	a.tools.Store(&toolset{})
	if _, err := a.addTools(c, append(owned("", a.opts.Tools), brought.tools...)); err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	if err := a.checkSettings(a.model.Model); err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	if err := a.checkStepTools(a.tools.Load(), c); err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	a.directives.Store(&map[string]*Directive{})
	if _, err := a.Define(slices.Concat(a.opts.Directives, brought.directives)...); err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	if _, err := a.hooks.Install(slices.Concat(a.opts.Hooks, brought.hooks)...); err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	a.intercepts.Store(new([]*Interceptor))
	if _, err := a.Intercept(a.opts.Interceptors...); err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	a.warnOfStrays(c.extensions)
	return a, nil
}

// ownRuns is how many records of hook runs an agent without a store keeps.
const ownRuns = 4096

func (a *Agent) makeRuntime() error {
	var opts hook.RuntimeOptions
	if a.opts.Runtime != nil {
		opts = *a.opts.Runtime
	}
	if js, ok := a.store.(JournalStore); ok && opts.Journal == nil {
		opts.Journal = js.Journal()
		_, inMemory := opts.Journal.(*hook.MemoryJournal)
		a.riding = !inMemory
		if opts.Queue == nil {
			opts.Queue = js.Queue()
		}
	}
	if _, transient := a.store.(*transientStore); transient && opts.Queue == nil {
		if opts.Journal == nil {
			opts.Journal = hook.NewMemoryJournal(ownRuns)
		}
		a.queue = &ownQueue{MemoryQueue: hook.NewMemoryQueue(opts.Journal, &hook.MemoryQueueOptions{Clock: opts.Clock}), work: func(ctx context.Context) error { return a.hooks.Work(ctx) }}
		opts.Queue = a.queue
	}
	if opts.Logger == nil {
		opts.Logger = a.opts.Logger
	}
	opts.WrapJob = a.wrapJob(opts.WrapJob)
	runtime, err := hook.NewRuntime(Phases(), &opts)
	a.hooks = runtime
	return err
}

// Hooks returns the agent's hook runtime: install subscriptions there, remove them by
// lease or by id, look at plans, register job handlers. New gates and tool.post hooks
// apply from the next step on. Other new subscriptions apply from the next turn on.
func (a *Agent) Hooks() *hook.Runtime { return a.hooks }

// Session returns the session with the given id. The session opens when you first use it.
// Until the session is closed, the same id gives the same *Session.
func (a *Agent) Session(id string) *Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[id]
	if s == nil {
		s = &Session{agent: a, id: id, slot: make(chan struct{}, 1)}
		a.sessions[id] = s
	}
	return s
}

func (a *Agent) forget(s *Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions[s.id] == s {
		delete(a.sessions, s.id)
	}
}

// Decide records the decision about an approval. Call [Session.Resume] to continue the
// parked turn. Decide sets d.Time to the current time. It returns ErrScope if the pattern
// of the scope is invalid.
func (a *Agent) Decide(ctx context.Context, d Decision) (Approval, error) {
	if d.By == "" {
		return Approval{}, errors.New("decide: Decision.By is empty: set it to the person who decided")
	}
	if d.Scope.Kind == ScopePattern {
		floor, _ := a.opts.Authorizer.(PatternAuthorizer)
		if err := checkPattern(floor, d.Scope.Pattern); err != nil {
			return Approval{}, fmt.Errorf("decide approval %q: %w", d.Approval, err)
		}
	}
	d.Time = time.Now()
	return a.store.Decide(ctx, d)
}

// Close closes the agent's sessions, calls Unregister and Close of its extensions, and ends
// the streams of Watch. Close waits for running turns: cancel their contexts first if you
// do not want to wait. After Close, new turns fail with ErrClosed.
func (a *Agent) Close(ctx context.Context) error { return a.end(ctx, a.endExtensions) }

// Retire closes the agent but, unlike Close, does not call Close of its extensions. Use it
// for an agent that shares its extensions with other agents.
func (a *Agent) Retire(ctx context.Context) error {
	return a.end(ctx, func(context.Context) error { return nil })
}

// end closes the agent. It calls endExtensions after all turns, jobs and watchers have
// ended.
func (a *Agent) end(ctx context.Context, endExtensions func(ctx context.Context) error) error {
	a.changing.Lock()
	closed := a.closed.Swap(true)
	a.changing.Unlock()
	if closed {
		return nil
	}
	close(a.ending)
	defer close(a.done)
	var problems []error
	for _, s := range a.open() {
		problems = append(problems, s.Close(ctx))
	}
	problems = append(problems, a.hooks.Drain(ctx), a.finishJobs(ctx), a.unregisterForGood(ctx), a.stopWatching(ctx), endExtensions(ctx), a.hooks.Drain(ctx))
	return errors.Join(problems...)
}

// Name returns the agent's name.
func (a *Agent) Name() string { return a.opts.Name }

// ModelName returns the name of the agent's own model. It is empty if the model has no
// name.
func (a *Agent) ModelName() string { return a.model.info.Name }
