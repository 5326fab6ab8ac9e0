// Package belay is an agent runtime. Policy, context, tools, approvals, memory,
// skills, subagents and audit all use one typed hook runtime. The hook runtime
// orders the hooks, limits their time and output, and records every run.
//
// This package contains agents, sessions, turns and tools, the phases at which
// hooks run, and the interfaces that models, stores and extensions implement.
// Other packages provide the rest:
//
//   - provider/anthropic, provider/openai and provider/gemini have models
//   - store/sqlite and store/postgres store sessions
//   - permit makes the permission checks, and sandbox confines commands
//   - toolbox, mcptool, skill, subagent and memory give agents tools and knowledge
//   - declare and space load hooks from files
//   - engine runs turns on several machines
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
// answer. [Session.Run] streams the events of a turn. [Session.Turn] returns
// when the turn is over:
//
//	for event, err := range agent.Session("demo").Run(ctx, "tidy the changelog") { ... }
//
//	turn, err := agent.Session("demo").Turn(ctx, "and the readme")
//
// A tool is a Go function. NewTool makes the schema of its input from a struct:
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
// A hook is a function that is called at a phase. Each phase has its own input
// type and its own answer type, and the compiler checks both:
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
// [Phases] lists the phases. docs/hooks.md says when each phase fires and what its
// handlers may do. docs/how-a-turn-works.md shows the order of a turn. A call
// that needs an approval waits for an [Approver] or parks the turn: see
// [AskMode], [Agent.Decide] and [Session.Resume]. [Answer] runs a turn and
// returns its final answer as a Go value (structured output).
//
// # Concurrency
//
// An [Agent] and a [Session] are safe for concurrent use. A session runs one
// turn at a time. A second turn waits, or fails with ErrBusy: see
// Options.RefuseBusy.
//
// Many sessions use the parts of an agent at the same time. The model, tools,
// hooks, interceptors, the authorizer, the approver, extensions and the store
// must be safe for concurrent use. Belay checks and runs the calls of one response
// in parallel. Only calls of a serial tool run alone.
//
// An agent starts goroutines of its own only for a [WatchExtension] and, if it
// has no store, for background work. A session has no goroutine between turns.
// [Session.Turn] runs the turn on the caller's goroutine. [Session.Run] runs the
// turn on another goroutine, which ends before the loop over the events ends.
// Tools run on goroutines of their own. If a tool ignores both its timeout and a
// cancel, the turn stops waiting for the tool after Limits.Grace. The turn waits
// for everything else.
//
// Inputs of phases and stored messages are immutable and shared. Answers and
// results are plain data: do not change them after you have returned them.
//
// # Errors
//
// A denied call is not an error: the model learns who denied the call and why,
// and the turn continues. If a tool fails (an error, a panic, a timeout, an
// invalid input), the model gets a result with a class. The caller gets an error
// if the runtime fails, or if the turn is cancelled; the error is then the
// context's cause. [EndReason] says how a turn ended. Only EndError and
// EndAborted come with an error.
//
// If a handler returns an error, the failure mode of its subscription decides what
// happens. By default the failure of a gate's handler denies. The gates approval.request
// and turn.stop are exceptions: they continue as if the handler had passed.
//
// A failed request to a model is a [*ModelError]. Belay retries temporary
// failures first. A turn that is resumed without the tools that its calls need
// fails with a [*MissingToolError]; you can resume it again later. ErrBusy,
// ErrParked, ErrNoTurn and ErrClosed are errors of sessions. ErrNotFound,
// ErrHeld, ErrFenced and ErrConflict are errors of stores. ErrDecided,
// ErrWrongHash and ErrExpired are errors of decisions. Use errors.Is.
//
// # Testing
//
// Package belaytest tests a whole agent with a scripted model, without a key, a
// network or sleeping. To test one handler, make its input from JSON with
// hooktest.Input and run its subscription with hooktest.Try. The suites in
// store/storetest and provider/providertest check stores and models.
package belay
