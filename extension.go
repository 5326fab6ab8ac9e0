package belay

import (
	"context"
	"iter"
	"slices"

	"github.com/belay-run/belay/hook"
)

// Extension is a subsystem: a Go value with a name and any of the interfaces
// below. The loop knows them and no subsystem.
type Extension interface {
	Name() string
}

// ToolExtension brings tools.
type ToolExtension interface {
	Extension
	Tools() []Tool
}

// StepToolExtension brings tools that come and go by themselves: it is asked before
// each model request, so that what it returns follows whatever it is made of. A tool
// whose name the agent has from elsewhere is left out, with a diagnostic.
type StepToolExtension interface {
	Extension
	// StepTools are the tools of an agent's next step. As long as they do not change
	// it should return the same ones: they are then checked once.
	StepTools(agent string) []Tool
}

// DirectiveExtension brings directives.
type DirectiveExtension interface {
	Extension
	Directives() []Directive
}

// HookExtension brings subscriptions.
type HookExtension interface {
	Extension
	Hooks() []hook.Subscription
}

// PromptExtension adds text to the system prompt.
type PromptExtension interface {
	Extension
	// Prompt returns a fragment, which comes after the agent's own instructions, and a
	// line that lists the agent's resources, such as skills or servers, which comes after
	// the fragments of all extensions. Both may be empty. [New] calls it once.
	Prompt(agent AgentConfig) (fragment, resources string)
}

// RouteExtension runs the tools of bundles that hooks contribute: those whose
// route is the extension's name.
type RouteExtension interface {
	Extension
	Route(ctx context.Context, call *Invocation) (Result, error)
}

// InputExtension looks at a user message after user.prompt.submit and directives,
// and before the turn begins.
type InputExtension interface {
	Extension
	// Expand says what becomes of the text. Extensions are asked in order, each
	// with what the one before left. An error ends the turn and nothing of the
	// message is stored.
	Expand(ctx context.Context, in Submission) (Expansion, error)
}

// NameExtension has names that users type with a slash in front, such as the names of
// skills. Directives come first. The input of other extensions has such names as text.
type NameExtension interface {
	InputExtension
	// Binds reports whether /name in a message to an agent belongs to the extension.
	Binds(agent, name string) bool
	// TypedNames returns the names that Binds reports for an agent, in the order in which
	// users see them. Names that users need not see are left out.
	TypedNames(agent string) []TypedName
}

// Submission is a user message about to be stored.
type Submission struct {
	Session, Turn, Agent string
	// Text is what hooks, directives and earlier extensions left of what the user
	// typed, with a [Placeholder] for each name that somebody answers to.
	Text string
	// Typed is what the user typed, as user.prompt.submit left it.
	Typed string
	// Names are those that the extension answers to, each as often as the message
	// has it, in order.
	Names []string
	// Controls are good until Expand returns.
	Controls *Controls
}

// Expansion is what an extension makes of a message. The zero value leaves it as
// it is.
type Expansion struct {
	// Text replaces the text; empty counts.
	Text *string
	// Injected goes in front of the message, on the user's side.
	Injected []Injection
	// Reply answers in the model's place. Later extensions are not asked.
	Reply *Reply
}

// Injection is a message in front of a user's.
type Injection struct {
	Parts []Part `json:"parts"`
	// IsSkillInjection marks what a skill injects.
	IsSkillInjection bool `json:"is_skill_injection,omitempty"`
}

func (in Injection) message() *Message {
	return &Message{Role: RoleUser, Kind: KindInjected, Parts: in.Parts, IsSkillInjection: in.IsSkillInjection}
}

// CloseExtension is closed with its agent.
type CloseExtension interface {
	Extension
	Close(ctx context.Context) error
}

// Planner makes the preflight plan of a turn. Without one the plan is the user's
// text.
type Planner interface {
	Plan(ctx context.Context, turn TurnSoFar) (PreflightPlan, error)
}

// AgentConfig is an agent as its extensions see it while it is made, and when it goes. Each
// time it is a copy, which is theirs.
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

// ScopeExtension narrows its own tools for an agent that may use part of what it brings.
// Without it the names in Options.Resources are those of its tools and of what users type,
// or patterns of [path.Match]. What an agent may not use its subagents may not use either.
// What is no tool, such as a skill, is for a [ResourceExtension].
type ScopeExtension interface {
	Extension
	// Narrow says which of its tools the agent may use, as names or patterns, and may
	// say it to the model in one line; without one the model is told the names. It is
	// asked once, and only about an agent whose Options.Resources name the extension.
	Narrow(agent AgentConfig, allowed []string) (tools []string, line string)
}

// WatchExtension sees the events of an agent. It is given them in a goroutine of its own,
// as [Agent.Watch] gives them, and returns when they end, or before.
type WatchExtension interface {
	Extension
	Watch(ctx context.Context, events iter.Seq2[Event, error])
}

// clone is a copy that can be written to.
func (c AgentConfig) clone() AgentConfig {
	c.Tools = slices.Clone(c.Tools)
	if c.Resources != nil {
		own := make(map[string][]string, len(c.Resources))
		for name, allowed := range c.Resources {
			own[name] = append(make([]string, 0, len(allowed)), allowed...) // an empty one stays: it means none
		}
		c.Resources = own
	}
	return c
}
