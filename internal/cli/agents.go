package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/subagent"
)

// agentDirs are where agents are declared, in rising precedence.
func agentDirs(s *config.Loaded) []string {
	var dirs []string
	for _, dir := range []string{s.SystemDir, s.UserDir} {
		if dir != "" {
			dirs = append(dirs, filepath.Join(dir, "agents"))
		}
	}
	for _, of := range []string{".claude", ".belay"} { // what a project has for another agent may do here too
		if dir := filepath.Join(s.Project, of, "agents"); staysInside(s.Project, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// openAgents reads the agents that are declared, by name. One of the project stands in
// front of one of the user's.
func openAgents(s *config.Loaded) ([]*subagent.Declaration, []subagent.Problem) {
	byName := make(map[string]*subagent.Declaration)
	var problems []subagent.Problem
	for _, dir := range agentDirs(s) {
		declared, found := subagent.LoadDir(dir)
		problems = append(problems, found...)
		for _, d := range declared {
			if foreign(s, d.Path) {
				adapt(d)
			}
			if before := byName[d.Name]; before != nil {
				problems = append(problems, subagent.Problem{Path: before.Path, Message: fmt.Sprintf("agent %q is not used: %s stands in front of it", d.Name, d.Path)})
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

// withSpaces adds the agents of loaded spaces, which an agent that runs gets with its spaces.
func withSpaces(declared []*subagent.Declaration, spaces []*space.Space) []*subagent.Declaration {
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

// unusable says why an agent that is declared soundly cannot be had here, or nothing.
func unusable(d *subagent.Declaration) string {
	if _, err := permit.ModeOf(d.Mode); d.Mode != "" && err != nil {
		return fmt.Sprintf("agent %q: there is no mode %q%s: there are %s", d.Name, d.Mode, near.Hint(d.Mode, config.ModeNames()), strings.Join(config.ModeNames(), ", "))
	}
	return ""
}

// declaredAgents are what agents are made of that are declared in files.
type declaredAgents struct {
	settings *config.Loaded
	model    belay.Model
	floor    *floor
	tools    []belay.Tool
	skills   *skill.Catalog
	spill    string
	places   *places
	servers  *mcptool.Extension
	failed   func(hook.Scope, hook.Problem) // see hook.RuntimeOptions
}

// ownHooks is an extension with the hooks that an agent declares. It is an error if they
// cannot be had.
func (b *declaredAgents) ownHooks(d *subagent.Declaration) ([]belay.Extension, error) {
	var place *space.Space
	if b.places != nil {
		place = b.places.of(d.Path)
	}
	if place == nil {
		if unread := hooksUnread(d); unread != nil {
			return nil, unread
		}
		return nil, nil
	}
	own, _, err := b.places.host.AgentHooks(place, d.Name)
	if err != nil {
		return nil, err
	}
	return []belay.Extension{own}, nil
}

// subagents makes subagents of the declarations.
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

// build makes an agent of a declaration. What its parent may not do it may not do
// either, whatever its file says.
func (b *declaredAgents) build(d *subagent.Declaration, store belay.Store, own ...belay.Extension) (*belay.Agent, error) {
	if why := unusable(d); why != "" {
		return nil, fmt.Errorf("%s: %s", d.Path, why)
	}
	model := b.model
	if d.Model != "" {
		var err error
		if model, err = findModel(b.settings, d.Model); err != nil {
			return nil, fmt.Errorf("%s: model: %w", d.Path, err)
		}
	}
	tools, err := b.chosenTools(d)
	if err != nil {
		return nil, err
	}
	opts := &belay.Options{
		Name: d.Name, Instructions: cmp.Or(d.Prompt, instructions), Tools: tools, Scope: toolScope(d), Store: store, Budget: d.Budget, SpillDir: b.spill, ApprovalExpiry: b.settings.Approvals.Expiry,
		Extensions: own, Runtime: &hook.RuntimeOptions{Grants: b.places.host.Grants, Failed: b.failed},
		Authorizer: b.floor.inMode(d.Mode), Models: b.find, Environment: environment(b.settings),
		Limits: belay.Limits{Steps: b.settings.Limits.Steps, Parallel: b.settings.Limits.Parallel, ResultCharacters: b.settings.Limits.ResultCharacters, Tool: b.settings.Limits.Tool, Idle: b.settings.Limits.Idle},
	}
	if b.servers != nil && (d.Tools == nil || slices.ContainsFunc(d.Tools, ofServer)) {
		opts.Extensions = append(opts.Extensions, b.servers.Shared())
	}
	if d.Skills == nil || len(d.Skills) > 0 {
		skills, err := skill.New(b.chosenSkills(d), &skill.Options{
			Project: b.settings.Project, Mode: d.Mode, NoNames: true, EnforceAllowedTools: b.settings.Skills.EnforceAllowedTools || d.EnforceAllowedTools, Patterns: b.floor,
		})
		if err != nil {
			return nil, err
		}
		opts.Extensions = append(opts.Extensions, skills)
	}
	return belay.New(model, opts)
}

// find finds a model by its name. A script is found from any directory then.
func (b *declaredAgents) find(_ context.Context, name string) (belay.Model, error) { //nolint:ireturn // see openModel
	if script, ok := strings.CutPrefix(name, config.Scripted+"/"); ok {
		path, err := filepath.Abs(script)
		if err != nil {
			return nil, fmt.Errorf("find the script: %w", err)
		}
		name = config.Scripted + "/" + path
	}
	model, err := findModel(b.settings, name)
	if err != nil {
		return nil, err
	}
	if _, named := model.(*calledModel); named {
		return model, nil
	}
	return &calledModel{Model: model, name: name}, nil
}

// toolScope names the tools that a declared agent may use, and whoever it hands tasks to;
// nil means all. What it reads of skills is its own.
func toolScope(d *subagent.Declaration) []string {
	if d.Tools == nil {
		return nil
	}
	return append([]string{skill.ReadTool, skill.InvokeTool}, d.Tools...)
}

// ofServer reports whether a tool is one of an MCP server, by its name. Which of them there
// are shows when the servers are ready.
func ofServer(tool string) bool { return strings.Contains(tool, "__") }

// chosenTools are those of the tools that a declaration names.
func (b *declaredAgents) chosenTools(d *subagent.Declaration) ([]belay.Tool, error) {
	if d.Tools == nil {
		return b.tools, nil
	}
	var tools []belay.Tool
	var names []string
	for _, tool := range b.tools {
		name := tool.Declaration().Name
		names = append(names, name)
		if slices.Contains(d.Tools, name) {
			tools = append(tools, tool)
		}
	}
	names = append(names, subagent.InvokeTool) // which an extension brings
	for _, wanted := range d.Tools {
		if !slices.Contains(names, wanted) && !ofServer(wanted) {
			return nil, fmt.Errorf("%s: tools: %s", d.Path, unknownTool(wanted, names))
		}
	}
	return tools, nil
}

// chosenSkills are those of the skills that a declaration names.
func (b *declaredAgents) chosenSkills(d *subagent.Declaration) *skill.Catalog {
	if d.Skills == nil {
		return b.skills
	}
	return skill.NewCatalog(context.Background(), &someSkills{b.skills, d.Skills})
}

// someSkills is a source of some skills of a catalog.
type someSkills struct {
	catalog *skill.Catalog
	names   []string
}

func (s *someSkills) String() string { return "the agent's skills" }

func (s *someSkills) List(context.Context) ([]*skill.Skill, error) {
	var list []*skill.Skill
	for _, one := range s.catalog.List() {
		if slices.Contains(s.names, one.Name) {
			list = append(list, one)
		}
	}
	return list, nil
}

func (s *someSkills) Read(ctx context.Context, id, section string) (skill.Reading, error) {
	for _, one := range s.catalog.List() {
		if one.ID == id {
			return s.catalog.Read(ctx, one.Name, section)
		}
	}
	return skill.Reading{}, fmt.Errorf("skill %q: %w", id, skill.ErrNotFound)
}

func (a *app) agentsCommand() *cobra.Command {
	agents := parent(&cobra.Command{
		Use:   "agents",
		Short: "List the agents that are declared in files, and have one do a task",
		Long: "An agent is declared in a file, in the directory agents of the user's settings or in .belay/agents of the project: as\nYAML, JSON or Markdown with name, description, model, prompt, tools, skills, mode and budget. Other agents hand tasks to\n" +
			"it with the tool invoke_subagent.",
		Example: `  belay agents list
  belay agents run reviewer "look at the last commit"`,
	})
	agents.AddCommand(a.listAgentsCommand(), a.runAgentCommand())
	return agents
}

// agentLine is an agent as it is listed.
type agentLine struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Model       string   `json:"model,omitempty"`
	Tools       []string `json:"tools"`
	Skills      []string `json:"skills"`
	Mode        string   `json:"mode,omitempty"`
	Path        string   `json:"path"`
	Space       string   `json:"space,omitempty"`
	Mistakes    []string `json:"mistakes,omitempty"`
}

func messages(problems []subagent.Problem) []string {
	var all []string
	for i := range problems {
		text := problems[i].Message
		if line := problems[i].Line; line > 0 {
			text = fmt.Sprintf("line %d: %s", line, text)
		}
		all = append(all, text)
	}
	return all
}

func (a *app) listAgentsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the agents that are declared",
		Long:    "Lists the agents that are declared, those of loaded spaces too, and what is wrong with the files of others.",
		Example: "  belay agents list",
		Args:    arguments(0, 0, "agents list takes none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			own, problems := openAgents(settings)
			spaces := spacesHere(settings)
			declared := withSpaces(own, spaces)
			check, err := newAgentCheck(cmd.Context(), settings)
			if err != nil {
				return err
			}
			var mistakes []subagent.Problem
			var t table
			t.add("AGENT", "MODEL", "TOOLS", "FROM", "WHAT FOR")
			for _, d := range declared {
				wrong := check.mistakes(d)
				mistakes = append(mistakes, wrong...)
				if asJSON {
					if err := a.printJSON(agentLine{d.Name, d.Description, d.Model, d.Tools, d.Skills, d.Mode, d.Path, spaceOf(spaces, d.Path), messages(wrong)}); err != nil {
						return err
					}
					continue
				}
				tools := "all"
				if d.Tools != nil {
					tools = cmp.Or(strings.Join(d.Tools, ","), "none")
				}
				t.add(d.Name, cmp.Or(d.Model, "the same"), oneLine(tools), a.onOut.dim(oneLine(a.shownPath(settings, d.Path)+ofSpace(spaces, d.Path))), short(oneLine(d.Description), max(a.width-60, 30)))
			}
			a.tellAgentProblems(settings, "not loaded", problems)
			a.tellAgentProblems(settings, "mistaken", mistakes)
			switch {
			case asJSON:
				return nil
			case len(t.rows) == 1:
				a.remarkf("no agents are declared: put a file into .belay/agents, see docs/subagents.md")
				return nil
			}
			return t.write(a.out, a.onOut.dim)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

func (a *app) tellAgentProblems(s *config.Loaded, kind string, problems []subagent.Problem) {
	for i := range problems {
		p := problems[i]
		p.Path = a.shownPath(s, p.Path)
		a.remarkf("%s %s", a.onErr.yellow(kind+":"), oneLine(p.Error()))
	}
}

// usableAgents are the declared agents that work can be handed to. What is wrong with the
// others is told; of those that are declared for another agent, in a line.
func (a *app) usableAgents(ctx context.Context, s *config.Loaded) ([]*subagent.Declaration, error) {
	declared, problems := openAgents(s)
	check, err := newAgentCheck(ctx, s)
	if err != nil {
		return nil, err
	}
	odd := 0
	var unused []subagent.Problem
	declared = slices.DeleteFunc(declared, func(d *subagent.Declaration) bool {
		fails := check.fails(d)
		unfit := len(fails) > 0 || foreign(s, d.Path) && len(check.mistakes(d)) > 0
		if p := unreadHooks(s, d); p != nil { // who wrote hooks here means this program
			unused = append(unused, *p)
		} else if unfit && foreign(s, d.Path) {
			odd++
		} else if unfit {
			unused = append(unused, fails...)
		}
		return unfit
	})
	problems = slices.DeleteFunc(problems, func(p subagent.Problem) bool {
		if foreign(s, p.Path) {
			odd++
			return true
		}
		return false
	})
	a.tellAgentProblems(s, "not loaded", problems)
	a.tellAgentProblems(s, "not used", unused)
	for _, d := range withSpaces(nil, spacesHere(s)) {
		a.tellAgentProblems(s, "mistaken", check.fails(d))
	}
	if odd > 0 {
		a.remarkf("%s %s of .claude/agents: `belay agents list` says why", a.onErr.yellow("not used:"), counted(odd, "agent"))
	}
	return declared, nil
}

// fails are the mistakes that an agent cannot be made with: of its model and its tools.
// Without a skill it does less, and the tighter mode holds.
func (c *agentCheck) fails(d *subagent.Declaration) []subagent.Problem {
	made := *d
	made.Skills, made.Mode = nil, ""
	return c.mistakes(&made)
}

// agentNames are the names of the agents that are declared, to complete them.
func (a *app) agentNames() []string {
	settings, err := a.settings()
	if err != nil {
		return nil
	}
	var names []string
	declared, _ := openAgents(settings)
	for _, d := range withSpaces(declared, spacesHere(settings)) {
		names = append(names, d.Name)
	}
	return names
}

// errNoAgent says that there is no agent of a name.
var errNoAgent = errors.New("there is no such agent")

func (a *app) runAgentCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:     `run NAME "PROMPT"`,
		Short:   "Have a declared agent do a task",
		Long:    "Takes a turn of an agent that is declared in a file, as `belay run` does of the agent that the settings describe.",
		Example: `  belay agents run reviewer "look at the last commit"`,
		Args:    arguments(2, 2, "name the agent, and give the task as one argument, in quotes"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.agentNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.agent = args[0]
			return a.run(cmd, &o, args[1:])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.as, "as", "", "give the new session this id")
	jsonFlag(cmd, &o.json, "print events as JSON lines")
	o.settingFlags(cmd)
	return cmd
}

// take has the settings say what a declared agent is, where no flag says otherwise.
func (w *work) take(d *subagent.Declaration) error {
	s := w.settings
	w.declared = d
	if d.Model != "" && s.From("model").Kind != "flag" {
		if err := s.Recall("model", d.Path, d.Model); err != nil {
			return usage("%s: %w", d.Path, err)
		}
	}
	return nil
}

// declaration finds a declared agent by its name.
func declaration(s *config.Loaded, name string) (*subagent.Declaration, error) {
	declared, problems := openAgents(s)
	var names []string
	for _, d := range withSpaces(declared, spacesHere(s)) {
		if d.Name == name {
			if unread := unreadHooks(s, d); unread != nil {
				return nil, usage("%w", unread)
			}
			return d, nil
		}
		names = append(names, d.Name)
	}
	for i := range problems {
		if base := filepath.Base(problems[i].Path); strings.TrimSuffix(base, filepath.Ext(base)) == name {
			return nil, usage("%w", &problems[i])
		}
	}
	return nil, usage("%w: %q%s: `belay agents list` lists them", errNoAgent, name, near.Hint(name, names))
}
