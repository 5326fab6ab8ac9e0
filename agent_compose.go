package belay

import (
	"context"
	"errors"
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

// attached is an extension of an agent, with what the agent asked it once.
type attached struct {
	Extension
	name  string
	kinds []string // of resources that are enforced for it
	tools []string // that the agent may use, if narrowed is set
	// narrowed says that the agent may use only some of its tools.
	narrowed bool
	line     string // of the scope block; empty for the default
	text     string // its part of the prompt
	hint     string // what it says about its resources
}

// composition is what an agent has from its extensions. It never changes: an agent whose
// extensions change gets another one.
type composition struct {
	extensions []*attached
	config     AgentConfig // as the extensions made it
	narrowed   ownTools
	scopeLines []string
	steppers   []stepper
}

// newComposition makes the composition of an agent without extensions.
func newComposition(config AgentConfig) *composition { return &composition{config: config.clone()} }

// with returns the composition with more extensions. Those with a Build method may change
// the configuration.
func (c *composition) with(ctx context.Context, more []Extension) (*composition, error) {
	next := &composition{config: c.config, extensions: slices.Clone(c.extensions)}
	for i, e := range more {
		x, err := next.attach(i, e)
		if err != nil {
			return nil, err
		}
		next.extensions = append(next.extensions, x)
	}
	added := next.extensions[len(c.extensions):]
	for _, x := range added {
		if err := next.build(ctx, x); err != nil {
			return nil, err
		}
	}
	for _, x := range added {
		if err := x.readKinds(); err != nil {
			return nil, err
		}
	}
	if err := next.checkResources(); err != nil {
		return nil, err
	}
	for _, x := range added {
		if err := safely(x.name, func() error { x.read(next.config); return nil }); err != nil {
			return nil, err
		}
	}
	return next.assemble(), nil
}

// without returns the composition without some extensions.
func (c *composition) without(gone []*attached) *composition {
	next := &composition{config: c.config, extensions: slices.Clone(c.extensions)}
	next.extensions = slices.DeleteFunc(next.extensions, func(x *attached) bool { return slices.Contains(gone, x) })
	return next.assemble()
}

// plus returns the composition with extensions that were attached to another one.
func (c *composition) plus(added []*attached) (*composition, error) {
	next := &composition{config: c.config, extensions: slices.Clone(c.extensions)}
	for _, x := range added {
		if err := next.checkName(x); err != nil {
			return nil, err
		}
		next.extensions = append(next.extensions, x)
	}
	return next.assemble(), nil
}

// attach reads the name of an extension. Names are unique.
func (c *composition) attach(i int, e Extension) (*attached, error) {
	if e == nil {
		return nil, fmt.Errorf("extension %d is nil: leave it out", i+1)
	}
	x := &attached{Extension: e}
	if err := safely(fmt.Sprintf("%d, a %T", i+1, e), func() error { x.name = e.Name(); return nil }); err != nil {
		return nil, err
	}
	if strings.TrimSpace(x.name) == "" {
		return nil, fmt.Errorf("extension %d, a %T, has no name: give it one; errors and scopes use it", i+1, e)
	}
	return x, c.checkName(x)
}

// checkName refuses a second extension of the same name.
func (c *composition) checkName(x *attached) error {
	if slices.ContainsFunc(c.extensions, func(o *attached) bool { return o.name == x.name }) {
		return fmt.Errorf("there are two extensions called %q: give one of them another name, or leave it out", x.name)
	}
	return nil
}

// build lets an extension change the instructions and the resources of the agent. A change
// of something else is an error.
func (c *composition) build(ctx context.Context, x *attached) error {
	b, ok := x.Extension.(BuildExtension)
	if !ok {
		return nil
	}
	draft := c.config.clone()
	if draft.Resources == nil {
		draft.Resources = make(map[string][]string)
	}
	return safely(x.name, func() error {
		if err := b.Build(ctx, &draft); err != nil {
			return err
		}
		if draft.ID != c.config.ID || draft.Name != c.config.Name || !slices.Equal(draft.Tools, c.config.Tools) {
			return errors.New("its Build changed the id, the name or the tools of the agent: it may change only Instructions and Resources")
		}
		c.config = draft.clone() // the extension may still use its copy
		return nil
	})
}

// read asks the extension for its part of the prompt, and which of its tools the agent may
// use.
func (x *attached) read(agent AgentConfig) {
	if p, ok := x.Extension.(PromptExtension); ok {
		x.text, x.hint = p.Prompt(agent.clone())
	}
	allowed, restricted := agent.Resources[x.name]
	_, enforces := x.Extension.(ResourceExtension)
	s, says := x.Extension.(ScopeExtension)
	if !restricted || enforces && !says { // it enforces its resources itself
		return
	}
	x.tools, x.narrowed = slices.Clone(allowed), true
	if says {
		tools, line := s.Narrow(agent.clone(), slices.Clone(allowed))
		x.tools, x.line = slices.Clone(tools), strings.TrimSpace(oneLine(line, " "))
	}
}

// assemble puts together what the extensions said.
func (c *composition) assemble() *composition {
	c.narrowed = make(ownTools)
	lines := make(map[string]string) // by kind
	var kinds []string               // in the order of the extensions
	for _, x := range c.extensions {
		for _, kind := range x.kinds {
			if allowed, restricted := c.config.Resources[kind]; restricted && lines[kind] == "" {
				kinds = append(kinds, kind)
				lines[kind] = scopeLine(kind, allowed)
			}
		}
		if x.narrowed {
			c.narrowed[x.name] = x.tools
		}
		if x.line != "" {
			lines[x.name] = x.line
		}
		if st, ok := x.Extension.(StepToolExtension); ok {
			c.steppers = append(c.steppers, stepper{st, x.name})
		}
	}
	for _, kind := range kinds {
		c.scopeLines = append(c.scopeLines, lines[kind])
	}
	return c
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

// gathered is what extensions bring.
type gathered struct {
	tools      []ownedTool
	hooks      []hook.Subscription
	directives []Directive
}

// gather collects what some of the extensions bring.
func gather(from []*attached) (*gathered, error) {
	g := new(gathered)
	for _, x := range from {
		if err := safely(x.name, func() error { g.collect(x); return nil }); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// collect collects what one extension brings.
func (g *gathered) collect(x *attached) {
	if t, ok := x.Extension.(ToolExtension); ok {
		g.tools = append(g.tools, owned(x.name, t.Tools())...)
	}
	if d, ok := x.Extension.(DirectiveExtension); ok {
		g.directives = append(g.directives, d.Directives()...)
	}
	if h, ok := x.Extension.(HookExtension); ok {
		g.hooks = append(g.hooks, h.Hooks()...)
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
func (a *Agent) warnOfStrays(added []*attached) {
	all := a.allTools().tools
	names := make([]string, len(all))
	for i, b := range all {
		names[i] = b.name
	}
	for _, pattern := range a.opts.Scope {
		a.warnOfStray("scope", pattern, names)
	}
	resources := a.composed.Load().config.Resources
	for _, x := range added {
		_, says := x.Extension.(ScopeExtension)
		if _, enforces := x.Extension.(ResourceExtension); says || enforces { // the extension knows what the names mean
			continue
		}
		var own []string
		for _, b := range all {
			if b.owner == x.name {
				own = append(own, b.name)
			}
		}
		for _, pattern := range resources[x.name] {
			a.warnOfStray("resources of "+x.name, pattern, own)
		}
	}
}

func (a *Agent) warnOfStray(where, pattern string, names []string) {
	if !slices.ContainsFunc(names, func(name string) bool { return matches(pattern, name) }) {
		a.opts.Logger.Warn("a name matches no tool that the agent has now", "agent", a.opts.Name, "where", where, "name", pattern, "near", near.Hint(pattern, names))
	}
}

// allTools returns the tools of the agent, with those of its next step.
func (a *Agent) allTools() *toolset {
	now, composed := a.tools.Load(), a.composed.Load()
	if len(composed.steppers) == 0 {
		return now
	}
	return a.step(now, composed, a.reach()).set
}

// basePrompt returns the beginning of every turn's prompt: the agent's own text, the
// environment, the texts of the extensions in their order, the resources, and the scope.
func (a *Agent) basePrompt(c *composition, day string) *prompt {
	p := &prompt{day: day, of: c}
	p.add("agent", "", a.opts.Name, c.config.Instructions)
	if a.opts.Environment != nil {
		p.add("environment", "", "", a.opts.Environment.block(day))
	}
	for _, x := range c.extensions {
		p.add("extension", "", x.name, x.text)
	}
	for _, x := range c.extensions {
		p.add("resources", "", x.name, x.hint)
	}
	p.add("scope", "", "", scopeBlock(a.opts.Scope, c.scopeLines))
	return p
}

// scopeBlock returns the text that tells a restricted agent what it may use.
func scopeBlock(scope, more []string) string {
	if scope == nil && len(more) == 0 {
		return ""
	}
	var lines []string
	switch {
	case scope != nil && len(scope) == 0:
		lines = append(lines, "You have no tools.")
	case scope != nil:
		lines = append(lines, "You may use these tools only: "+untagged(strings.Join(scope, ", "))+".")
	}
	return "<scope>\n" + strings.Join(append(lines, more...), "\n") + "\n</scope>"
}
