// Package belay is an agent runtime. Everything around the model (policy,
// context, tools, approvals, memory, skills, subagents, audit) uses one typed
// hook runtime that orders it, bounds it, records it and can explain it.
//
// The package holds the loop: agents, sessions, turns and tools, the phases at
// which hooks run, and the interfaces that models, stores and subsystems
// implement. Other packages provide the rest: provider/anthropic,
// provider/openai and provider/gemini have models; store/sqlite and
// store/postgres keep sessions; permit makes the permission checks and sandbox
// confines commands; toolbox, mcptool, skill, subagent and memory give agents
// tools and knowledge; declare and space load hooks from files; engine runs
// turns on several machines.
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
// A session is a conversation. A turn goes from a user message to the final
// answer. [Session.Run] streams the events of a turn, [Session.Turn] returns
// when it is over:
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
// [Phases] lists the phases. docs/hooks.md says when each one fires and what its
// handlers may do. docs/how-a-turn-works.md shows the order of a turn. A call
// that needs an approval waits for an [Approver] or parks the turn: see
// [AskMode], [Agent.Decide] and [Session.Resume]. [Answer] returns structured
// output: a turn whose final answer is a Go value.
//
// # Concurrency
//
// An [Agent] and a [Session] are safe for concurrent use. A session runs one
// turn at a time. A second turn waits or is refused: see Options.RefuseBusy.
//
// Many sessions use the parts of an agent at the same time. The model, tools,
// hooks, interceptors, the authorizer, the approver, extensions and the store
// must be safe for concurrent use. The calls of one response are checked and run
// in parallel, except calls of a serial tool, which run alone.
//
// An agent without a store performs background work on a goroutine of its own. Otherwise it
// has none, and a session has none between turns.
// [Session.Turn] runs the turn on the caller's goroutine. [Session.Run] runs it
// on another one, which ends before the loop over its events does. Tools run on
// goroutines of their own. A tool that ignores both its timeout and a cancel is
// abandoned after Limits.Grace. Everything else is waited for.
//
// Inputs of phases and stored messages are immutable and shared. Answers and
// results are plain data: fill one in, return it, and do not change it
// afterwards.
//
// # Errors
//
// A denied call is a verdict, not an error: the model reads who denied it and
// why, and the turn continues. A tool's failure (an error, a panic, a timeout,
// an input that does not fit) is a result for the model, with a class. The
// caller gets an error if the runtime fails, or if the turn is cancelled; then
// it is the context's cause. [EndReason] says how a turn ended. Of the nine
// reasons, EndError and EndAborted come with an error.
//
// An error that a handler returns is a failure of the handler. The
// subscription's failure mode says what it means. At a gate it is a denial,
// except at the two gates that fail open.
//
// A failed attempt at a model is a [*ModelError]. Temporary failures are retried
// first. A turn that is resumed without the tools that its calls need fails with
// a [*MissingToolError] and can be resumed later. ErrBusy, ErrParked, ErrNoTurn
// and ErrClosed are about sessions, ErrNotFound, ErrHeld, ErrFenced and
// ErrConflict about stores, ErrDecided, ErrWrongHash and ErrExpired about
// decisions. Use errors.Is.
//
// # Testing
//
// Package belaytest tests a whole agent with a scripted model, without a key, a
// network or sleeping. A handler is a plain function whose input can be written
// as JSON: hooktest.Input makes one, and hooktest.Try runs a subscription on it
// as a runtime would. The suites in store/storetest and provider/providertest
// check stores and models against their contracts.
package belay
