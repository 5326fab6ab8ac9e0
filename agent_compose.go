package belay

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
)

// ownTools restricts the tools of extensions for the agent. It maps the name of an
// extension to the tools that the agent may use. All tools of other extensions may be used.
type ownTools map[string][]string

// allows reports whether a tool of an owner may be used.
func (o ownTools) allows(owner, tool string) bool {
	patterns, narrowed := o[owner]
	return !narrowed || owner == "" || slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, tool) })
}

// matches reports whether a pattern of [path.Match] covers the name of a tool.
func matches(pattern, tool string) bool {
	ok, err := path.Match(pattern, tool)
	return ok && err == nil
}

// nameExtensions reads the names of the extensions. They must be unique.
func (a *Agent) nameExtensions() error {
	a.opts.Extensions = slices.Clone(a.opts.Extensions)
	a.names = make([]string, len(a.opts.Extensions))
	for i, e := range a.opts.Extensions {
		if e == nil {
			return fmt.Errorf("extension %d is nil: leave it out", i+1)
		}
		if err := safely(fmt.Sprintf("%d, a %T", i+1, e), func() error { a.names[i] = e.Name(); return nil }); err != nil {
			return err
		}
		switch name := a.names[i]; {
		case strings.TrimSpace(name) == "":
			return fmt.Errorf("extension %d, a %T, has no name: give it one; errors and scopes use it", i+1, e)
		case slices.Contains(a.names[:i], name):
			return fmt.Errorf("there are two extensions called %q: give one of them another name, or leave it out", name)
		}
	}
	return nil
}

// build lets the extensions change the agent's configuration.
func (a *Agent) build(ctx context.Context) error {
	if err := a.nameExtensions(); err != nil {
		return err
	}
	id := a.opts.Name + a.serial
	a.config = AgentConfig{ID: id, Name: a.opts.Name, Instructions: a.opts.Instructions, Resources: a.opts.Resources}.clone()
	for i, e := range a.opts.Extensions {
		b, ok := e.(BuildExtension)
		if !ok {
			continue
		}
		draft := a.config.clone()
		if draft.Resources == nil {
			draft.Resources = make(map[string][]string)
		}
		if err := safely(a.names[i], func() error { return b.Build(ctx, &draft) }); err != nil {
			return err
		}
		a.config = AgentConfig{ID: id, Name: a.opts.Name, Instructions: draft.Instructions, Resources: draft.Resources}.clone() // the extension may still use its copy
	}
	if err := a.checkResources(); err != nil {
		return err
	}
	return a.narrow()
}

// narrow asks the extensions which of their tools the agent may use, and builds the lines
// of the scope block.
func (a *Agent) narrow() error {
	a.narrowed = make(ownTools)
	lines := make(map[string]string) // by kind
	var kinds []string               // in the order of the extensions
	for i, e := range a.opts.Extensions {
		own, err := a.kinds(i)
		if err != nil {
			return err
		}
		for _, kind := range own {
			if allowed, restricted := a.config.Resources[kind]; restricted && lines[kind] == "" {
				kinds = append(kinds, kind)
				lines[kind] = scopeLine(kind, allowed)
			}
		}
		name := a.names[i]
		allowed, restricted := a.config.Resources[name]
		_, enforces := e.(ResourceExtension)
		s, says := e.(ScopeExtension)
		if !restricted || enforces && !says { // it enforces its resources itself
			continue
		}
		tools, line := slices.Clone(allowed), ""
		if says {
			if err := safely(name, func() error { tools, line = s.Narrow(a.config.clone(), slices.Clone(allowed)); return nil }); err != nil {
				return err
			}
		}
		a.narrowed[name] = slices.Clone(tools)
		if line = strings.TrimSpace(oneLine(line, " ")); line != "" {
			lines[name] = line
		}
	}
	for _, kind := range kinds {
		a.scopeLines = append(a.scopeLines, lines[kind])
	}
	return nil
}

// scopeLine returns the line about an extension for the scope block, for an extension that
// returned none.
func scopeLine(name string, allowed []string) string {
	if len(allowed) == 0 {
		return "Of " + untagged(name) + " you may use nothing."
	}
	return "Of " + untagged(name) + " you may use only: " + untagged(strings.Join(allowed, ", ")) + "."
}

// oneLine returns a text as one line in which every character is visible. A mark stands for
// the end of each line.
func oneLine(text, mark string) string {
	return strings.NewReplacer("\n", mark, "\u2028", mark, "\u2029", mark).Replace(visible.All(text))
}

// untagged returns a line that cannot close the block around it.
func untagged(text string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(oneLine(text, "\u240a"))
}

func quotedNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return strings.Join(quoted, ", ")
}

// gathered is what an agent gets from its options and its extensions.
type gathered struct {
	tools      []ownedTool
	hooks      []hook.Subscription
	directives []Directive
}

// gather collects what the extensions provide.
func (a *Agent) gather() (*gathered, error) {
	g := &gathered{owned("", a.opts.Tools), slices.Clone(a.opts.Hooks), slices.Clone(a.opts.Directives)}
	for i, e := range a.opts.Extensions {
		if err := safely(a.names[i], func() error { a.collect(e, a.names[i], g); return nil }); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// collect collects what one extension provides.
func (a *Agent) collect(e Extension, name string, g *gathered) {
	if t, ok := e.(ToolExtension); ok {
		g.tools = append(g.tools, owned(name, t.Tools())...)
	}
	if st, ok := e.(StepToolExtension); ok {
		a.steppers = append(a.steppers, stepper{st, name})
	}
	if d, ok := e.(DirectiveExtension); ok {
		g.directives = append(g.directives, d.Directives()...)
	}
	if h, ok := e.(HookExtension); ok {
		g.hooks = append(g.hooks, h.Hooks()...)
	}
	if p, ok := e.(PromptExtension); ok {
		text, resources := p.Prompt(a.config.clone())
		a.fragments = append(a.fragments, fragment{name, text})
		a.hints = append(a.hints, fragment{name, resources})
	}
}

// safely calls an extension and recovers from its panic. Every call of an extension outside
// a turn goes through it. The turn has its own recovery.
func safely(name string, ask func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
		if err != nil {
			err = fmt.Errorf("extension %q: %w", name, err)
		}
	}()
	return ask()
}

// warnOfStrays logs names in the scope and the resources that match no tool. That is no
// error: the tools may be added later.
func (a *Agent) warnOfStrays() {
	all := a.allTools().tools
	names := make([]string, len(all))
	for i, b := range all {
		names[i] = b.name
	}
	for _, pattern := range a.opts.Scope {
		a.warnOfStray("scope", pattern, names)
	}
	for i, e := range a.opts.Extensions {
		_, says := e.(ScopeExtension)
		if _, enforces := e.(ResourceExtension); says || enforces { // the extension knows what the names mean
			continue
		}
		var own []string
		for _, b := range all {
			if b.owner == a.names[i] {
				own = append(own, b.name)
			}
		}
		for _, pattern := range a.config.Resources[a.names[i]] {
			a.warnOfStray("resources of "+a.names[i], pattern, own)
		}
	}
}

func (a *Agent) warnOfStray(where, pattern string, names []string) {
	if !slices.ContainsFunc(names, func(name string) bool { return matches(pattern, name) }) {
		a.opts.Logger.Warn("a name matches no tool that the agent has now", "agent", a.opts.Name, "where", where, "name", pattern, "near", near.Hint(pattern, names))
	}
}

// allTools returns the tools of the agent, with those of its last step.
func (a *Agent) allTools() *toolset {
	now := a.tools.Load()
	if kept := a.stepped.Load(); kept != nil && (*kept)[0].base == now {
		return (*kept)[0].set
	}
	return now
}

// basePrompt returns the beginning of every turn's prompt: the agent's own text, the
// environment, the texts of the extensions in their order, the resources, and the scope.
func (a *Agent) basePrompt(day string) *prompt {
	p := &prompt{day: day}
	p.add("agent", "", a.opts.Name, a.config.Instructions)
	if a.opts.Environment != nil {
		p.add("environment", "", "", a.opts.Environment.block(day))
	}
	for _, f := range a.fragments {
		p.add("extension", "", f.from, f.text)
	}
	for _, h := range a.hints {
		p.add("resources", "", h.from, h.text)
	}
	p.add("scope", "", "", a.scopeBlock())
	return p
}

// scopeBlock returns the text that tells a restricted agent what it may use.
func (a *Agent) scopeBlock() string {
	if a.opts.Scope == nil && len(a.scopeLines) == 0 {
		return ""
	}
	var lines []string
	switch {
	case a.opts.Scope != nil && len(a.opts.Scope) == 0:
		lines = append(lines, "You have no tools.")
	case a.opts.Scope != nil:
		lines = append(lines, "You may use these tools only: "+untagged(strings.Join(a.opts.Scope, ", "))+".")
	}
	return "<scope>\n" + strings.Join(append(lines, a.scopeLines...), "\n") + "\n</scope>"
}
