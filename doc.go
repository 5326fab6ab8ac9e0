// Package belay is an agent runtime. Everything around the model (policy,
// context, tools, approvals, memory, skills, subagents, audit) hangs on one
// typed hook runtime that orders it, bounds it, records it and can explain it.
//
// The package holds the loop: agents, sessions, turns and tools, the phases at
// which hooks look, steer and stop, and the interfaces that models, stores and
// subsystems implement. Skills, subagents, memory and the security floor are yet
// to come; what they hang on is here.
//
// # Usage
//
// An agent is a model with tools and hooks:
//
//	agent, err := belay.New(anthropic.New("claude-sonnet-4-5", nil), &belay.Options{
//		Tools: []belay.Tool{write},
//		Hooks: []hook.Subscription{NoProd},
//	})
//
// It takes turns in sessions, from a user message to the final answer.
// [Session.Run] streams a turn as it happens, [Session.Turn] returns when it is
// over:
//
//	for event, err := range agent.Session("demo").Run(ctx, "tidy the changelog") { ... }
//
//	turn, err := agent.Session("demo").Turn(ctx, "and the readme")
//
// A tool is a Go function. The schema of its input is made from a struct:
//
//	type File struct {
//		Path string `json:"path" jsonschema:"an absolute path"`
//		Text string `json:"text"`
//	}
//
//	var write = belay.NewTool("write", "Writes a file.", func(ctx context.Context, in File) (string, error) {
//		return "written", os.WriteFile(in.Path, []byte(in.Text), 0o600)
//	}, &belay.ToolTraits{Serial: true})
//
// A hook is a function on a phase. Each phase has its own input and its own
// answer, so a hook that answers what its phase cannot use does not compile:
//
//	var NoProd = belay.ToolPre.On("no-prod", noProd, &hook.Options{
//		Match: hook.Match{Tools: []string{"write", "edit"}},
//	})
//
//	func noProd(ctx context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
//		var in struct{ Path string }
//		if err := call.Decode(&in); err != nil {
//			return belay.Pass, err // tool.pre is a gate: an error denies
//		}
//		if in.Path == "" {
//			return belay.Pass, errors.New("the path is missing")
//		}
//		if !path.IsAbs(in.Path) {
//			in.Path = path.Join(project, in.Path)
//		}
//		if strings.HasPrefix(path.Clean(in.Path)+"/", "/srv/prod/") {
//			return belay.Deny("production is off limits in this session"), nil
//		}
//		return belay.Pass, nil
//	}
//
// [Phases] lists the phases; docs/hooks.md says when each fires and what its
// handlers may do, docs/agents.md how a turn goes. A call that needs a person's
// word waits for an [Approver] or parks the turn: see [AskMode], [Agent.Decide]
// and [Session.Resume]. [Answer] takes a turn that must come to a Go value.
//
// # Concurrency
//
// An [Agent] and a [Session] are safe for concurrent use. A session takes one
// turn at a time: another waits, or is refused, as Options.Busy says.
//
// What an agent is given is used by many sessions at a time: the model, tools,
// hooks, interceptors, the floor, the approver, extensions and the store must be
// safe for concurrent use. Calls of one response are judged and run side by side
// too, except those of a serial tool, which run alone.
//
// An agent has no goroutines of its own, nor has a session between turns.
// [Session.Turn] takes the turn on the caller's goroutine. [Session.Run] takes it
// on another, which has ended when the loop over its events has. Tools run on
// goroutines of their own. One that heeds neither its timeout nor an abort is
// left behind after Limits.Grace; everything else is waited for.
//
// Inputs of phases and stored messages are immutable and shared. Answers and
// results are plain data: fill one in and return it, and do not touch it
// afterwards.
//
// # Errors
//
// A denied call is a verdict and not an error: the model is told who denied it
// and why, and goes on. A tool's failure, be it an error, a panic, a timeout or
// an input that does not fit, is a result for the model, with a class. Only the
// runtime's failure is an error for the caller, and an abort, whose error is the
// context's cause. [EndReason] says how a turn ended; of the nine reasons,
// EndError and EndAborted come with an error.
//
// An error that a handler returns is a failure of the handler, and means what the
// subscription's failure mode says: at a gate, denial, unless the gate is one of
// the two that fail open.
//
// Failed attempts at a model are a [*ModelError]; those that may pass are made
// again before anyone hears of them. A turn that is resumed without the tools that
// its calls need is a [*MissingToolError], and stays as it was. ErrBusy, ErrParked,
// ErrNoTurn and ErrClosed answer questions about sessions, ErrNotFound, ErrHeld,
// ErrFenced and ErrConflict about stores, and ErrDecided, ErrWrongHash and
// ErrExpired about decisions. Use errors.Is.
//
// # Testing
//
// Package belaytest tests a whole agent with a scripted model: no key, no
// network, no sleeping. A handler is a plain function of an input that can be
// written as JSON: hooktest.Input makes one, and hooktest.Try runs a subscription
// on it as a runtime would. Stores and models are held to their contracts by the
// suites in store/storetest and provider/providertest.
package belay
