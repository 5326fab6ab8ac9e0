package memory

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Options are the settings of an [Extension]. A nil *Options is valid.
type Options struct {
	// User says whose memories a session reads and writes, by name, for a program with
	// several users. No user sees what another one told, or had the agent note. A session
	// for which it fails, or whose user has no name, reads and writes nothing. It is asked
	// several times in a turn, and by jobs. Defaults to one user without a name.
	User func(ctx context.Context, session string) (string, error)
	// Project names the project whose memories are read and written besides; its users
	// share them. Defaults to none: what is about a project is then remembered as the
	// user's.
	Project string
	// ReadOnly recalls and never writes. Defaults to false.
	ReadOnly bool
	// Propose has what is remembered wait until somebody accepts it, see
	// [Store.Accept]. Defaults to false.
	Propose bool
	// Classify says what a turn may do, beyond what [Classify] reads from its text: what
	// either forbids is forbidden, and so is everything if it fails. Defaults to none.
	Classify func(ctx context.Context, turn belay.TurnBegun) (Access, error)
	// Transcript is where turns are read from that are over: the agent's store. Defaults
	// to none: then nothing is extracted, and only tools write.
	Transcript Transcript
	// Extractor finds what is worth remembering in a turn. Defaults to Sentences.
	Extractor Extractor
	// Recall is how many memories each of the two recalls adds at most. Defaults to 6.
	Recall int
	// RecallCharacters bounds what each of them adds. Defaults to 2,000.
	RecallCharacters int
	// Subagent is the name of a subagent that has the tools instead of the agent: see
	// [Extension.SubagentTools]. Defaults to none: the agent has them.
	Subagent string
}

// Extension gives an agent the memories of a store. Make one with [New], and put it into
// the agent's Options.Extensions. Several agents may share one.
type Extension struct {
	store *Store
	opts  Options

	mu      sync.Mutex
	parents map[string]*parent // by session: those whose subagent is at work
}

var (
	_ belay.HookExtension  = (*Extension)(nil)
	_ belay.RouteExtension = (*Extension)(nil)
)

// New makes an extension of a store, which stays the caller's to close.
func New(store *Store, opts *Options) (*Extension, error) {
	e := &Extension{store: store, parents: make(map[string]*parent)}
	if opts != nil {
		e.opts = *opts
	}
	if e.opts.Recall == 0 {
		e.opts.Recall = 6
	}
	if e.opts.RecallCharacters == 0 {
		e.opts.RecallCharacters = 2_000
	}
	if e.opts.Extractor == nil {
		e.opts.Extractor = Sentences{}
	}
	switch {
	case store == nil:
		return nil, errors.New("memory: there is no store: make one with Open")
	case e.opts.Recall < 0 || e.opts.RecallCharacters < 0:
		return nil, errors.New("memory: recall: it is negative")
	case e.opts.ReadOnly && e.opts.Propose:
		return nil, errors.New("memory: what is read only has nothing to propose: set one of ReadOnly and Propose")
	}
	return e, nil
}

// Name is the route of the tools, and told in errors.
func (e *Extension) Name() string { return "memory" }

// longestLook bounds what a turn waits for.
const longestLook = 10 * time.Second

// Hooks are the subscriptions that make an agent remember. None of them holds in
// subagents: a child sees its prompt and nothing else.
func (e *Extension) Hooks() []hook.Subscription {
	own := func(needs hook.Capability, description string) *hook.Options {
		return &hook.Options{Description: description, Version: "1", NoInherit: true, Capabilities: needs, Timeout: longestLook}
	}
	policy := own(hook.CanSetPolicy, "says whether the turn may read and write memories")
	policy.Failure = belay.TurnPrePolicy.Fallback(Access{}.policy()) // a classifier that did not answer said no
	guard := own(hook.CanBlock, "refuses the tools that the turn's policy does not allow, whoever offers them")
	guard.Match = hook.Match{Tools: []string{SearchTool, LookupTool, RememberTool, ForgetTool}}
	hooks := []hook.Subscription{
		belay.TurnPrePolicy.On("memory.policy", e.classify, policy),
		belay.TurnPrePromptContext.On("memory.recall", e.recall, own(hook.CanAddContext, "recalls what the user's text brings to mind")),
		belay.TurnPostPreflightPromptContext.On("memory.active", e.recallPlanned, own(hook.CanAddContext, "recalls what the preflight plan asks for")),
		belay.TurnPreToolMaterialization.On("memory.tools", e.bundle, own(hook.CanAddTools, "offers the tools that the turn's policy allows")),
		belay.TurnPrePromptCompile.On("memory.contract", e.contract, own(hook.CanAddSections, "tells the model how to use the tools")),
		belay.ToolPre.On("memory.guard", e.guard, guard),
	}
	if e.opts.Transcript != nil && !e.opts.ReadOnly {
		background := own(hook.CanAudit, "remembers what is worth it of the turn")
		background.Execution, background.Idempotent, background.Timeout = hook.Background, true, 2*time.Minute
		background.Retry = hook.Retry{Attempts: 5, Delay: time.Second, Exponential: true, Cap: time.Minute}
		background.Match = hook.Match{Labels: map[string][]string{"reason": {string(belay.EndTurn), string(belay.EndMaxSteps), string(belay.EndBudget), string(belay.EndStuck)}}}
		hooks = append(hooks, belay.TurnPostTurn.On("memory.extract", e.extract, background))
	}
	if e.opts.Subagent != "" {
		hooks = append(hooks,
			belay.SubagentStart.On("memory.lend", e.lend, own(hook.CanBlock, "lets the subagent that has the tools do what the turn may")),
			belay.SubagentStop.On("memory.return", e.takeBack, own(hook.CanAudit, "ends what the subagent may do")))
	}
	return hooks
}

// view is what a turn sees: the memories of its user, of its project if it has one, and
// of its agent.
type view struct {
	user, agent Scope
	project     *Scope
}

// viewOf is the view of a session and an agent. It fails if nobody knows whose session
// it is: what cannot be distinguished is not shown.
func (e *Extension) viewOf(ctx context.Context, session, agent string) (view, error) {
	v := view{user: Scope{Kind: User}, agent: Scope{Agent, agent}}
	if e.opts.Project != "" {
		v.project = &Scope{Project, e.opts.Project}
	}
	if e.opts.User == nil {
		return v, nil
	}
	name, err := e.opts.User(ctx, session)
	if err == nil && name == "" {
		err = errors.New("Options.User gave it no name")
	}
	if err != nil {
		return view{}, &hook.SafeError{Message: "whose session it is could not be found out, so it has no memories", Err: err}
	}
	// What an agent notes is about the one it talks with.
	v.user.Name, v.agent.Name = name, url.PathEscape(agent)+"/"+name
	return v, nil
}

// scope is the scope of a kind. What is no kind is the user's.
func (v view) scope(kind Kind) Scope {
	switch {
	case kind == Agent:
		return v.agent
	case kind == Project && v.project != nil:
		return *v.project
	default:
		return v.user
	}
}

// scopes are all of them.
func (v view) scopes() []Scope {
	scopes := []Scope{v.user, v.agent}
	if v.project != nil {
		scopes = append(scopes, *v.project)
	}
	return scopes
}

// parent is a turn whose subagent is at work.
type parent struct {
	access   Access
	agent    string
	children int
}

// lend lets the subagent do what the turn may. One that may do nothing is not asked.
func (e *Extension) lend(_ context.Context, in belay.SubagentCall) (belay.SubagentVerdict, error) {
	if in.Name() != e.opts.Subagent {
		return belay.SubagentVerdict{}, nil
	}
	access := accessOf(in.Policy())
	if !access.Read && !access.Write {
		return belay.DenySubagent("memories are not used in this turn"), nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.parents[in.Session()]
	if p == nil {
		p = new(parent)
		e.parents[in.Session()] = p
	}
	p.access, p.agent = access, in.Agent() // a session takes one turn at a time
	p.children++
	return belay.SubagentVerdict{}, nil
}

func (e *Extension) takeBack(_ context.Context, in belay.SubagentReturn) (belay.Note, error) {
	if in.Name() != e.opts.Subagent {
		return belay.Note{}, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.parents[in.Session()]; p != nil {
		if p.children--; p.children <= 0 {
			delete(e.parents, in.Session())
		}
	}
	return belay.Note{}, nil
}

// lent is what the turn that a child works for may do, with its session and its agent.
func (e *Extension) lent(child string) (session, agent string, access Access, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := len(child) - 1; i > 0; i-- { // the id of a child begins with its parent's
		if child[i] != '/' {
			continue
		}
		if p := e.parents[child[:i]]; p != nil {
			return child[:i], p.agent, p.access, nil
		}
	}
	return "", "", Access{}, fmt.Errorf("memories are not for this session: they are lent to the subagent %q of an agent that has the extension", e.opts.Subagent)
}
