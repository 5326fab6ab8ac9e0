package belay

import (
	"context"
	"iter"
	"slices"

	"github.com/belay-run/belay/hook"
)

// Extension is a subsystem: a Go value with a name that implements any of the interfaces
// below. The loop knows these interfaces and no subsystem.
type Extension interface {
	Name() string
}

// ToolExtension provides tools.
type ToolExtension interface {
	Extension
	Tools() []Tool
}

// StepToolExtension provides tools that may change between steps. A tool whose name the
// agent already has is left out, with a diagnostic.
type StepToolExtension interface {
	Extension
	// StepTools returns the tools of an agent's next step. It is called before each model
	// request. It should return the same values as long as they do not change: they are
	// then checked only once.
	StepTools(agent string) []Tool
}

// DirectiveExtension provides directives.
type DirectiveExtension interface {
	Extension
	Directives() []Directive
}

// HookExtension provides subscriptions.
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

// RouteExtension runs the tools of bundles that hooks contribute, if the route of the
// bundle is the extension's name. Its tools have no traits, so that an agent without an
// Authorizer accepts them: add such an extension only if all its calls may run unchecked, or
// set Options.Authorizer.
type RouteExtension interface {
	Extension
	Route(ctx context.Context, call *Invocation) (Result, error)
}

// InputExtension reads and changes user messages, after user.prompt.submit and the
// directives and before the turn begins.
type InputExtension interface {
	Extension
	// Expand returns what to do with the message. Extensions are called in order; each gets
	// the text that the one before returned. An error ends the turn, and the message is not
	// stored.
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

// Submission is a user message that will be stored.
type Submission struct {
	Session, Turn, Agent string
	// Text is the user's text after hooks, directives and earlier extensions, with a
	// [Placeholder] for each name of a directive or an extension.
	Text string
	// Typed is the text that the user typed, after user.prompt.submit.
	Typed string
	// Names are the names of this extension in the message, in order and with repetitions.
	Names []string
	// Controls work until Expand returns.
	Controls *Controls
}

// Expansion is what an extension does with a message. The zero value leaves the message as
// it is.
type Expansion struct {
	// Text replaces the text, even if it is empty. Nil keeps the text.
	Text *string
	// Injected are messages in front of this one, with the role user.
	Injected []Injection
	// Reply answers instead of the model. Later extensions are not called.
	Reply *Reply
}

// Injection is a message in front of a user message.
type Injection struct {
	Parts []Part `json:"parts"`
	// IsSkillInjection marks a message that a skill injects.
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

// Planner makes the preflight plan of a turn. Without a planner the plan is the user's
// text.
type Planner interface {
	Plan(ctx context.Context, turn TurnSoFar) (PreflightPlan, error)
}

// AgentConfig describes an agent to its extensions, when it is made and when it is closed.
// Each call gets its own copy.
type AgentConfig struct {
	// ID distinguishes agents of the same name.
	ID string
	// Name is the agent's name.
	Name string
	// Instructions are the agent's own part of the prompt.
	Instructions string
	// Resources are Options.Resources.
	Resources map[string][]string
	// Tools are the names of the tools that the agent may use. They are set in Register.
	Tools []string
}

// BuildExtension changes the configuration of an agent. Build is called first, in the order
// of the extensions, and may change the instructions and the resources. If it fails, or
// changes something else, the agent is not made.
type BuildExtension interface {
	Extension
	Build(ctx context.Context, agent *AgentConfig) error
}

// RegisterExtension keeps state for each agent.
type RegisterExtension interface {
	Extension
	// Register is called when an agent is made, before it can be used. If it fails, the
	// agent is not made, and Unregister is called for the extensions that were called
	// before.
	Register(ctx context.Context, agent AgentConfig) error
	// Unregister is called when an agent cannot be used any more, or when the extension is
	// removed from it.
	Unregister(ctx context.Context, agent AgentConfig) error
}

// ScopeExtension restricts its own tools for an agent that may use only some of its
// resources. Without it the names in Options.Resources are names of its tools and names
// that users type, or patterns of [path.Match]. Subagents may use no more than the agent.
// Resources that are not tools, such as skills, are for a [ResourceExtension].
type ScopeExtension interface {
	Extension
	// Narrow returns the tools that the agent may use, as names or patterns, and optionally
	// a line that tells this to the model. The default line lists the names. Narrow is
	// called once, and only for an agent whose Options.Resources name the extension.
	Narrow(agent AgentConfig, allowed []string) (tools []string, line string)
}

// WatchExtension gets the events of an agent, as from [Agent.Watch]. Watch runs on its own
// goroutine until the events end or it returns.
type WatchExtension interface {
	Extension
	Watch(ctx context.Context, events iter.Seq2[Event, error])
}

// clone returns a copy that may be changed.
func (c AgentConfig) clone() AgentConfig {
	c.Tools = slices.Clone(c.Tools)
	if c.Resources != nil {
		own := make(map[string][]string, len(c.Resources))
		for name, allowed := range c.Resources {
			own[name] = append(make([]string, 0, len(allowed)), allowed...) // an empty list is kept: it means none
		}
		c.Resources = own
	}
	return c
}
