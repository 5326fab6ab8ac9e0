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
	// User returns the name of a session's user, for programs with several users. No user
	// sees the memories of another. If User fails or returns no name, the session reads and
	// writes no memories. The extension calls User several times in a turn, and in
	// background jobs. Defaults to one user without a name.
	User func(ctx context.Context, session string) (string, error)
	// Project is the name of a project. Turns then also read and write its memories, which
	// all its users share. Defaults to none: facts about a project are then stored as the
	// user's.
	Project string
	// ReadOnly allows recall but no writing. Defaults to false.
	ReadOnly bool
	// Propose makes new memories wait until somebody accepts them with [Store.Accept].
	// Defaults to false.
	Propose bool
	// Classify returns what a turn may do, in addition to the function [Classify]. Each of
	// the two can forbid access. If Options.Classify fails, all access is forbidden.
	// Defaults to none.
	Classify func(ctx context.Context, turn belay.TurnBegun) (Access, error)
	// Transcript is the agent's store, from which extraction reads finished turns. Defaults
	// to none: then only the tools write memories.
	Transcript Transcript
	// Extractor finds what is worth remembering in a turn. Defaults to [Sentences].
	Extractor Extractor
	// Recall is the maximum number of memories that each recall adds. A turn has two
	// recalls. Defaults to 6.
	Recall int
	// RecallCharacters is the maximum length of the text that each recall adds. Defaults to
	// 2,000.
	RecallCharacters int
	// Subagent is the name of a subagent that has the tools instead of the agent. See
	// [Extension.SubagentTools]. Defaults to none: the agent has the tools.
	Subagent string
}

// Extension gives an agent the memories of a store. Make one with [New], and add it to the
// agent's Options.Extensions. Several agents may share it.
type Extension struct {
	store *Store
	opts  Options

	mu      sync.Mutex
	parents map[string]*parent // turns whose subagent is running, by session
}

var (
	_ belay.HookExtension  = (*Extension)(nil)
	_ belay.RouteExtension = (*Extension)(nil)
)

// New returns an extension for a store. The caller closes the store.
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
		return nil, errors.New("memory: the store is nil: make one with memory.Open")
	case e.opts.Recall < 0 || e.opts.RecallCharacters < 0:
		return nil, errors.New("memory: Recall or RecallCharacters is negative: use 0 or more")
	case e.opts.ReadOnly && e.opts.Propose:
		return nil, errors.New("memory: set either ReadOnly or Propose, not both")
	}
	return e, nil
}

// Name returns the name of the tools' route, which errors also use.
func (e *Extension) Name() string { return "memory" }

// longestLook is the maximum time that a turn waits for memories.
const longestLook = 10 * time.Second

// Hooks returns the subscriptions of the extension. None of them applies to subagents,
// because a subagent sees only its prompt.
func (e *Extension) Hooks() []hook.Subscription {
	own := func(needs hook.Capability, description string) *hook.Options {
		return &hook.Options{Description: description, Version: "1", NoInherit: true, Capabilities: needs, Timeout: longestLook}
	}
	policy := own(hook.CanSetPolicy, "says whether the turn may read and write memories")
	policy.Failure = belay.TurnPrePolicy.Fallback(Access{}.policy()) // if the classifier fails, nothing is allowed
	guard := own(hook.CanBlock, "denies memory tools that the turn's policy does not allow")
	guard.Match = hook.Match{Tools: []string{SearchTool, LookupTool, RememberTool, ForgetTool}}
	hooks := []hook.Subscription{
		belay.TurnPrePolicy.On("memory.policy", e.classify, policy),
		belay.TurnPrePromptContext.On("memory.recall", e.recall, own(hook.CanAddContext, "recalls memories that match the user's text")),
		belay.TurnPostPreflightPromptContext.On("memory.active", e.recallPlanned, own(hook.CanAddContext, "recalls memories that the preflight plan asks for")),
		belay.TurnPreToolMaterialization.On("memory.tools", e.bundle, own(hook.CanAddTools, "offers the tools that the turn's policy allows")),
		belay.TurnPrePromptCompile.On("memory.contract", e.contract, own(hook.CanAddSections, "tells the model how to use the tools")),
		belay.ToolPre.On("memory.guard", e.guard, guard),
	}
	if e.opts.Transcript != nil && !e.opts.ReadOnly {
		background := own(hook.CanAudit, "remembers useful facts from the turn")
		background.Execution, background.Idempotent, background.Timeout = hook.Background, true, 2*time.Minute
		background.Retry = hook.Retry{Attempts: 5, Delay: time.Second, Exponential: true, Cap: time.Minute}
		background.Match = hook.Match{Labels: map[string][]string{"reason": {string(belay.EndTurn), string(belay.EndMaxSteps), string(belay.EndBudget), string(belay.EndStuck)}}}
		hooks = append(hooks, belay.TurnPostTurn.On("memory.extract", e.extract, background))
	}
	if e.opts.Subagent != "" {
		hooks = append(hooks,
			belay.SubagentStart.On("memory.lend", e.lend, own(hook.CanBlock, "gives the memory subagent the access of the turn")),
			belay.SubagentStop.On("memory.return", e.takeBack, own(hook.CanAudit, "ends the access of the memory subagent")))
	}
	return hooks
}

// view contains the scopes that a turn sees: its user, its project (if it has one) and its
// agent.
type view struct {
	user, agent Scope
	project     *Scope
}

// viewOf returns the view of a session and an agent. It returns an error if the session's
// user is unknown.
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
		err = errors.New("Options.User returned an empty name")
	}
	if err != nil {
		return view{}, &hook.SafeError{Message: "cannot determine the user of the session, so the session reads and writes no memories", Err: err}
	}
	// The notes of an agent are about its user, so each user has separate notes.
	v.user.Name, v.agent.Name = name, url.PathEscape(agent)+"/"+name
	return v, nil
}

// scope returns the scope of a kind. For an unknown kind, and for a project if there is
// none, it returns the user's scope.
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

func (v view) scopes() []Scope {
	scopes := []Scope{v.user, v.agent}
	if v.project != nil {
		scopes = append(scopes, *v.project)
	}
	return scopes
}

// parent is a turn whose subagent is running, with the access of the turn.
type parent struct {
	access   Access
	agent    string
	children int
}

// lend gives the subagent the access of the turn. If the turn has no access, lend denies
// the subagent.
func (e *Extension) lend(_ context.Context, in belay.SubagentCall) (belay.SubagentVerdict, error) {
	if in.Name() != e.opts.Subagent {
		return belay.SubagentVerdict{}, nil
	}
	access := accessOf(in.Policy())
	if !access.Read && !access.Write {
		return belay.DenySubagent("the user or a policy does not allow memories in this turn"), nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.parents[in.Session()]
	if p == nil {
		p = new(parent)
		e.parents[in.Session()] = p
	}
	p.access, p.agent = access, in.Agent() // a session runs only one turn at a time
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

// lent returns the session, the agent and the access of the turn that a child works for.
func (e *Extension) lent(child string) (session, agent string, access Access, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := len(child) - 1; i > 0; i-- { // the id of a child begins with the id of its parent
		if child[i] != '/' {
			continue
		}
		if p := e.parents[child[:i]]; p != nil {
			return child[:i], p.agent, p.access, nil
		}
	}
	return "", "", Access{}, fmt.Errorf("this session has no access to memories: only a running subagent %q has access", e.opts.Subagent)
}
