// Package hook is a typed hook runtime: it calls handlers at named points of a
// program, in a defined order and within limits. It records what they did, and
// can explain it.
//
// A [Phase] is a named point with an input and an output type. A [Subscription]
// binds a [Handler] to a phase, with its order and limits. A [Runtime] holds the
// subscriptions of a set of phases. The package knows nothing about agents:
// package belay defines the phases of an agent.
//
// # Usage
//
// Define a phase once, as a package variable:
//
//	var Upload = hook.Define(hook.Definition[File, Verdict]{
//		Name: "upload", Kind: hook.Gate, ...
//	})
//
// Bind handlers to it and install them. Install returns a [Lease]. Closing it
// removes the handlers:
//
//	sub := Upload.On("no-secrets", noSecrets, &hook.Options{Timeout: time.Second, Execution: hook.Deadline})
//	lease, err := runtime.Install(sub)
//
// Take a snapshot for a turn, and dispatch on it:
//
//	snapshot := runtime.Snapshot()
//	defer snapshot.Release(ctx)
//	if Upload.Active(snapshot) {
//		outcome, err := Upload.Dispatch(ctx, snapshot, file)
//	}
//
// There are three kinds of phases. The verdicts of a [Gate] can stop what would
// happen next, and the most severe one wins. The contributions of a [Collect]
// phase are merged by its merge rule. Handlers of an [Observe] phase change
// nothing.
//
// The order of handlers never depends on the order of registration. Handlers that
// rewrite come first, one at a time. Then, of the handlers whose predecessors by
// After and Before are placed, the smallest (priority, id) is next. [Plan] shows
// the order and the reasons. [Phase.Explain] shows what each handler answered.
//
// # Concurrency
//
// A Runtime, a Snapshot and a Lease are safe for concurrent use, and a handler
// may install, close and dispatch. Blocking handlers run on the goroutine that
// dispatches, so they cost only a call, a clock reading and a record. Handlers
// with a deadline, and those marked Concurrent, run on their own goroutines and
// in parallel within a level of the plan. Answers are merged in plan order, never
// in order of completion.
//
// A handler with a deadline that does not return in time is abandoned: its
// context is cancelled with a cause, and its late answer is never used. A
// subscription with too many abandoned runs alive is quarantined.
//
// The runtime recovers from every panic of a handler. runtime.Goexit ends the
// goroutine that calls it, and nothing can prevent that: in a handler with its own
// goroutine it is a failure like any other; in a blocking handler it ends the
// dispatching goroutine, after the run was recorded.
//
// Inputs are shared by all handlers and must be immutable: unexported fields,
// accessors that copy.
//
// # Errors
//
// Mistakes are found when installing, never in a turn: [Runtime.Install]
// returns an [*InstallError] with one problem for each subscription and field.
// A handler's [Failure] mode says what its failure means: gates fail [Closed] by
// default. Diagnostics have stable codes: see [codes.All].
//
// Records hold no text of prompts, inputs or outputs. An error's text reaches
// the record only as a [SafeError].
//
// # Testing
//
// A handler is a plain function; call it. Package hooktest tries one
// subscription with one input and checks the result. It has handlers that
// misbehave on purpose, a clock that a test moves by hand, and the
// conformance suites for implementations of [Journal] and [Queue].
//
// A Runtime that is used inside a testing/synctest bubble must be made inside
// it, because it keeps timers and channels for reuse.
package hook
