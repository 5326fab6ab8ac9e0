package belay

import (
	"context"
	"encoding/json"

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

// PromptExtension adds a fragment to the system prompt, behind the agent's own
// instructions, in the order of the extensions. It is asked once, by [New].
type PromptExtension interface {
	Extension
	Fragment() string
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

// NameExtension answers to names that users type with a slash in front, where no
// directive does: skills, for one. Without it an extension sees them as text.
type NameExtension interface {
	InputExtension
	// Binds reports whether /name in a message to an agent is the extension's.
	Binds(agent, name string) bool
}

// NameListExtension is a NameExtension that can list its names, for those who show
// people what they can type. Without it they must be known.
type NameListExtension interface {
	NameExtension
	// TypedNames are the names that Binds reports for an agent, in the order in which
	// people should see them.
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

// Authorizer is the floor: what it denies does not run, whatever hooks say. It
// judges the final input of every call that a tool would run, after the hooks and
// before anyone is asked.
type Authorizer interface {
	// Authorize judges a call. An error denies.
	Authorize(ctx context.Context, call ToolCall) (Authorization, error)
}

// Authorization is what the floor says about a call. The zero value has no
// objection.
type Authorization struct {
	// Decision is pass, ask, deny or halt.
	Decision ToolDecision
	// Reason is told to the model, and to the person who is asked. It may quote
	// the call.
	Reason string
	// By names the guard, zone or rule that spoke. It is a name and quotes nothing
	// of the call: a yes that reaches further than one call answers the questions
	// of that name.
	By string
	// Places identifies where the paths of the call lead now. If it is different when an
	// approved call is about to run, the call is asked about again. It is opaque, and a
	// hash of it is stored. Defaults to nothing: the paths are not compared.
	Places string
}

// PatternAuthorizer is an Authorizer with a grammar for sets of calls, which
// people use to say yes to more than one: see [ScopePattern]. Without it a pattern
// is one of [path.Match] over the names of tools.
type PatternAuthorizer interface {
	Authorizer
	// CheckPattern says why a pattern cannot be read, and what to write instead.
	CheckPattern(pattern string) error
	// Covers reports whether a pattern covers a call with all that it would do. It
	// is asked about the final input. Where it cannot tell it does not cover; an
	// error, or a panic, means the same: somebody is asked.
	Covers(ctx context.Context, pattern string, call ToolCall) (bool, error)
}

// Approver asks a person, and waits for the answer. It is asked about all calls of a
// response at a time, from goroutines of their own: one that can show only one
// question at a time lets the others wait.
type Approver interface {
	// Approve returns the decision. An error, or the end of ctx, denies.
	Approve(ctx context.Context, question Question) (Decision, error)
}

// Question is an approval with the input it is about.
type Question struct {
	Approval
	// Input is the final input of the call.
	Input json.RawMessage `json:"input"`
	// Agent is the name of the agent that wants to make it.
	Agent string `json:"agent,omitempty"`
	// Run and Depth place the call of a subagent; those of the main agent have none.
	Run   string `json:"run,omitempty"`
	Depth int    `json:"depth,omitempty"`
}

// Interceptor is Go code around the calls of a tool. It is not reachable from
// any file. Interceptors of all tools are outside those of one, and within those
// in the order of Options.
type Interceptor struct {
	// Name is told where the interceptor rewrites or refuses.
	Name string
	// Tool is the tool's name, or "*".
	Tool string
	// Before sees a call before any hook. It may rewrite it, refuse it or answer
	// in the tool's place. An error refuses. Nil does nothing.
	Before func(ctx context.Context, call *Invocation) (Interception, error)
	// After sees the result before any hook, and returns it or another. An error
	// withholds it. Nil does nothing.
	After func(ctx context.Context, call *Invocation, result Result) (Result, error)
}

// Interception is what an interceptor does with a call. The zero value lets it
// go on.
type Interception struct {
	// Input replaces the input.
	Input json.RawMessage
	// Deny refuses the call for this reason.
	Deny string
	// Result answers in the tool's place. Nothing runs then, so neither hooks nor
	// the floor are asked.
	Result *Result
}
