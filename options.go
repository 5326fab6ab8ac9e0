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

// Options are an agent's settings. A nil *Options means all defaults.
type Options struct {
	// Name is the agent's name. Hooks can match on it. Defaults to "main".
	Name string
	// Instructions are the agent's own part of the system prompt. Defaults to none.
	Instructions string
	// Tools are the tools that the model may call. Defaults to none.
	Tools []Tool
	// Scope lists the tools that the agent may use, as names or patterns of path.Match. An
	// empty list means no tools. Defaults to nil: all tools.
	Scope []string
	// Resources restrict what the agent may use, by kind, for example {"skills":
	// {"deploy"}}. The values are names or patterns of path.Match. An empty list allows
	// nothing of this kind. A kind that is not in the map is not restricted.
	//
	// A kind is the name of an extension, or a kind that a [ResourceExtension] enforces.
	// New returns an error for a kind that no extension enforces. Subagents may use no more
	// than the agents above them. Defaults to no restriction.
	Resources map[string][]string
	// Environment tells the model where it works. Defaults to no description.
	Environment *Environment
	// Directives are the slash commands that users can type. Defaults to none.
	Directives []Directive
	// Models finds a model by its name. Belay calls it for sessions that were switched to
	// another model, for a policy setting that names a model, and for
	// [Controls.FindModel]. Defaults to a function that finds only the agent's own model.
	Models func(ctx context.Context, name string) (Model, error)
	// OwnModelFirst makes the agent use its own model even if the store has another model
	// for a session or an open turn. It applies until somebody chooses a model in this
	// process. The stored choice does not change. Use OwnModelFirst if the user chose the
	// model for this run only. Defaults to false.
	OwnModelFirst bool
	// Events gets the agent's events. Set the same value in several agents to watch them
	// together. Defaults to a value of the agent's own.
	Events *Events
	// Hooks are installed before the first turn. Defaults to none.
	Hooks []hook.Subscription
	// Runtime has the settings of the hook runtime. If the store has a journal and a queue,
	// the runtime uses them by default. Defaults to the defaults of hook.RuntimeOptions.
	Runtime *hook.RuntimeOptions
	// Extensions are the agent's subsystems. Defaults to none.
	Extensions []Extension
	// Interceptors are Go code around tool calls (middleware). Defaults to none.
	Interceptors []Interceptor
	// Authorizer is the floor: the permission check that every call must pass. Make one
	// with permit.New. Without one, New returns an error for tools that need it
	// (ToolTraits.NeedsAuthorizer). Defaults to none.
	Authorizer Authorizer
	// OnAsk says what happens when a hook or the floor asks for approval. Defaults to
	// AskWait if there is an Approver, and to AskDeny otherwise.
	OnAsk AskMode
	// Approver asks a person. AskWait needs one. Defaults to none.
	Approver Approver
	// Asker asks the user the questions of [Controls.Ask]. Defaults to none.
	Asker Asker
	// ApprovalExpiry is how long a person can decide about an approval. Defaults to 24
	// hours.
	ApprovalExpiry time.Duration
	// Planner makes the preflight plan. Defaults to a plan with the user's text as its only
	// query.
	Planner Planner
	// Store keeps sessions. Without a store, sessions live in memory until the agent is
	// closed. The agent then also runs background jobs itself, and Close waits for the jobs
	// that are due. Defaults to no store.
	Store Store
	// NoPreviews leaves the texts of the user and the model out of the input of
	// turn.post_turn. Defaults to false: the input has the first 2,000 characters of both.
	NoPreviews bool
	// RefuseBusy makes a turn fail with ErrBusy while the session runs another turn.
	// Defaults to false: the turn waits.
	RefuseBusy bool
	// MaxTokens limits each response. Defaults to the provider's own limit.
	MaxTokens int
	// Settings are further settings of requests to the model, such as the temperature.
	// Defaults to the provider's settings.
	Settings Settings
	// Limits limit a turn. Defaults to the defaults of Limits.
	Limits Limits
	// Budget ends a turn that costs too much. Defaults to no limit.
	Budget Budget
	// Compaction says when and how the context is summarized. Defaults to the defaults of
	// Compaction.
	Compaction Compaction
	// Retry says how failed requests to the model are repeated. Defaults to 5 attempts. The
	// pause starts at 1 s and doubles up to 30 s; a random part of up to one half is
	// subtracted. If you set other fields but not Attempts, there are 5 attempts too. Set
	// Attempts to 1 for no retry.
	Retry hook.Retry
	// ReleaseIdle releases each session at the end of a turn, so that another process can
	// use it at once, and removes its messages from memory. The next turn reads them from
	// the store again. Set it if several processes serve the same sessions, or if there
	// are many sessions. Defaults to false: a session that was used stays open until
	// [Session.Close], and other processes get ErrHeld.
	ReleaseIdle bool
	// SpillDir is the directory for the full text of results that are too long for the
	// model. Defaults to a directory in the system's temporary directory.
	SpillDir string
	// Logger gets warnings that Belay reports nowhere else. Defaults to a logger that
	// discards them.
	Logger *slog.Logger
}

// AskMode says what happens when a call needs approval.
type AskMode string

// The values of AskMode.
const (
	// AskWait waits for the answer of the Approver.
	AskWait AskMode = "wait"
	// AskPark parks the turn. Decide with [Agent.Decide], then call [Session.Resume].
	AskPark AskMode = "park"
	// AskDeny denies the call.
	AskDeny AskMode = "deny"
)

// Limits limit a turn. A zero field means its default.
type Limits struct {
	// Steps is the maximum number of model calls of a turn. Defaults to 100.
	Steps int
	// Parallel is the maximum number of calls of one response that run at the same time.
	// Defaults to 16.
	Parallel int
	// Continuations is how many times hooks of turn.stop may make a turn continue. Defaults
	// to 8.
	Continuations int
	// Depth is the maximum depth of subagents. A subagent of the main agent has depth 1.
	// Defaults to 5.
	Depth int
	// ReminderCharacters limits the text that hooks add to one request. Defaults to 16,000.
	ReminderCharacters int
	// ResultCharacters limits the text of one tool result. Defaults to 50,000.
	ResultCharacters int
	// Tool is how long a tool may run. Defaults to 5 minutes.
	Tool time.Duration
	// Grace is how long a cancelled tool may take to return. Then the turn stops waiting
	// for the tool. Defaults to 5 seconds.
	Grace time.Duration
	// Idle is how long a model may send nothing, not even an empty chunk. Then the attempt
	// fails with a network error. Defaults to 5 minutes.
	Idle time.Duration
	// End limits the time of the phases that fire when a turn has ended or was aborted. It
	// also limits how long [Agent.Close] waits for background jobs. Defaults to 10 seconds.
	End time.Duration
}

// Budget limits the cost of turns. A zero field sets no limit. A limit in dollars works
// only if the model has a price or its responses state their cost.
type Budget struct {
	// TurnTokens and TurnCost limit one turn, in tokens of all kinds and in US dollars.
	TurnTokens int
	TurnCost   float64
	// SessionTokens and SessionCost limit a session.
	SessionTokens int
	SessionCost   float64
}

// spent returns which limit is reached, or "".
func (b Budget) spent(turn, session Usage) string {
	switch {
	case b.TurnTokens > 0 && turn.Tokens() >= b.TurnTokens:
		return fmt.Sprintf("the turn has used %d tokens, and its limit is %d", turn.Tokens(), b.TurnTokens)
	case b.TurnCost > 0 && turn.Cost >= b.TurnCost:
		return fmt.Sprintf("the turn has cost $%.4f, and its limit is $%.4f", turn.Cost, b.TurnCost)
	case b.SessionTokens > 0 && session.Tokens() >= b.SessionTokens:
		return fmt.Sprintf("the session has used %d tokens, and its limit is %d", session.Tokens(), b.SessionTokens)
	case b.SessionCost > 0 && session.Cost >= b.SessionCost:
		return fmt.Sprintf("the session has cost $%.4f, and its limit is $%.4f", session.Cost, b.SessionCost)
	default:
		return ""
	}
}

// Compaction says when and how the context is summarized.
type Compaction struct {
	// Share is a fraction of the model's window, in tokens. Belay summarizes the context
	// when it is larger than this fraction. With 1 or more, Belay summarizes the context
	// only when the provider refuses the request as too long. Defaults to 0.8.
	Share float64
	// Window overrides the model's window, in tokens. Defaults to the window of the model.
	Window int
	// Instructions say what a summary must keep. Defaults to everything that is needed to
	// continue the work: goals, decisions, state, open points.
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

// complete fills in the defaults and returns an error for invalid options.
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
	orDefault(&o.Retry, hook.Retry{Attempts: defaultAttempts, Delay: time.Second, Exponential: true, Cap: 30 * time.Second, Jitter: 0.5})
	orDefault(&o.Retry.Attempts, defaultAttempts)
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
		refuse("on_ask: unknown value %q: use wait, park or deny", o.OnAsk)
	}
	for name, value := range map[string]int{
		"limits.steps": o.Limits.Steps, "limits.parallel": o.Limits.Parallel, "limits.continuations": o.Limits.Continuations, "limits.depth": o.Limits.Depth,
		"limits.reminder_characters": o.Limits.ReminderCharacters, "limits.result_characters": o.Limits.ResultCharacters,
		"max_tokens": o.MaxTokens, "budget.turn_tokens": o.Budget.TurnTokens, "budget.session_tokens": o.Budget.SessionTokens,
	} {
		if value < 0 {
			refuse("%s is negative: use 0 or more", name)
		}
	}
	for name, value := range map[string]time.Duration{
		"approval_expiry": o.ApprovalExpiry, "limits.tool": o.Limits.Tool, "limits.grace": o.Limits.Grace, "limits.idle": o.Limits.Idle, "limits.end": o.Limits.End,
		"retry.delay": o.Retry.Delay, "retry.cap": o.Retry.Cap,
	} {
		if value < 0 {
			refuse("%s is negative: use 0 or more", name)
		}
	}
	if o.Retry.Attempts < 0 {
		refuse("retry.attempts: it is negative: set 1 for no retry")
	}
	if o.Retry.Jitter < 0 || o.Retry.Jitter > 1 {
		refuse("retry.jitter: it is %v: set a value from 0 to 1", o.Retry.Jitter)
	}
	if o.Compaction.Share < 0 || o.Compaction.Window < 0 {
		refuse("compaction: share or window is negative")
	}
	for _, pattern := range o.Scope {
		if _, err := path.Match(pattern, ""); err != nil {
			refuse("scope: %q: %w", pattern, err)
		}
	}
	return errors.Join(problems...)
}

const (
	defaultName     = "main"
	defaultAttempts = 5 // of Options.Retry
)
