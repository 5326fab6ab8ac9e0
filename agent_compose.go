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

// ownTools maps the name of an extension to the tools of that extension that the agent may
// use. The agent may use all tools of an extension that is not in the map.
type ownTools map[string][]string

// allows reports whether the agent may use a tool of an owner.
func (o ownTools) allows(owner, tool string) bool {
	patterns, narrowed := o[owner]
	return !narrowed || owner == "" || slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, tool) })
}

// matches reports whether a pattern of [path.Match] covers the name of a tool.
func matches(pattern, tool string) bool {
	ok, err := path.Match(pattern, tool)
	return ok && err == nil
}

// attached is an extension of an agent, with the answers of its methods that the agent
// calls only once.
type attached struct {
	Extension
	name  string
	kinds []string // the kinds of resources that the extension enforces
	tools []string // the tools that the agent may use, if narrowed is set
	// narrowed says that the agent may use only some of the extension's tools.
	narrowed bool
	line     string // the extension's line in the scope block; empty: the default line
	text     string // the extension's part of the prompt
	hint     string // the extension's line about its resources
}

// composition is everything that an agent has from its extensions. A composition never
// changes: when the extensions change, the agent gets a new one.
type composition struct {
	extensions []*attached
	config     AgentConfig // after the Build methods of the extensions
	narrowed   ownTools
	scopeLines []string
	steppers   []stepper
	spanners   []SpanExtension
}

// newComposition makes the composition of an agent without extensions.
func newComposition(config AgentConfig) *composition { return &composition{config: config.clone()} }

// with returns the composition with more extensions. The Build methods of the new
// extensions may change the configuration.
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

// plus returns the composition with more extensions. The method with has already attached
// them.
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

// attach calls the extension's Name method. It fails if the name is empty or in use.
func (c *composition) attach(i int, e Extension) (*attached, error) {
	if e == nil {
		return nil, fmt.Errorf("extension %d is nil: remove it from the list", i+1)
	}
	x := &attached{Extension: e}
	if err := safely(fmt.Sprintf("%d, a %T", i+1, e), func() error { x.name = e.Name(); return nil }); err != nil {
		return nil, err
	}
	if strings.TrimSpace(x.name) == "" {
		return nil, fmt.Errorf("extension %d, a %T, has no name: its Name method must return one", i+1, e)
	}
	return x, c.checkName(x)
}

// checkName returns an error if another extension has the same name.
func (c *composition) checkName(x *attached) error {
	if slices.ContainsFunc(c.extensions, func(o *attached) bool { return o.name == x.name }) {
		return fmt.Errorf("two extensions have the name %q: rename one of them, or remove it", x.name)
	}
	return nil
}

// build calls the extension's Build method, which may change the instructions and the
// resources of the agent. Any other change is an error.
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
			return errors.New("its Build method changed the ID, the Name or the Tools of the agent: it may change only Instructions and Resources")
		}
		c.config = draft.clone() // the extension may still change its own copy
		return nil
	})
}

// read asks the extension for its part of the prompt, and for the list of its tools that
// the agent may use.
func (x *attached) read(agent AgentConfig) {
	if p, ok := x.Extension.(PromptExtension); ok {
		x.text, x.hint = p.Prompt(agent.clone())
	}
	allowed, restricted := agent.Resources[x.name]
	_, enforces := x.Extension.(ResourceExtension)
	s, says := x.Extension.(ScopeExtension)
	if !restricted || enforces && !says { // the extension enforces its resources itself
		return
	}
	x.tools, x.narrowed = slices.Clone(allowed), true
	if says {
		tools, line := s.Narrow(agent.clone(), slices.Clone(allowed))
		x.tools, x.line = slices.Clone(tools), strings.TrimSpace(oneLine(line, " "))
	}
}

// assemble computes narrowed, scopeLines and steppers from the answers of the extensions.
func (c *composition) assemble() *composition {
	c.narrowed = make(ownTools)
	lines := make(map[string]string) // by kind of resource
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
		if s, ok := x.Extension.(SpanExtension); ok {
			c.spanners = append(c.spanners, s)
		}
	}
	for _, kind := range kinds {
		c.scopeLines = append(c.scopeLines, lines[kind])
	}
	return c
}

// scopeLine returns the default line about an extension for the scope block.
func scopeLine(name string, allowed []string) string {
	if len(allowed) == 0 {
		return "Of " + untagged(name) + " you may use nothing."
	}
	return "Of " + untagged(name) + " you may use only: " + untagged(strings.Join(allowed, ", ")) + "."
}

// oneLine returns a text as one line in which every character is visible. It replaces each
// end of a line by mark.
func oneLine(text, mark string) string {
	return strings.NewReplacer("\n", mark, "\u2028", mark, "\u2029", mark).Replace(visible.All(text))
}

// untagged returns the text as one line without < and >. So the text cannot close the XML
// block that contains it.
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

// gathered is what extensions provide: tools, hooks and directives.
type gathered struct {
	tools      []ownedTool
	hooks      []hook.Subscription
	directives []Directive
}

// gather collects the tools, hooks and directives of extensions.
func gather(from []*attached) (*gathered, error) {
	g := new(gathered)
	for _, x := range from {
		if err := safely(x.name, func() error { g.collect(x); return nil }); err != nil {
			return nil, err
		}
	}
	return g, nil
}

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

// safely calls code of an extension and recovers from a panic. Every call of an extension
// outside a turn must go through safely. Turns have their own recovery.
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

// warnOfStrays logs names in the scope and the resources that match no tool. They are not
// an error, because the tools may be added later.
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
		if _, enforces := x.Extension.(ResourceExtension); says || enforces { // only the extension knows what the names mean
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
		a.opts.Logger.Warn("a name or pattern matches none of the agent's current tools", "agent", a.opts.Name, "where", where, "name", pattern, "near", near.Hint(pattern, names))
	}
}

// allTools returns the agent's tools, including the tools that extensions provide for the
// next step.
func (a *Agent) allTools() *toolset {
	now, composed := a.tools.Load(), a.composed.Load()
	if len(composed.steppers) == 0 {
		return now
	}
	return a.step(now, composed, a.reach()).set
}

// basePrompt returns the beginning of every turn's prompt: the agent's instructions, the
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
