package belay

import (
	"context"
	"iter"
	"slices"

	"github.com/belay-run/belay/hook"
)

// Extension is a subsystem: a Go value with a name that implements any of the interfaces
// below. The root package knows only these interfaces, not the subsystems.
type Extension interface {
	Name() string
}

// ToolExtension provides tools.
type ToolExtension interface {
	Extension
	Tools() []Tool
}

// StepToolExtension provides tools that may change between steps. If the agent already has
// a tool of the same name, Belay leaves out the extension's tool and reports a diagnostic.
type StepToolExtension interface {
	Extension
	// StepTools returns the tools for the agent's next step. Belay calls it before each
	// model request. Return the same values as long as they do not change: Belay then
	// checks them only once.
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
	// Prompt returns two texts. The fragment comes after the agent's own instructions.
	// The second text is a line that lists the agent's resources, such as skills or
	// servers. It comes after the fragments of all extensions. Both may be empty. [New]
	// or [Agent.Add] calls Prompt once.
	Prompt(agent AgentConfig) (fragment, resources string)
}

// RouteExtension runs the tools of bundles that hooks contribute, if the route of the
// bundle is the extension's name. These tools have no traits, so an agent without an
// Authorizer runs them without a permission check. Set Options.Authorizer if the calls
// need a check.
type RouteExtension interface {
	Extension
	Route(ctx context.Context, call *Invocation) (Result, error)
}

// InputExtension reads and changes user messages. It runs after user.prompt.submit and
// the directives, and before turn.pre_policy.
type InputExtension interface {
	Extension
	// Expand returns what to do with the message. Belay calls the extensions in order. Each
	// gets the text that the previous one returned. An error ends the turn, and the message
	// is not stored.
	Expand(ctx context.Context, in Submission) (Expansion, error)
}

// NameExtension has names that users type after a slash, such as the names of skills. If
// a directive has the same name, the directive runs. Other extensions see a [Placeholder]
// instead of the name.
type NameExtension interface {
	InputExtension
	// Binds reports whether /name in a message to an agent belongs to the extension.
	Binds(agent, name string) bool
	// TypedNames returns the names for which Binds reports true, in the order in which
	// users should see them. It may leave out names that users need not see.
	TypedNames(agent string) []TypedName
}

// Submission is a user message that will be stored.
type Submission struct {
	Session, Turn, Agent string
	// Text is the user's text after hooks, directives and earlier extensions, with a
	// [Placeholder] for each name of a directive or an extension.
	Text string
	// Typed is the user's text, as the hooks of user.prompt.submit left it.
	Typed string
	// Names are the names in the message that belong to this extension, in order and with
	// repetitions.
	Names []string
	// Controls work until Expand returns.
	Controls *Controls
}

// Expansion is what an extension does with a message. The zero value leaves the message as
// it is.
type Expansion struct {
	// Text replaces the message's text, even if Text points to an empty string. Nil keeps
	// the text.
	Text *string
	// Injected are messages that are stored before this one, with the role user.
	Injected []Injection
	// Reply answers instead of the model. Belay does not call later extensions.
	Reply *Reply
}

// Injection is a message that is stored before a user message.
type Injection struct {
	Parts []Part `json:"parts"`
	// IsSkillInjection marks a message that a skill injects.
	IsSkillInjection bool `json:"is_skill_injection,omitempty"`
}

func (in Injection) message() *Message {
	return &Message{Role: RoleUser, Kind: KindInjected, Parts: in.Parts, IsSkillInjection: in.IsSkillInjection}
}

// CloseExtension is an extension with a Close method. [Agent.Close] calls it.
type CloseExtension interface {
	Extension
	Close(ctx context.Context) error
}

// ForgetExtension is an extension that keeps something about sessions outside the store.
type ForgetExtension interface {
	Extension
	// ForgetSession removes everything about a session and the sessions of its subagents.
	// [Agent.DeleteSession] calls it after the session was removed from the store. It
	// returns nil if there is nothing.
	ForgetSession(ctx context.Context, session string) error
}

// Planner makes the preflight plan of a turn. Without a planner the plan is the user's
// text.
type Planner interface {
	Plan(ctx context.Context, turn TurnSoFar) (PreflightPlan, error)
}

// AgentConfig describes an agent to its extensions. Each call gets its own copy.
type AgentConfig struct {
	// ID distinguishes agents of the same name.
	ID string
	// Name is the agent's name.
	Name string
	// Instructions are the agent's own part of the system prompt.
	Instructions string
	// Resources are the agent's [Options.Resources].
	Resources map[string][]string
	// Tools are the names of the tools that the agent may use. Only Register and Unregister
	// get them.
	Tools []string
}

// BuildExtension changes the configuration of an agent. Build is called after Name and
// before all other methods, in the order of the extensions. It may change the
// instructions and the resources. If Build fails or changes anything else, New fails.
type BuildExtension interface {
	Extension
	Build(ctx context.Context, agent *AgentConfig) error
}

// RegisterExtension keeps state for each agent.
type RegisterExtension interface {
	Extension
	// Register is called when an agent is made, before anybody can use the agent, or when
	// the extension is added to an agent. If Register fails, New or Add fails and calls
	// Unregister of the extensions that were already registered.
	Register(ctx context.Context, agent AgentConfig) error
	// Unregister is called when the agent is closed or replaced, or when the extension is
	// removed.
	Unregister(ctx context.Context, agent AgentConfig) error
}

// ScopeExtension decides which of its tools an agent may use, if Options.Resources
// restricts the extension. For an extension without Narrow, the restrictions are names of
// tools and names that users type, or patterns of [path.Match]. Subagents may use no more
// than the agents above them. For resources that are not tools, such as skills, see
// [ResourceExtension].
type ScopeExtension interface {
	Extension
	// Narrow returns the tools that the agent may use, as names or patterns. It may also
	// return a line that tells this to the model; the default line lists the names. Narrow
	// is called once, and only if Options.Resources has the extension's name.
	Narrow(agent AgentConfig, allowed []string) (tools []string, line string)
}

// WatchExtension gets the events of an agent, like a caller of [Agent.Watch]. Watch runs on
// its own goroutine until the events end or Watch returns.
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
			own[name] = append(make([]string, 0, len(allowed)), allowed...) // keep an empty list: it means that nothing is allowed
		}
		c.Resources = own
	}
	return c
}
