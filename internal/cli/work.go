package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
	"github.com/belay-run/belay/toolbox"
)

// work is an agent with its store, for as long as a command needs it.
type work struct {
	settings *config.Loaded
	session  *belay.SessionInfo // to go on with; nil for a new one
	store    sessionStore
	agent    *belay.Agent
	floor    *floor
	tools    []belay.Tool
	skills   *skill.Catalog
	declared *subagent.Declaration // what the agent is made of, if it is a declared one
	places   *places
	servers  *mcptool.Extension
	memories *memory.Store  // nil if nothing is remembered
	abandons bool           // it ends a turn, and needs no servers
	serves   bool           // it takes the turns of others, which may have begun with another model
	closers  []func() error // the last one first
}

// begin opens the store and makes the agent that the settings describe, or that
// took the turn which is to be gone on with. A nil approver means that nobody can
// be asked.
func (a *app) begin(ctx context.Context, settings *config.Loaded, o *runOptions, approver belay.Approver) (*work, error) {
	w := &work{settings: settings, abandons: o.abandons}
	if err := w.takeDeclared(o.agent); err != nil {
		return nil, err
	}
	begin := a.beginNew
	if o.goOn || o.session != "" {
		begin = a.beginOld
	}
	model, err := begin(ctx, w, o)
	if err == nil {
		err = a.makeAgent(ctx, w, model, approver)
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	w.closers = append(w.closers, func() error { return w.agent.Close(context.WithoutCancel(ctx)) }, startJobs(ctx, w.agent, a), a.settleMemory(ctx, w))
	return w, nil
}

// beginNew opens model and store for a new session. Without a model no store is
// made.
func (a *app) beginNew(ctx context.Context, w *work, _ *runOptions) (model belay.Model, err error) { //nolint:ireturn // see openModel
	if model, err = openModel(w.settings); err != nil {
		return nil, err
	}
	if w.store, err = a.openStore(ctx, w.settings); err != nil {
		return nil, err
	}
	w.closers = append(w.closers, w.store.Close)
	return model, nil
}

// beginOld opens the store for a session that is there, and the model that its
// open turn was begun with.
func (a *app) beginOld(ctx context.Context, w *work, o *runOptions) (model belay.Model, err error) { //nolint:ireturn // see openModel
	if err := missingStore(w.settings); err != nil {
		return nil, err
	}
	if w.store, err = a.openStore(ctx, w.settings); err != nil {
		return nil, err
	}
	w.closers = append(w.closers, w.store.Close)
	info, err := findSession(ctx, w.store, o.session)
	if o.open && o.session == "" {
		info, err = findOpen(ctx, w.store)
	}
	if err != nil {
		return nil, err
	}
	w.session = &info
	if isChild(info.ID) {
		return nil, usage("session %s is a subagent's, which has no turns but those that its parent gives it: go on with `belay resume %s`", info.ID, parentOf(info.ID))
	}
	if o.taskless && info.Held { // which needs no model to be told
		return nil, heldElsewhere(&info)
	}
	if o.taskless && info.State.Turn == nil {
		return nil, nothingOpen(&info)
	}
	if name := info.State.Agent; name != mainAgent {
		if err := w.takeDeclared(name); err != nil {
			return nil, fmt.Errorf("session %s is agent %s's: %w", info.ID, name, err)
		}
	}
	if o.resumes && !info.Held {
		if err := a.goOnAs(w.settings, &info); err != nil {
			return nil, err
		}
	}
	if o.abandons {
		return scripted.New(nil, nil), nil
	}
	if err := a.heedKept(w.settings, &info); err != nil {
		return nil, err
	}
	return openModel(w.settings)
}

// close ends it all, in order.
func (w *work) close() error {
	var problems []error
	for len(w.closers) > 0 {
		last := len(w.closers) - 1
		problems = append(problems, w.closers[last]())
		w.closers = w.closers[:last]
	}
	return errors.Join(problems...)
}

func (a *app) makeAgent(ctx context.Context, w *work, model belay.Model, approver belay.Approver) (err error) {
	s := w.settings
	spill := spillDir(s)
	if err := os.MkdirAll(spill, 0o700); err != nil {
		return fmt.Errorf("make a place for long results: %w", err)
	}
	if w.floor, err = a.newFloor(ctx, s, spill); err != nil {
		return err
	}
	if line := w.floor.relaxed(); line != "" {
		a.remarkf("%s", a.onErr.dim(line))
	}
	tools, closeTools, err := openTools(s, w.floor, spill)
	if err != nil {
		return err
	}
	w.closers = append(w.closers, closeTools)
	w.tools, w.skills = tools, openSkills(ctx, s)
	if w.places = a.openPlaces(ctx, s); w.places.err != nil {
		return usage("hooks, spaces or agents have mistakes, and what cannot be read may be a gate:\n%w", w.places.err)
	}
	a.tellUnheeded(s, w.places)
	if err := a.useMCP(ctx, w); err != nil {
		return err
	}
	declared := &declaredAgents{settings: s, failed: a.hookFailed, model: model, floor: w.floor, tools: tools, skills: w.skills, spill: spill, places: w.places, servers: w.servers}
	extensions, subagents, err := a.extensions(w, declared)
	if err != nil {
		return err
	}
	memories, err := a.useMemory(ctx, w)
	if err != nil {
		return err
	}
	a.warnUnpriced(w, model)
	var scope []string
	name, text, floor := mainAgent, cmp.Or(s.Instructions, instructions), belay.Authorizer(w.floor)
	if d := w.declared; d != nil {
		name, text, floor = d.Name, cmp.Or(d.Prompt, text), w.floor.inMode(d.Mode)
		if tools, err = declared.chosenTools(d); err != nil {
			return usage("%w", err)
		}
		scope = toolScope(d)
		own, err := declared.ownHooks(d)
		if err != nil {
			return usage("%w", err)
		}
		extensions = append(extensions, own...)
	}
	w.agent, err = belay.New(model, &belay.Options{
		Name:           name,
		Instructions:   text,
		Environment:    environment(s),
		Tools:          tools,
		Scope:          scope,
		Directives:     toolbox.Directives(),
		Models:         declared.find,
		OwnModelFirst:  s.From("model").Kind == "flag" && !w.serves,
		Extensions:     slices.Concat(extensions, []belay.Extension{w.servers}, memories, questions(s)),
		Hooks:          append([]hook.Subscription{rememberTurn(s)}, a.hooks...),
		Authorizer:     floor,
		OnAsk:          askMode(s.Approvals.OnAsk, approver),
		Approver:       approver,
		ApprovalExpiry: s.Approvals.Expiry,
		Store:          w.store,
		Runtime:        &hook.RuntimeOptions{Grants: w.places.host.Grants, Failed: a.hookFailed},
		Busy:           belay.BusyRefuse,
		Limits: belay.Limits{
			Steps: s.Limits.Steps, Parallel: s.Limits.Parallel, ResultCharacters: s.Limits.ResultCharacters, Tool: s.Limits.Tool, Idle: s.Limits.Idle,
		},
		Budget:   w.budget(),
		SpillDir: spill,
		Logger:   a.logger(),
	})
	if err != nil {
		return err
	}
	unload, err := a.installPlaces(ctx, w.places, w.agent, w.skills, subagents, declared)
	if err != nil {
		return errors.Join(err, w.agent.Close(context.WithoutCancel(ctx)))
	}
	a.tellServers(w.servers)
	w.closers = append(w.closers, unload)
	if err := required(w.servers); err != nil && !w.abandons {
		return errors.Join(err, w.agent.Close(context.WithoutCancel(ctx)))
	}
	return nil
}

// budget is what the settings allow, or less if the agent's own file says so.
func (w *work) budget() belay.Budget {
	b := belay.Budget{
		TurnTokens: w.settings.Budget.TurnTokens, TurnCost: w.settings.Budget.TurnCost,
		SessionTokens: w.settings.Budget.SessionTokens, SessionCost: w.settings.Budget.SessionCost,
	}
	if d := w.declared; d != nil {
		b.TurnTokens, b.TurnCost = tighter(b.TurnTokens, d.Budget.TurnTokens), tighter(b.TurnCost, d.Budget.TurnCost)
		b.SessionTokens, b.SessionCost = tighter(b.SessionTokens, d.Budget.SessionTokens), tighter(b.SessionCost, d.Budget.SessionCost)
	}
	return b
}

// warnUnpriced warns that dollars bound nothing where a model has no price.
func (a *app) warnUnpriced(w *work, model belay.Model) {
	b := w.budget()
	info, ok := model.(belay.InfoModel)
	if b.TurnCost == 0 && b.SessionCost == 0 || ok && info.Info().Price != (belay.Price{}) || w.abandons {
		return
	}
	path := "budget.turn_cost"
	if b.TurnCost == 0 {
		path = "budget.session_cost"
	}
	from := path
	if where := w.settings.From(path); where.Kind != "default" {
		from += " (" + where.String() + ")"
	}
	a.warn(fmt.Sprintf("%s: there is no price for %s, so it bounds nothing unless its answers say what they cost: set price under providers in %s, or bound tokens with budget.turn_tokens", from, modelName(w.settings), userFile(w.settings)))
}

// tighter is the smaller of two bounds, of which zero is none.
func tighter[T int | float64](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// takeDeclared has a declared agent do the work, if one is named.
func (w *work) takeDeclared(name string) error {
	if name == "" {
		return nil
	}
	d, err := declaration(w.settings, name)
	if err != nil {
		return err
	}
	return w.take(d)
}

// extensions are the agent's skills and subagents.
func (a *app) extensions(w *work, declared *declaredAgents) ([]belay.Extension, *subagent.Extension, error) {
	catalog := w.skills
	if w.declared != nil {
		catalog = declared.chosenSkills(w.declared)
	}
	skills, err := skill.New(catalog, &skill.Options{
		Project: w.settings.Project, Mode: w.settings.Mode, EnforceAllowedTools: w.settings.Skills.EnforceAllowedTools || w.declared != nil && w.declared.EnforceAllowedTools, Patterns: w.floor,
	})
	if err != nil {
		return nil, nil, err
	}
	agents, err := a.usableAgents(context.Background(), w.settings)
	if err != nil {
		return nil, nil, err
	}
	a.tellUnused(w.settings, catalog)
	subagents, err := subagent.New(&subagent.Options{Subagents: declared.subagents(agents)})
	if err != nil {
		return nil, nil, usage("%w", err)
	}
	return []belay.Extension{skills, subagents}, subagents, nil
}

// mainAgent is the name of the agent that the settings describe.
const mainAgent = "main"

// askMode says what becomes of a call that needs a person's word: with nobody at
// the terminal the turn parks, and whoever comes later decides.
func askMode(set string, approver belay.Approver) belay.AskMode {
	switch {
	case set == string(belay.AskDeny):
		return belay.AskDeny
	case set == string(belay.AskPark) || approver == nil:
		return belay.AskPark
	default:
		return belay.AskWait
	}
}

const instructions = "You are an agent that works in a project on its user's machine. Look before you change, change no more than the task needs, and say at the end what you did."

// environment tells the model where it is.
func environment(s *config.Loaded) *belay.Environment {
	shell := "sh"
	if _, err := exec.LookPath("bash"); err == nil { // as the tool for commands chooses
		shell = "bash"
	}
	return &belay.Environment{Dir: s.Project, Shell: shell}
}

// startJobs has background work done while the command runs.
func startJobs(ctx context.Context, agent *belay.Agent, a *app) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { // until stop is called
		if err := agent.Hooks().Work(ctx); err != nil && ctx.Err() == nil {
			a.remarkf("background work stopped: %v", err)
		}
	})
	return func() error {
		cancel()
		done.Wait()
		return nil
	}
}

// newSessionID makes an id that sorts by day and is short enough to type.
func newSessionID(now time.Time) string {
	return now.Format("20060102") + "-" + strings.ToLower(rand.Text()[:5])
}

// who is the person at the terminal, for decisions on record.
func who() string {
	name := cmp.Or(os.Getenv("USER"), os.Getenv("USERNAME"))
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	return cmp.Or(name, "somebody") + " (belay)"
}
