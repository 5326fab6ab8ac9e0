package belay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"
)

// AgentConfig is an agent as its extensions see it while it is made, and when it goes.
type AgentConfig struct {
	// ID tells the agent from others of its name.
	ID string
	// Name is the agent's name.
	Name string
	// Instructions are its own part of the prompt.
	Instructions string
	// Resources are Options.Resources.
	Resources map[string][]string
	// Tools are the names of the tools that it may use, when it is registered.
	Tools []string
}

// BuildExtension has a say in what an agent is made of. It is asked first, in the order
// of the extensions, and may change the instructions and the resources of the config. An
// error keeps the agent from being made.
type BuildExtension interface {
	Extension
	Build(ctx context.Context, agent *AgentConfig) error
}

// RegisterExtension keeps something for each agent.
type RegisterExtension interface {
	Extension
	// Register is told of an agent that is made, before anybody can use it. If it
	// fails the agent is not made, and those that were told before are told that it
	// is gone.
	Register(ctx context.Context, agent AgentConfig) error
	// Unregister is told of an agent that nobody can use any more.
	Unregister(ctx context.Context, agent AgentConfig) error
}

// HintExtension tells the model in a line what resources an agent has by it, such as the
// names of skills or of servers. It is asked once, by [New].
type HintExtension interface {
	Extension
	Hint(agent AgentConfig) string
}

// ScopeExtension narrows its own tools for an agent that may use part of what it brings.
// Without it the names in Options.Resources are those of its tools, or patterns of
// [path.Match].
type ScopeExtension interface {
	Extension
	// Narrow says which of its tools the agent may use, as names or patterns, and may
	// say it to the model in one line. It is asked once, and only about an agent whose
	// Options.Resources name the extension.
	Narrow(agent AgentConfig, allowed []string) (tools []string, line string)
}

// WatchExtension sees the events of an agent. It is given them in a goroutine of its own,
// as [Agent.Watch] gives them, and returns when they end, or before.
type WatchExtension interface {
	Extension
	Watch(ctx context.Context, events iter.Seq2[Event, error])
}

// Environment tells the model where an agent works, in a block behind its instructions.
type Environment struct {
	// Dir is the working directory. Shell is the shell that commands run in. An empty
	// one is left out.
	Dir, Shell string
	// Now tells the time. Defaults to the machine's clock.
	Now func() time.Time
}

// block is the environment of a day.
func (e *Environment) block(day string) string {
	lines := []string{"Operating system: " + runtime.GOOS, "Platform: " + runtime.GOOS + "/" + runtime.GOARCH}
	if e.Shell != "" {
		lines = append(lines, "Shell: "+e.Shell)
	}
	if e.Dir != "" {
		lines = append(lines, "Working directory: "+e.Dir)
	}
	return "<environment>\n" + strings.Join(append(lines, "Date: "+day), "\n") + "\n</environment>"
}

func (e *Environment) day() string {
	now := time.Now
	if e.Now != nil {
		now = e.Now
	}
	return now().Format(time.DateOnly)
}

// ownTools is how the tools of an extension are narrowed for the agent: by name of the
// extension, the tools that it may use. What is not in it may use all.
type ownTools map[string][]string

// allows reports whether a tool of an owner may be used.
func (o ownTools) allows(owner, tool string) bool {
	patterns, narrowed := o[owner]
	return !narrowed || owner == "" || slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok && err == nil
	})
}

// build asks the extensions what the agent is made of.
func (a *Agent) build(ctx context.Context) (err error) {
	a.config = AgentConfig{ID: a.opts.Name + a.serial, Name: a.opts.Name, Instructions: a.opts.Instructions, Resources: a.opts.Resources}
	names := make(map[string]bool)
	for _, e := range a.opts.Extensions {
		if names[e.Name()] {
			return fmt.Errorf("there are two extensions called %q", e.Name())
		}
		names[e.Name()] = true
	}
	for _, e := range a.opts.Extensions {
		if b, ok := e.(BuildExtension); ok {
			if err := safely(e, func() error { return b.Build(ctx, &a.config) }); err != nil {
				return err
			}
		}
	}
	for name := range a.config.Resources {
		if !names[name] {
			return fmt.Errorf("resources: there is no extension %q: there are %s", name, quotedNames(a.opts.Extensions))
		}
	}
	a.narrowed = make(ownTools)
	var lines []string
	for _, e := range a.opts.Extensions {
		allowed, restricted := a.config.Resources[e.Name()]
		if !restricted {
			continue
		}
		tools, line := allowed, ""
		if s, ok := e.(ScopeExtension); ok {
			if err := safely(e, func() error { tools, line = s.Narrow(a.config, slices.Clone(allowed)); return nil }); err != nil {
				return err
			}
		}
		a.narrowed[e.Name()] = tools
		lines = append(lines, strings.TrimSpace(strings.ReplaceAll(line, "\n", " ")))
	}
	a.scopeLines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	return nil
}

func quotedNames(extensions []Extension) string {
	names := make([]string, 0, len(extensions))
	for _, e := range extensions {
		names = append(names, fmt.Sprintf("%q", e.Name()))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// safely asks an extension, which is not ours and may panic.
func safely(e Extension, ask func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
		if err != nil {
			err = fmt.Errorf("extension %q: %w", e.Name(), err)
		}
	}()
	return ask()
}

// sameExtension reports whether two are one. Those that cannot be told apart are not.
func sameExtension(a, b Extension) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// basePrompt is what every turn's prompt begins with: the agent's own text, the
// environment, what extensions add in their order, what resources there are, and the
// scope.
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

// scopeBlock tells a restricted agent what it may use.
func (a *Agent) scopeBlock() string {
	if a.opts.Scope == nil && len(a.narrowed) == 0 {
		return ""
	}
	var lines []string
	switch {
	case a.opts.Scope != nil && len(a.opts.Scope) == 0:
		lines = append(lines, "You have no tools.")
	case a.opts.Scope != nil:
		lines = append(lines, "You may use these tools only: "+strings.Join(a.opts.Scope, ", ")+".")
	}
	if lines = append(lines, a.scopeLines...); len(lines) == 0 {
		return ""
	}
	return "<scope>\n" + strings.Join(lines, "\n") + "\n</scope>"
}

// today is the base of a turn's prompt. It is made anew when the date changes.
func (a *Agent) today() *prompt {
	now := a.prompt.Load()
	if a.opts.Environment == nil {
		return now
	}
	if day := a.opts.Environment.day(); day != now.day {
		now = a.basePrompt(day)
		a.prompt.Store(now)
	}
	return now
}

// register tells the extensions of an agent that is made.
func (a *Agent) register(ctx context.Context) error {
	a.config.Tools = slices.Clone(a.tools.Load().names)
	for i, e := range a.opts.Extensions {
		r, ok := e.(RegisterExtension)
		if !ok {
			continue
		}
		if err := safely(e, func() error { return r.Register(ctx, a.config) }); err != nil {
			return errors.Join(err, a.unregister(context.WithoutCancel(ctx), a.opts.Extensions[:i]))
		}
	}
	a.registered = true
	return nil
}

// unregister tells extensions of an agent that is gone, the last first.
func (a *Agent) unregister(ctx context.Context, extensions []Extension) error {
	a.registered = false
	var problems []error
	for _, e := range slices.Backward(extensions) {
		if r, ok := e.(RegisterExtension); ok {
			problems = append(problems, safely(e, func() error { return r.Unregister(ctx, a.config) }))
		}
	}
	return errors.Join(problems...)
}

// watchExtensions has those extensions see events that want to.
func (a *Agent) watchExtensions() {
	ctx, cancel := context.WithCancel(context.Background())
	a.endWatching = cancel
	for _, e := range a.opts.Extensions {
		if w, ok := e.(WatchExtension); ok {
			events := a.Watch(ctx, nil)
			a.watching.Go(func() { // until the agent is closed
				if err := safely(e, func() error { w.Watch(ctx, events); return nil }); err != nil {
					a.opts.Logger.Warn("an extension stopped watching", "error", err)
				}
			})
		}
	}
}
