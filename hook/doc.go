// Package hook is a typed hook runtime: it orders the code that hangs on a
// moment of a program, bounds it, records it, and can explain it.
//
// A [Phase] is a stable, named moment with an input and an output type. A
// [Subscription] binds a [Handler] to a phase, with its order and limits. A
// [Runtime] holds the subscriptions of a set of phases. The package knows
// nothing of agents; package belay defines the phases of an agent on it.
//
// # Usage
//
// Define a phase once, as a package variable:
//
//	var Upload = hook.Define(hook.Definition[File, Verdict]{
//		Name: "upload", Kind: hook.Gate, ...
//	})
//
// Bind handlers to it and install them. Whatever is added comes back as a
// [Lease] that takes it away again:
//
//	sub := Upload.On("no-secrets", noSecrets, &hook.Options{Timeout: time.Second, Execution: hook.Deadline})
//	lease, err := runtime.Install(sub)
//
// Take a snapshot for the length of a turn, and dispatch on it:
//
//	snapshot := runtime.Snapshot()
//	defer snapshot.Release(ctx)
//	if Upload.Active(snapshot) {
//		outcome, err := Upload.Dispatch(ctx, snapshot, file)
//	}
//
// There are three kinds of phases. The verdicts of a [Gate] can stop what is
// about to happen, and the most severe one wins. The contributions of a
// [Collect] phase are merged by its one merge rule. Handlers of an [Observe]
// phase take note.
//
// The order of handlers never depends on the order of registration. Those that
// rewrite come first, one at a time. Then, among those whose predecessors by
// After and Before are placed, the smallest (priority, id) is next. [Plan]
// shows the order and the reasons; [Phase.Explain] shows what each handler
// said.
//
// # Concurrency
//
// A Runtime, a Snapshot and a Lease are safe for concurrent use, and a handler
// may install, close and dispatch. Blocking handlers run on the goroutine that
// dispatches, so they cost no more than a call, a clock reading and a record.
// Handlers with a deadline, and those marked Concurrent, run on goroutines of
// their own and overlap within a level of the plan. Answers are merged in plan
// order, never in order of completion.
//
// A handler with a deadline that does not return in time is abandoned: its
// context is cancelled with a cause, and its late answer is never used. A
// subscription with too many abandoned runs alive is quarantined.
//
// A panic is contained wherever it happens. runtime.Goexit ends the goroutine
// it is called on, and nothing in Go can keep it: in a handler with a goroutine
// of its own it is a failure like any other; in a blocking handler it ends the
// dispatching goroutine, after the run was recorded and everything is in order.
//
// Inputs are shared by all handlers and must be immutable: unexported fields,
// accessors that copy.
//
// # Errors
//
// Mistakes are found when installing, never in a turn: [Runtime.Install]
// returns an [*InstallError] with one problem for each subscription and field.
// What a handler's failure means is its [Failure] mode: gates fail [Closed]
// unless told otherwise. Diagnostics have stable codes: see [codes.All].
//
// Records hold no text of prompts, inputs or outputs. An error's text reaches
// the record only as a [SafeError].
//
// # Testing
//
// A handler is a plain function; call it. Package hooktest tries one
// subscription against one input and asserts what came of it, has handlers
// that misbehave on purpose, a clock that a test moves by hand, and the
// conformance suites for implementations of [Journal] and [Queue].
//
// A Runtime that is used inside a testing/synctest bubble must be made inside
// it, because it keeps timers and channels for reuse.
package hook
