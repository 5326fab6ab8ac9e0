package assembly

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/subagent"
	"github.com/belay-run/belay/toolbox"
	"github.com/belay-run/belay/webtool"
)

// agentSources returns functions that read the declared agents. An agent of a later function
// replaces an earlier one with the same name. place is the directory of the project's agents.
func agentSources(s *config.Loaded, place string) []func() ([]*subagent.Declaration, []subagent.Problem) {
	var all []func() ([]*subagent.Declaration, []subagent.Problem)
	in := func(dir string) {
		if dir != "" {
			all = append(all, func() ([]*subagent.Declaration, []subagent.Problem) {
				return subagent.LoadDir(filepath.Join(dir, "agents"))
			})
		}
	}
	others := func(own bool) {
		all = append(all, func() ([]*subagent.Declaration, []subagent.Problem) { return otherAgents(s, own) })
	}
	in(s.SystemDir)
	others(true)
	in(s.UserDir)
	others(false)
	if place != ProjectPlace(s) || staysInside(s.Project, filepath.Join(place, "agents")) {
		in(place)
	}
	return all
}

// errReplaced is the error of an agent that another agent with the same name replaces.
var errReplaced = errors.New("another agent replaces it")

// IsReplaced reports whether a problem only says that another agent with the same name
// replaces an agent. That is no mistake in a file.
func IsReplaced(p *subagent.Problem) bool { return errors.Is(p.Err, errReplaced) }

// Agents reads the declared agents of the machine, the user and the project, sorted by
// name. An agent of the project replaces an agent of the user with the same name.
func Agents(s *config.Loaded) ([]*subagent.Declaration, []subagent.Problem) {
	return agentsWith(s, ProjectPlace(s))
}

// agentsWith is like Agents, with another directory for the project's agents.
func agentsWith(s *config.Loaded, place string) ([]*subagent.Declaration, []subagent.Problem) {
	byName := make(map[string]*subagent.Declaration)
	var problems []subagent.Problem
	for _, load := range agentSources(s, place) {
		declared, found := load()
		problems = append(problems, found...)
		for _, d := range declared {
			if before := byName[d.Name]; before != nil {
				problems = append(problems, subagent.Problem{
					Path: before.Path, Message: fmt.Sprintf("agent %q is not used: %s replaces it", d.Name, ShownPath(s, d.Path)), Err: errReplaced,
				})
			}
			byName[d.Name] = d
		}
	}
	var all []*subagent.Declaration
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		d := byName[name]
		if why := unusable(d); why != "" {
			problems = append(problems, subagent.Problem{Path: d.Path, Message: why})
			continue
		}
		all = append(all, d)
	}
	return all, problems
}

// AddSpaceAgents adds the usable agents of loaded spaces. A running agent gets the agents
// of a space when it installs that space.
func AddSpaceAgents(declared []*subagent.Declaration, spaces []*space.Space) []*subagent.Declaration {
	all := slices.Clone(declared)
	for _, s := range spaces {
		for _, d := range s.Agents {
			if unusable(d) == "" {
				all = append(all, d)
			}
		}
	}
	return all
}

// unusable returns why Belay cannot use a valid declaration, or "".
func unusable(d *subagent.Declaration) string {
	if _, err := permit.ModeOf(d.Mode); d.Mode != "" && err != nil {
		return fmt.Sprintf("agent %q: there is no mode %q%s: there are %s", d.Name, d.Mode, near.Hint(d.Mode, config.ModeNames()), strings.Join(config.ModeNames(), ", "))
	}
	return ""
}

// declaredAgents makes agents from declarations.
type declaredAgents struct {
	settings   *config.Loaded
	guidance   []claude.Instruction // instructions in files, for every agent
	nested     *nestedGuidance
	model      belay.Model
	floor      *Floor
	tools      *toolbox.Extension
	background *toolbox.Background
	skills     *skill.Catalog
	spill      string
	places     *Places
	servers    *mcptool.Extension
	web        *webtool.Extension
	failed     func(hook.Scope, hook.Problem) // see hook.RuntimeOptions
}

// ownHooks returns an extension with the hooks that an agent declares. It returns an error
// if these hooks cannot run.
func (b *declaredAgents) ownHooks(d *subagent.Declaration) ([]belay.Extension, error) {
	var place *space.Space
	if b.places != nil {
		place = b.places.Of(d.Path)
	}
	if place == nil || place.Foreign() != nil { // hooks of agents are not read there
		if unread := HooksUnread(d); unread != nil {
			return nil, unread
		}
		return nil, nil
	}
	own, _, err := b.places.Host.AgentHooks(place, d.Name)
	if err != nil {
		return nil, err
	}
	return []belay.Extension{own}, nil
}

// subagents makes subagents from declarations.
func (b *declaredAgents) subagents(declared []*subagent.Declaration) []subagent.Subagent {
	var all []subagent.Subagent
	for _, d := range declared {
		all = append(all, subagent.Subagent{
			Name: d.Name, Description: d.Description,
			Factory: d.Factory(func(_ context.Context, task *subagent.Task, d *subagent.Declaration) (*belay.Agent, error) {
				own, err := b.ownHooks(d)
				if err != nil {
					return nil, err
				}
				return b.build(d, task.Store, own...)
			}),
		})
	}
	return all
}

// build makes an agent from a declaration. A subagent never has more rights than its
// parent, even if its file asks for them.
func (b *declaredAgents) build(d *subagent.Declaration, store belay.Store, own ...belay.Extension) (*belay.Agent, error) {
	if why := unusable(d); why != "" {
		return nil, fmt.Errorf("%s: %s", d.Path, why)
	}
	model := b.model
	if d.Model != "" {
		var err error
		if model, err = FindModel(b.settings, d.Model); err != nil {
			return nil, fmt.Errorf("%s: model: %w", d.Path, err)
		}
	}
	tools, err := b.chosenTools(d)
	if err != nil {
		return nil, err
	}
	opts := &belay.Options{
		Name: d.Name, Instructions: withGuidance(b.settings, cmp.Or(d.Prompt, instructions), b.guidance), Scope: toolScope(d), Resources: resources(d), Store: store, Budget: d.Budget, SpillDir: b.spill, ApprovalExpiry: b.settings.Approvals.Expiry,
		Extensions: slices.Concat([]belay.Extension{tools}, webToolsOf(b.web, d.Tools), own), Runtime: &hook.RuntimeOptions{Grants: b.places.Host.Grants, Failed: b.failed},
		Interceptors: b.nested.interceptors(), Authorizer: b.floor.InMode(d.Mode), Models: b.find, Environment: environment(b.settings),
		Limits: belay.Limits{Steps: b.settings.Limits.Steps, Parallel: b.settings.Limits.Parallel, ResultCharacters: b.settings.Limits.ResultCharacters, Tool: b.settings.Limits.Tool, Idle: b.settings.Limits.Idle},
	}
	if b.servers != nil && (d.Tools == nil || slices.ContainsFunc(d.Tools, OfServer)) {
		opts.Extensions = append(opts.Extensions, b.servers.Shared())
	}
	if hasShell(b.settings.Tools) && hasShell(d.Tools) {
		opts.Extensions = append(opts.Extensions, b.background.Shared())
	}
	opts.Hooks = LimitHooks(d, b.floor)
	skills, err := skill.New(b.skills, &skill.Options{
		Project: b.settings.Project, Mode: d.Mode, NoNames: true, EnforceAllowedTools: b.settings.Skills.EnforceAllowedTools || d.EnforceAllowedTools, Patterns: b.floor,
		Budget: b.settings.Limits.ListingTokens,
	})
	if err != nil {
		return nil, err
	}
	opts.Extensions = append(opts.Extensions, skills)
	return belay.New(model, opts)
}

// find returns the model with this name. It makes the path of a script absolute, so that
// the model can be found later from any directory.
func (b *declaredAgents) find(_ context.Context, name string) (belay.Model, error) { //nolint:ireturn // see openModel
	if script, ok := strings.CutPrefix(name, config.Scripted+"/"); ok {
		path, err := filepath.Abs(script)
		if err != nil {
			return nil, fmt.Errorf("find the script: %w", err)
		}
		name = config.Scripted + "/" + path
	}
	model, err := FindModel(b.settings, name)
	if err != nil {
		return nil, err
	}
	if _, named := model.(*calledModel); named {
		return model, nil
	}
	return &calledModel{Model: model, name: name}, nil
}

// inBackground returns the extension for commands in the background, if the agent has the
// shell.
func (b *declaredAgents) inBackground(w *Assembled) []belay.Extension {
	if !hasShell(b.settings.Tools) || w.declared != nil && !hasShell(w.declared.Tools) {
		return nil
	}
	return []belay.Extension{b.background}
}

// toolScope returns the tools that a declared agent and its subagents may use. nil means
// all tools. The tools for skills are always allowed.
func toolScope(d *subagent.Declaration) []string {
	if d.Tools == nil {
		return nil
	}
	scope := append([]string{skill.ReadTool, skill.InvokeTool}, d.Tools...)
	if hasShell(d.Tools) {
		scope = append(scope, toolbox.ShellListTool, toolbox.ShellOutputTool, toolbox.ShellStopTool)
	}
	return scope
}

// OfServer reports whether a name has the form of a tool of an MCP server. It does not
// check that the tool exists: only the running server knows that.
func OfServer(tool string) bool { return strings.Contains(tool, "__") }

// chosenTools returns the built-in tools that a declaration names, or all of them if its
// Tools are nil.
func (b *declaredAgents) chosenTools(d *subagent.Declaration) (*toolbox.Extension, error) {
	if d.Tools == nil {
		return b.tools, nil
	}
	names := append(namesOf(b.tools), subagent.InvokeTool) // another extension provides it
	for _, tool := range b.web.Tools() {
		names = append(names, tool.Declaration().Name)
	}
	for _, wanted := range d.Tools {
		if !slices.Contains(names, wanted) && !OfServer(wanted) {
			return nil, fmt.Errorf("%s: tools: %s", d.Path, unknownTool(wanted, names))
		}
	}
	return b.tools.Only(d.Tools...), nil
}

// resources returns the restriction to the skills that the agent's file names, or nil.
func resources(d *subagent.Declaration) map[string][]string {
	if d.Skills == nil {
		return nil
	}
	return map[string][]string{"skills": d.Skills}
}

// ReportAgentProblems sends problems of declared agents as notices, with kind as the label.
func (a *Assembler) ReportAgentProblems(s *config.Loaded, kind string, problems []subagent.Problem) {
	for i := range problems {
		p := problems[i]
		p.Path = RelativePath(s, p.Path)
		a.label(kind, visible.OneLine(p.Error()))
	}
}

// usableAgents returns the declared agents that can be subagents. It reports the problems
// of the others, and of the agents in spaces. For agents in .claude/agents without hooks,
// it reports only how many cannot be used.
func (a *Assembler) usableAgents(ctx context.Context, s *config.Loaded) ([]*subagent.Declaration, error) {
	declared, problems := Agents(s)
	check, err := a.NewAgentCheck(ctx, s)
	if err != nil {
		return nil, err
	}
	odd := 0
	var unused []subagent.Problem
	declared = slices.DeleteFunc(declared, func(d *subagent.Declaration) bool {
		fails := check.fails(d)
		unfit := len(fails) > 0 || Foreign(s, d.Path) && len(check.Mistakes(d)) > 0
		if p := UnreadHooks(s, d); p != nil { // report these in full, because the author wrote the hooks for Belay
			unused = append(unused, *p)
		} else if unfit && Foreign(s, d.Path) {
			odd++
		} else if unfit {
			unused = append(unused, fails...)
		}
		return unfit
	})
	problems = slices.DeleteFunc(problems, func(p subagent.Problem) bool {
		if Foreign(s, p.Path) {
			odd++
			return true
		}
		return false
	})
	a.ReportAgentProblems(s, "not loaded", problems)
	a.ReportAgentProblems(s, "not used", unused)
	for _, d := range AddSpaceAgents(nil, SpacesHere(s)) {
		a.ReportAgentProblems(s, "has mistakes", check.fails(d))
	}
	if odd > 0 {
		a.label("not used", visible.Counted(odd, "agent")+" of .claude/agents: `belay agents list` shows why")
	}
	return declared, nil
}

// fails returns the mistakes that prevent Belay from making the agent: those of its model
// and its tools. A missing skill does not prevent this. The mode in the file does not
// either, because the stricter of the file's and the turn's mode applies.
func (c *AgentCheck) fails(d *subagent.Declaration) []subagent.Problem {
	made := *d
	made.Skills, made.Mode = nil, ""
	return c.Mistakes(&made)
}

// ErrNoAgent is the error for a name that no agent has.
var ErrNoAgent = errors.New("there is no such agent")

// FindAgent returns the declared agent with this name.
func FindAgent(s *config.Loaded, name string) (*subagent.Declaration, error) {
	return findAgent(s, ProjectPlace(s), name)
}

// FindAgent returns the declared agent with this name. It takes the agents of the project from
// [Options].Place, if that is set.
func (a *Assembler) FindAgent(s *config.Loaded, name string) (*subagent.Declaration, error) {
	return findAgent(s, cmp.Or(a.Place, ProjectPlace(s)), name)
}

func findAgent(s *config.Loaded, place, name string) (*subagent.Declaration, error) {
	declared, problems := agentsWith(s, place)
	var names []string
	for _, d := range AddSpaceAgents(declared, SpacesHere(s)) {
		if d.Name == name {
			if unread := UnreadHooks(s, d); unread != nil {
				return nil, mistake("%w", unread)
			}
			return d, nil
		}
		names = append(names, d.Name)
	}
	for i := range problems {
		if base := filepath.Base(problems[i].Path); strings.TrimSuffix(base, filepath.Ext(base)) == name {
			return nil, mistake("%w", &problems[i])
		}
	}
	return nil, mistake("%w: %q%s: `belay agents list` lists them", ErrNoAgent, name, near.Hint(name, names))
}
