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
	// Tools are what the model may call. Defaults to none.
	Tools []Tool
	// Scope names the tools that the agent may use, of all it has: names or
	// patterns, as path.Match takes them. An empty list means none. Defaults to
	// all.
	Scope []string
	// Resources restrict the agent, by kind, such as {"skills": {"deploy"}}. The values are
	// names or patterns, as path.Match takes them. An empty list means none; a kind that is
	// not named may be used as a whole. A kind is the name of an extension, or one that a
	// [ResourceExtension] enforces. New refuses a kind that no extension enforces. Subagents
	// may use no more than the agents above them.
	Resources map[string][]string
	// Environment tells the model where it works. Defaults to telling nothing.
	Environment *Environment
	// Directives are what users can type with a slash in front. Defaults to none.
	Directives []Directive
	// Models finds a model by its name: for a session that was told to use another
	// one, for the turn policy model, and for directives. Defaults to knowing the
	// agent's own alone.
	Models func(ctx context.Context, name string) (Model, error)
	// OwnModelFirst has the agent's own model answer where a session keeps another
	// one, or a turn was begun with another, until one is chosen anew: for whoever
	// names a model for this time. What sessions keep stays as it is. Defaults to false.
	OwnModelFirst bool
	// Hooks are installed before the first turn. Defaults to none.
	Hooks []hook.Subscription
	// Runtime has the settings of the hook runtime. Its journal and queue default
	// to the store's, where the store has them. Defaults to the defaults of
	// hook.RuntimeOptions.
	Runtime *hook.RuntimeOptions
	// Extensions are the agent's subsystems. Defaults to none.
	Extensions []Extension
	// Interceptors are Go code around tool calls. Defaults to none.
	Interceptors []Interceptor
	// Authorizer is the floor that every call must pass. Defaults to none.
	Authorizer Authorizer
	// OnAsk says what happens when a hook or the floor wants a person asked.
	// Defaults to AskWait if there is an Approver, and to AskDeny if not.
	OnAsk AskMode
	// Approver asks a person, for AskWait. Defaults to none.
	Approver Approver
	// Asker puts questions of directives and skills to the user. Defaults to nobody.
	Asker Asker
	// ApprovalExpiry is how long a question stands. Defaults to 24 hours.
	ApprovalExpiry time.Duration
	// Planner makes the preflight plan. Defaults to the user's text as the one
	// thing to look up.
	Planner Planner
	// Store keeps sessions. Defaults to the memory of this process, for as long
	// as the agent lives.
	Store Store
	// Busy says what becomes of a turn while the session is taking another.
	// Defaults to BusyQueue.
	Busy BusyMode
	// MaxTokens bounds each response. Defaults to the provider's own bound.
	MaxTokens int
	// Limits bound a turn. Defaults to the defaults of Limits.
	Limits Limits
	// Budget ends a turn that costs too much. Defaults to none.
	Budget Budget
	// Compaction says when and how the context is summed up. Defaults to the
	// defaults of Compaction.
	Compaction Compaction
	// Retry says how failed attempts at the model are repeated. Defaults to 5
	// attempts, from 1 s, doubling up to 30 s, less up to half of it at random.
	Retry hook.Retry
	// SpillDir is where results that are too long for the model are kept whole.
	// Defaults to a directory in the system's temporary directory.
	SpillDir string
	// Logger is told what nobody else is. Defaults to discarding it.
	Logger *slog.Logger
}

// AskMode says what happens when a call needs a person's word.
type AskMode string

// The ways to ask.
const (
	// AskWait waits for the Approver.
	AskWait AskMode = "wait"
	// AskPark ends the turn parked. Someone decides with [Agent.Decide], and
	// [Session.Resume] goes on.
	AskPark AskMode = "park"
	// AskDeny refuses the call.
	AskDeny AskMode = "deny"
)

// BusyMode says what becomes of a turn while its session is taking another.
type BusyMode string

// The ways to treat a second turn.
const (
	BusyQueue  BusyMode = "queue"  // it waits
	BusyRefuse BusyMode = "refuse" // it fails with ErrBusy
)

// Limits bound a turn. The zero value of a field means its default.
type Limits struct {
	// Steps is how many model calls a turn may take. Defaults to 100.
	Steps int
	// Parallel is how many calls of one response run at a time. Defaults to 16.
	Parallel int
	// Continuations is how often turn.stop may make a turn go on. Defaults to 8.
	Continuations int
	// Depth is how deep subagents may be: those of the main agent are 1 deep.
	// Defaults to 5.
	Depth int
	// ReminderCharacters bounds what hooks add to one request. Defaults to
	// 16,000.
	ReminderCharacters int
	// ResultCharacters bounds the text of one tool result. Defaults to 50,000.
	ResultCharacters int
	// Tool is how long a tool may run. Defaults to 5 minutes.
	Tool time.Duration
	// Grace is how long a tool that was cancelled is waited for. Defaults to 5
	// seconds.
	Grace time.Duration
	// Idle is how long a model may send nothing, not even a sign of life. The attempt has
	// then failed, as with a network error. Defaults to 5 minutes.
	Idle time.Duration
	// End bounds the phases that fire when a turn was aborted, and those that
	// end one. Defaults to 10 seconds.
	End time.Duration
}

// Budget bounds what turns may cost. A field of zero sets no bound. A bound in
// dollars is for a model that has a price, or that states what a response cost;
// with another nothing is ever spent.
type Budget struct {
	// TurnTokens and TurnCost bound one turn, tokens of all sorts and US dollars.
	TurnTokens int
	TurnCost   float64
	// SessionTokens and SessionCost bound a session.
	SessionTokens int
	SessionCost   float64
}

// spent says which bound is reached, or nothing.
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

// Compaction says when and how the context is summed up.
type Compaction struct {
	// Share of the model's window, by the tokens it counted, at which the context
	// is summed up. 1 or more leaves it to the provider to say that the context
	// is too long. Defaults to 0.8.
	Share float64
	// Window overrides the model's window, in tokens. Defaults to what the model
	// says.
	Window int
	// Instructions say what a summary must hold. Defaults to what work needs to
	// go on: goals, decisions, state, open ends.
	Instructions string
	// Model writes the summaries. Defaults to the agent's.
	Model Model
}

// orDefault fills in what is zero.
func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// complete fills in the defaults and refuses what makes no sense.
func (o *Options) complete() error {
	orDefault(&o.Name, defaultName)
	orDefault(&o.Busy, BusyQueue)
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
	if o.Busy != BusyQueue && o.Busy != BusyRefuse {
		refuse("busy: %q is none of queue, refuse", o.Busy)
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
	for i := range o.Interceptors {
		if in := &o.Interceptors[i]; in.Tool == "" || in.Name == "" {
			refuse("interceptor %d: it needs a name, and a tool or \"*\"", i)
		}
	}
	return errors.Join(problems...)
}

// defaultName is the name of an agent whose options have none.
const defaultName = "main"
