package belay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"time"

	"github.com/belay-run/belay/hook"
)

// Options are an agent's settings. A nil *Options is valid.
type Options struct {
	// Name is the agent's name, which hooks can match on. Defaults to "main".
	Name string
	// Instructions are the agent's own part of the system prompt. Defaults to
	// none.
	Instructions string
	// Tools are the tools that the model may call. Defaults to none.
	Tools []Tool
	// Scope names the tools that the agent may use, as names or patterns of path.Match. An
	// empty list means none. Defaults to all.
	Scope []string
	// Resources restrict the agent, by kind, such as {"skills": {"deploy"}}. The values are
	// names or patterns of path.Match. An empty list means none. A kind that is not in the
	// map is not restricted. A kind is the name of an extension, or one that a
	// [ResourceExtension] enforces. New refuses a kind that no extension enforces.
	// Subagents may use no more than the agents above them. Defaults to no restriction.
	Resources map[string][]string
	// Environment describes to the model where it works. Defaults to no description.
	Environment *Environment
	// Directives are the slash commands that users can type. Defaults to none.
	Directives []Directive
	// Models finds a model by its name: for sessions that were switched to another model,
	// for the turn policy model, and for directives. Defaults to the agent's own model
	// only.
	Models func(ctx context.Context, name string) (Model, error)
	// OwnModelFirst uses the agent's own model even if a session or an open turn has
	// another one, until a model is chosen in this process. Use it when the model is chosen
	// for this run only. The stored choice does not change. Defaults to false.
	OwnModelFirst bool
	// Hooks are installed before the first turn. Defaults to none.
	Hooks []hook.Subscription
	// Runtime has the settings of the hook runtime. Its journal and queue default to the
	// store's, if the store has them. Defaults to the defaults of hook.RuntimeOptions.
	Runtime *hook.RuntimeOptions
	// Extensions are the agent's subsystems. Defaults to none.
	Extensions []Extension
	// Interceptors are Go code around tool calls. Defaults to none.
	Interceptors []Interceptor
	// Authorizer is the floor that every call must pass: permit.New makes one. Defaults to
	// none, and tools that need one (ToolTraits.NeedsAuthorizer) are then refused.
	Authorizer Authorizer
	// OnAsk says what happens when a hook or the floor asks for approval. Defaults to
	// AskWait if there is an Approver, and to AskDeny otherwise.
	OnAsk AskMode
	// Approver asks a person, for AskWait. Defaults to none.
	Approver Approver
	// Asker asks the user the questions of directives and skills. Defaults to none.
	Asker Asker
	// ApprovalExpiry is how long an approval can be decided. Defaults to 24 hours.
	ApprovalExpiry time.Duration
	// Planner makes the preflight plan. Defaults to a plan with the user's text as its only
	// query.
	Planner Planner
	// Store keeps sessions. Defaults to memory, for as long as the agent lives; the agent
	// then performs background work itself, and Close waits for the work that is due.
	Store Store
	// NoPreviews leaves the texts of the user and the model out of the input of
	// turn.post_turn. Defaults to false: it has the first 2,000 characters of both.
	NoPreviews bool
	// RefuseBusy makes a second turn fail with ErrBusy while the session runs one. Defaults
	// to false: the second turn waits.
	RefuseBusy bool
	// MaxTokens limits each response. Defaults to the provider's own limit.
	MaxTokens int
	// Settings are further settings of the requests to the model, such as the temperature.
	// Defaults to those of the provider.
	Settings Settings
	// Limits limit a turn. Defaults to the defaults of Limits.
	Limits Limits
	// Budget ends a turn that costs too much. Defaults to none.
	Budget Budget
	// Compaction says when and how the context is summarized. Defaults to the defaults of
	// Compaction.
	Compaction Compaction
	// Retry says how failed requests to the model are repeated. Defaults to 5 attempts,
	// with a pause from 1 s, doubling up to 30 s, minus up to half of it at random.
	Retry hook.Retry
	// ReleaseIdle releases each session at the end of a turn, so that another process can
	// use it at once, and its messages leave the memory. The next turn reads them from the
	// store again. Set it if several processes serve the same sessions, or if there are
	// many sessions. Defaults to false: a session that was used
	// stays open until [Session.Close], and other processes get ErrHeld.
	ReleaseIdle bool
	// SpillDir is where the full text of results is kept that are too long for the model.
	// Defaults to a directory in the system's temporary directory.
	SpillDir string
	// Logger gets warnings that are reported nowhere else. Defaults to discarding them.
	Logger *slog.Logger
}

// AskMode says what happens when a call needs approval.
type AskMode string

// The modes of asking.
const (
	// AskWait waits for the Approver.
	AskWait AskMode = "wait"
	// AskPark ends the turn parked. Decide with [Agent.Decide], then call [Session.Resume].
	AskPark AskMode = "park"
	// AskDeny refuses the call.
	AskDeny AskMode = "deny"
)

// Limits limit a turn. A zero field means its default.
type Limits struct {
	// Steps is how many model calls a turn may make. Defaults to 100.
	Steps int
	// Parallel is how many calls of one response run at the same time. Defaults to 16.
	Parallel int
	// Continuations is how many times turn.stop may make a turn continue. Defaults to 8.
	Continuations int
	// Depth is how deep subagents may be nested: those of the main agent have depth 1.
	// Defaults to 5.
	Depth int
	// ReminderCharacters limits the text that hooks add to one request. Defaults to 16,000.
	ReminderCharacters int
	// ResultCharacters limits the text of one tool result. Defaults to 50,000.
	ResultCharacters int
	// Tool is how long a tool may run. Defaults to 5 minutes.
	Tool time.Duration
	// Grace is how long a cancelled tool may take to return. Defaults to 5 seconds.
	Grace time.Duration
	// Idle is how long a model may send nothing, not even a sign of life. After that the
	// attempt fails like a network error. Defaults to 5 minutes.
	Idle time.Duration
	// End limits the time of the phases that fire when a turn ends or was aborted. Defaults
	// to 10 seconds.
	End time.Duration
}

// Budget limits what turns may cost. A zero field sets no limit. A limit in dollars works
// only for a model that has a price or states the cost of its responses.
type Budget struct {
	// TurnTokens and TurnCost limit one turn, in tokens of all kinds and in US dollars.
	TurnTokens int
	TurnCost   float64
	// SessionTokens and SessionCost limit a session.
	SessionTokens int
	SessionCost   float64
}

// spent returns the limit that is reached, or "".
func (b Budget) spent(turn, session Usage) string {
	switch {
	case b.TurnTokens > 0 && turn.Tokens() >= b.TurnTokens:
		return fmt.Sprintf("the turn took %d of %d tokens", turn.Tokens(), b.TurnTokens)
	case b.TurnCost > 0 && turn.Cost >= b.TurnCost:
		return fmt.Sprintf("the turn cost $%.4f of $%.4f", turn.Cost, b.TurnCost)
	case b.SessionTokens > 0 && session.Tokens() >= b.SessionTokens:
		return fmt.Sprintf("the session took %d of %d tokens", session.Tokens(), b.SessionTokens)
	case b.SessionCost > 0 && session.Cost >= b.SessionCost:
		return fmt.Sprintf("the session cost $%.4f of $%.4f", session.Cost, b.SessionCost)
	default:
		return ""
	}
}

// Compaction says when and how the context is summarized.
type Compaction struct {
	// Share is the part of the model's window, by its own token count, at which the context
	// is summarized. With 1 or more the context is summarized only when the provider
	// refuses it as too long. Defaults to 0.8.
	Share float64
	// Window overrides the model's window, in tokens. Defaults to the window of the model.
	Window int
	// Instructions say what a summary must keep. Defaults to what is needed to continue the
	// work: goals, decisions, state, open points.
	Instructions string
	// Model writes the summaries. Defaults to the agent's model.
	Model Model
}

// orDefault sets a zero value to its default.
func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// complete fills in the defaults and refuses invalid options.
func (o *Options) complete() error {
	orDefault(&o.Name, defaultName)
	orDefault(&o.ApprovalExpiry, 24*time.Hour)
	orDefault(&o.Limits.Steps, 100)
	orDefault(&o.Limits.Parallel, 16)
	orDefault(&o.Limits.Continuations, 8)
	orDefault(&o.Limits.Depth, 5)
	orDefault(&o.Limits.ReminderCharacters, 16_000)
	orDefault(&o.Limits.ResultCharacters, 50_000)
	orDefault(&o.Limits.Tool, 5*time.Minute)
	orDefault(&o.Limits.Grace, 5*time.Second)
	orDefault(&o.Limits.Idle, 5*time.Minute)
	orDefault(&o.Limits.End, 10*time.Second)
	orDefault(&o.Compaction.Share, 0.8)
	orDefault(&o.Compaction.Instructions, summaryInstructions)
	orDefault(&o.Retry, hook.Retry{Attempts: 5, Delay: time.Second, Exponential: true, Cap: 30 * time.Second, Jitter: 0.5})
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnAsk == "" {
		o.OnAsk = AskDeny
		if o.Approver != nil {
			o.OnAsk = AskWait
		}
	}
	return o.sound()
}

func (o *Options) sound() error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf("options: "+format, args...)) }
	switch o.OnAsk {
	case AskPark, AskDeny:
	case AskWait:
		if o.Approver == nil {
			refuse("on_ask: %q needs an Approver", AskWait)
		}
	default:
		refuse("on_ask: %q is none of wait, park, deny", o.OnAsk)
	}
	for name, value := range map[string]int{
		"limits.steps": o.Limits.Steps, "limits.parallel": o.Limits.Parallel, "limits.continuations": o.Limits.Continuations, "limits.depth": o.Limits.Depth,
		"limits.reminder_characters": o.Limits.ReminderCharacters, "limits.result_characters": o.Limits.ResultCharacters,
		"max_tokens": o.MaxTokens, "budget.turn_tokens": o.Budget.TurnTokens, "budget.session_tokens": o.Budget.SessionTokens,
	} {
		if value < 0 {
			refuse("%s: it is negative", name)
		}
	}
	for name, value := range map[string]time.Duration{
		"approval_expiry": o.ApprovalExpiry, "limits.tool": o.Limits.Tool, "limits.grace": o.Limits.Grace, "limits.idle": o.Limits.Idle, "limits.end": o.Limits.End,
	} {
		if value < 0 {
			refuse("%s: it is negative", name)
		}
	}
	if o.Compaction.Share < 0 || o.Compaction.Window < 0 {
		refuse("compaction: its share or its window is negative")
	}
	for _, pattern := range o.Scope {
		if _, err := path.Match(pattern, ""); err != nil {
			refuse("scope: %q: %w", pattern, err)
		}
	}
	return errors.Join(problems...)
}

// defaultName is the name of an agent whose options have none.
const defaultName = "main"
