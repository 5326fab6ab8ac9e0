package assembly

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
	"github.com/belay-run/belay/toolbox"
)

// ForeignName returns Belay's name for a tool of another coding agent. The bool is false if
// Belay has no such tool.
func ForeignName(theirs string) (string, bool) { return dialect.OurName(theirs) }

// unknownTool returns the message for a tool name that no tool has. It suggests the tool
// that was probably meant.
func unknownTool(wanted string, names []string) string {
	bare, _, _ := strings.Cut(wanted, "(") // for names such as Bash(git log:*)
	if ours, ok := ForeignName(bare); ok && slices.Contains(names, ours) {
		return fmt.Sprintf("there is no tool %q: in Belay it is called %s", wanted, ours)
	}
	return fmt.Sprintf("there is no tool %q%s: there are %s", wanted, near.Hint(wanted, names), strings.Join(names, ", "))
}

// An AgentCheck finds mistakes of declared agents that appear only when Belay makes the
// agent.
type AgentCheck struct {
	settings *config.Loaded
	tools    []string
	skills   *skill.Catalog
}

// NewAgentCheck returns a check that uses the tools and skills of the project.
func (a *Assembler) NewAgentCheck(ctx context.Context, s *config.Loaded) (*AgentCheck, error) {
	a.DefaultMode(ctx, s) // Mistakes compares the mode of an agent with this mode
	tools, err := stockToolNames(s)
	if err != nil {
		return nil, err
	}
	return &AgentCheck{settings: s, skills: AllSkills(ctx, s), tools: append(tools, subagent.InvokeTool)}, nil
}

// stockToolNames returns the names of the built-in tools that the settings name.
func stockToolNames(s *config.Loaded) ([]string, error) {
	root, err := os.OpenRoot(s.Project)
	if err != nil {
		return nil, fmt.Errorf("list the tools: %w", err)
	}
	defer func() { _ = root.Close() }() // ignore errors: only the names of the tools are used
	names := namesOf(toolbox.New(root, nil))
	web, err := webTools(s)
	if err != nil {
		return nil, err
	}
	for _, tool := range web.Tools() {
		names = append(names, tool.Declaration().Name)
	}
	return slices.DeleteFunc(names, func(name string) bool { return s.Tools != nil && !slices.Contains(s.Tools, name) }), nil
}

// Mistakes returns the mistakes of a declared agent. With such a mistake, Belay cannot
// make the agent, or the agent does not do what its file says.
func (c *AgentCheck) Mistakes(d *subagent.Declaration) []subagent.Problem {
	var found []subagent.Problem
	wrongf := func(format string, args ...any) {
		found = append(found, subagent.Problem{Path: d.Path, Message: fmt.Sprintf(format, args...)})
	}
	if d.Model != "" {
		if _, err := FindModel(c.settings, d.Model); err != nil {
			wrongf("model: %v", err)
		}
	}
	for _, name := range d.Tools {
		if !slices.Contains(c.tools, name) && !OfServer(name) {
			wrongf("tools: %s", unknownTool(name, c.tools))
		}
	}
	for _, name := range d.Skills {
		if !c.hasSkill(name) {
			wrongf("skills: there is no skill %q%s", name, near.Hint(name, SkillNames(c.skills)))
		}
	}
	if unread := UnreadHooks(c.settings, d); unread != nil {
		found = append(found, *unread)
	}
	own, err := permit.ModeOf(d.Mode)
	general, other := permit.ModeOf(c.settings.Mode)
	if d.Mode != "" && err == nil && other == nil && own.Tighter(general) != own {
		wrongf("mode: %s allows more than %s, the mode of the settings: an agent's mode can only be stricter, so %s is used", own.Name, general.Name, own.Tighter(general).Name)
	}
	return found
}

// hasSkill reports whether name is the name or id of a skill, or a pattern that matches
// one.
func (c *AgentCheck) hasSkill(name string) bool {
	if _, ok := c.skills.Lookup(name); ok {
		return true
	}
	return slices.ContainsFunc(c.skills.List(), func(s *skill.Skill) bool {
		byName, _ := path.Match(name, s.Name) // an invalid pattern matches nothing
		byID, _ := path.Match(name, s.ID)
		return byName || byID
	})
}

// UnreadHooks returns the problem of an agent of Claude Code that declares hooks, or nil. Hooks there cannot be trusted, so they would not run. One of them may be a gate, so
// Belay does not use the agent at all.
func UnreadHooks(s *config.Loaded, d *subagent.Declaration) *subagent.Problem {
	if !Foreign(s, d.Path) {
		return nil
	}
	return HooksUnread(d)
}

// HooksUnread returns the problem of an agent that declares hooks in a directory where
// Belay reads no hooks, or nil.
func HooksUnread(d *subagent.Declaration) *subagent.Problem {
	hooks := len(d.Hooks.List)
	for _, phase := range d.Hooks.Map { // in a mapping, a phase has a list of hooks or one hook
		if phase.Value.Kind == frontmatter.List {
			hooks += len(phase.Value.List)
		} else {
			hooks++
		}
	}
	if hooks == 0 {
		return nil
	}
	return &subagent.Problem{Path: d.Path, Line: d.Hooks.Line, Message: fmt.Sprintf(
		"hooks: %s of agent %q would not run, so the agent is not used: in a project, only agents in .belay/agents can have hooks: move the file there, or remove its hooks",
		visible.Counted(hooks, "hook"), d.Name)}
}
