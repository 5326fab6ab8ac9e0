package assembly

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
	"github.com/belay-run/belay/toolbox"
)

// An Assembled is an agent with everything that it uses. The caller sets the first group of
// fields, [Assembler.Assemble] sets the others, and [Assembled.Close] closes everything.
type Assembled struct {
	Settings *config.Loaded
	Store    belay.Store // Close does not close it
	// Abandons means that the agent only ends an open turn. It then needs no MCP servers.
	Abandons bool
	// GivenModel replaces the model that the settings name, if it is not nil.
	GivenModel belay.Model
	// Serves means that the agent also runs turns that other processes began, perhaps with
	// another model.
	Serves bool

	Agent    *belay.Agent
	Floor    *Floor
	Tools    []belay.Tool
	Skills   *skill.Catalog
	Places   *Places
	Servers  *mcptool.Extension
	Memories *memory.Store // nil if memory is off
	// Snapshots are nil if the settings switch them off.
	Snapshots *toolbox.Snapshots
	// Background has the commands that the agent and its subagents run in the background.
	Background *toolbox.Background

	declared *subagent.Declaration // the declared agent, or nil for the main agent
	stock    *toolbox.Extension
	closers  []func() error // Close calls the last one first
}

// Model returns the model of the agent: the first that exists of the model in the agent's
// file, GivenModel and the model in the settings. A model that a flag names takes precedence
// over the agent's file.
func (w *Assembled) Model() (belay.Model, error) { //nolint:ireturn // which model it is, is the user's choice
	if w.givenAnswers() {
		return w.GivenModel, nil
	}
	return OpenModel(w.Settings)
}

// givenAnswers reports whether the agent uses GivenModel.
func (w *Assembled) givenAnswers() bool {
	return w.GivenModel != nil && (w.declared == nil || w.declared.Model == "")
}

// modelName returns the name that a turn stores, so that the turn can be resumed with the
// same model. GivenModel has no such name.
func (w *Assembled) modelName() string {
	if w.givenAnswers() {
		return ""
	}
	return FullModelName(w.Settings)
}

// OnClose registers a function that Close calls. Close calls the last registered function
// first.
func (w *Assembled) OnClose(f func() error) { w.closers = append(w.closers, f) }

// Close closes the agent and everything that it uses, except Store.
func (w *Assembled) Close() error {
	var problems []error
	for len(w.closers) > 0 {
		last := len(w.closers) - 1
		problems = append(problems, w.closers[last]())
		w.closers = w.closers[:last]
	}
	return errors.Join(problems...)
}

// Assemble makes the agent that the settings describe, or the agent that
// [Assembled.TakeDeclared] chose. A nil approver means that nobody can answer questions.
// The caller must call Close, even after an error.
func (a *Assembler) Assemble(ctx context.Context, w *Assembled, model belay.Model, approver belay.Approver) (err error) {
	s := w.Settings
	spill := SpillDir(s)
	if err := os.MkdirAll(spill, 0o700); err != nil {
		return fmt.Errorf("create the directory for long results: %w", err)
	}
	if err := a.useSnapshots(w); err != nil {
		return err
	}
	if w.Floor, err = a.NewFloor(ctx, s, spill); err != nil {
		return err
	}
	w.Floor.store = w.Store
	if line := w.Floor.relaxed(); line != "" {
		a.remark(line)
	}
	w.Background = toolbox.NewBackground(nil)
	tools, closeTools, err := openTools(s, w.Floor, w.Snapshots, w.Background, spill)
	if err != nil {
		return err
	}
	w.OnClose(closeTools)
	w.stock = tools
	w.Tools, w.Skills = tools.Tools(), OwnSkills(ctx, s)
	if w.Places = a.OpenPlaces(ctx, s); w.Places.Err != nil {
		return mistake("the agent was not started, because hooks, spaces or agents have mistakes and one of them may be a gate: correct these first:\n%w", w.Places.Err)
	}
	w.OnClose(w.Places.useStore(s, w.Store))
	a.ReportUnheeded(s, w.Places)
	if err := a.useMCP(ctx, w); err != nil {
		return err
	}
	web, err := webTools(s)
	if err != nil {
		return err
	}
	guidance := Guidance(ctx, s, w.Floor.Floor)
	declared := &declaredAgents{settings: s, web: web, guidance: guidance, nested: newNestedGuidance(s, w.Floor, guidance), failed: a.hookFailed, model: model, floor: w.Floor, tools: tools, background: w.Background, skills: w.Skills, spill: spill, places: w.Places, servers: w.Servers}
	extensions, subagents, err := a.extensions(w, declared)
	if err != nil {
		return err
	}
	memories, err := a.useMemory(ctx, w)
	if err != nil {
		return err
	}
	a.warnUnpriced(w, model)
	hooks := append([]hook.Subscription{RememberTurn(s, w.Floor, w.modelName())}, a.Hooks...)
	if w.Places.wakes.Used() {
		hooks = append(hooks, w.Places.wakes.Hooks()...)
	}
	reading := []belay.Extension{web}
	var scope []string
	var restricted map[string][]string
	name, text, floor := MainAgent, cmp.Or(s.Instructions, instructions), belay.Authorizer(w.Floor)
	if d := w.declared; d != nil {
		name, text, floor = d.Name, cmp.Or(d.Prompt, text), w.Floor.InMode(d.Mode)
		if tools, err = declared.chosenTools(d); err != nil {
			return mistake("%w", err)
		}
		reading = webToolsOf(web, d.Tools)
		scope, restricted = toolScope(d), resources(d)
		own, err := declared.ownHooks(d)
		if err != nil {
			return mistake("%w", err)
		}
		extensions = append(extensions, own...)
		hooks = append(hooks, LimitHooks(d, w.Floor)...)
	}
	w.Agent, err = belay.New(model, &belay.Options{
		Name:           name,
		Instructions:   withGuidance(s, text, guidance),
		Environment:    environment(s),
		Scope:          scope,
		Resources:      restricted,
		Directives:     toolbox.Directives(),
		Models:         declared.find,
		OwnModelFirst:  s.From("model").Kind == "flag" && !w.Serves,
		Extensions:     slices.Concat([]belay.Extension{tools}, reading, extensions, []belay.Extension{w.Servers}, memories, questions(s), todos(s), w.planning(), declared.inBackground(w), a.Extensions),
		Hooks:          hooks,
		Interceptors:   declared.nested.interceptors(),
		Authorizer:     floor,
		OnAsk:          askMode(s.Approvals.OnAsk, approver),
		Approver:       approver,
		Asker:          askerOf(askMode(s.Approvals.OnAsk, approver), approver),
		ApprovalExpiry: s.Approvals.Expiry,
		Store:          w.Store,
		Events:         a.Events,
		Runtime:        &hook.RuntimeOptions{Grants: w.Places.Host.Grants, Failed: a.hookFailed},
		RefuseBusy:     true,
		NoPreviews:     s.Hooks.NoPreviews,
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
	unload, err := a.installPlaces(ctx, w.Places, w.Agent, w.Skills, subagents, declared)
	if err != nil {
		return errors.Join(err, w.Agent.Close(context.WithoutCancel(ctx)))
	}
	a.tellServers(w.Servers)
	w.OnClose(unload)
	if err := required(w.Servers); err != nil && !w.Abandons {
		return errors.Join(err, w.Agent.Close(context.WithoutCancel(ctx)))
	}
	w.OnClose(func() error { return w.Agent.Close(context.WithoutCancel(ctx)) })
	return nil
}

// Background runs the background jobs of the agent until Close. Close waits up to a few
// seconds until memory has processed the turns.
func (a *Assembler) Background(ctx context.Context, w *Assembled) {
	w.OnClose(a.startJobs(ctx, w.Agent))
	w.OnClose(a.settleMemory(ctx, w))
}

// budget returns the budget of the settings. A smaller limit in the agent's file wins.
func (w *Assembled) budget() belay.Budget {
	b := belay.Budget{
		TurnTokens: w.Settings.Budget.TurnTokens, TurnCost: w.Settings.Budget.TurnCost,
		SessionTokens: w.Settings.Budget.SessionTokens, SessionCost: w.Settings.Budget.SessionCost,
	}
	if d := w.declared; d != nil {
		b.TurnTokens, b.TurnCost = tighter(b.TurnTokens, d.Budget.TurnTokens), tighter(b.TurnCost, d.Budget.TurnCost)
		b.SessionTokens, b.SessionCost = tighter(b.SessionTokens, d.Budget.SessionTokens), tighter(b.SessionCost, d.Budget.SessionCost)
	}
	return b
}

// warnUnpriced warns if a budget is in dollars and the price of the model is unknown.
func (a *Assembler) warnUnpriced(w *Assembled, model belay.Model) {
	b := w.budget()
	info, ok := model.(belay.InfoModel)
	if b.TurnCost == 0 && b.SessionCost == 0 || ok && info.Info().Price != (belay.Price{}) || w.Abandons {
		return
	}
	path := "budget.turn_cost"
	if b.TurnCost == 0 {
		path = "budget.session_cost"
	}
	from := path
	if where := w.Settings.From(path); where.Kind != "default" {
		from += " (" + where.String() + ")"
	}
	a.warn(fmt.Sprintf("%s: there is no price for %s, so the budget has no effect unless the provider reports costs: set price under providers in %s, or limit tokens with budget.turn_tokens", from, ModelName(w.Settings), userFile(w.Settings)))
}

// tighter returns the smaller limit. Zero means no limit.
func tighter[T int | float64](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// TakeDeclared chooses a declared agent. An empty name keeps the main agent.
func (w *Assembled) TakeDeclared(name string) error {
	if name == "" {
		return nil
	}
	d, err := FindAgent(w.Settings, name)
	if err != nil {
		return err
	}
	return w.take(d)
}

// extensions returns the extensions for skills and subagents.
func (a *Assembler) extensions(w *Assembled, declared *declaredAgents) ([]belay.Extension, *subagent.Extension, error) {
	skills, err := skill.New(w.Skills, &skill.Options{
		Project: w.Settings.Project, Mode: w.Settings.Mode, EnforceAllowedTools: w.Settings.Skills.EnforceAllowedTools || w.declared != nil && w.declared.EnforceAllowedTools, Patterns: w.Floor,
		Budget: w.Settings.Limits.ListingTokens, Fill: (&fills{settings: w.Settings, places: w.Places}).fill,
	})
	if err != nil {
		return nil, nil, err
	}
	agents, err := a.usableAgents(context.Background(), w.Settings)
	if err != nil {
		return nil, nil, err
	}
	a.tellUnused(w.Settings, w.Skills)
	subagents, err := subagent.New(&subagent.Options{Subagents: declared.subagents(agents), Budget: w.Settings.Limits.ListingTokens})
	if err != nil {
		return nil, nil, mistake("%w", err)
	}
	return []belay.Extension{skills, subagents}, subagents, nil
}

// MainAgent is the name of the agent that the settings describe.
const MainAgent = "main"

// askMode returns what Belay does with a call that needs approval. Without an approver,
// Belay parks the turn, and a person can decide later.
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

// askerOf returns the approver as an asker, if it is one and the turn waits for people. An
// MCP server can then ask a question while its tool runs. Otherwise such a question parks the
// turn.
func askerOf(mode belay.AskMode, approver belay.Approver) belay.Asker { //nolint:ireturn // it is the caller's
	if asker, ok := approver.(belay.Asker); ok && mode == belay.AskWait {
		return asker
	}
	return nil
}

// instructions are the default instructions.
const instructions = "You are an agent that works in a project on its user's machine. Look before you change, change no more than the task needs, and say at the end what you did."

// environment tells the model where it runs.
func environment(s *config.Loaded) *belay.Environment {
	shell := "sh"
	if _, err := exec.LookPath("bash"); err == nil { // the shell tool makes the same choice
		shell = "bash"
	}
	return &belay.Environment{Dir: s.Project, Shell: shell}
}

// startJobs runs background jobs until stop is called.
func (a *Assembler) startJobs(ctx context.Context, agent *belay.Agent) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { // ends when stop is called
		if err := agent.Hooks().Work(ctx); err != nil && ctx.Err() == nil {
			a.caution(fmt.Sprintf("background work stopped: %v", err))
		}
	})
	return func() error {
		cancel()
		done.Wait()
		return nil
	}
}

// take chooses a declared agent. The model in its file applies, unless a flag names
// another.
func (w *Assembled) take(d *subagent.Declaration) error {
	s := w.Settings
	w.declared = d
	if d.Model != "" && s.From("model").Kind != "flag" {
		if err := s.Recall("model", d.Path, d.Model); err != nil {
			return mistake("%s: %w", d.Path, err)
		}
	}
	return nil
}
