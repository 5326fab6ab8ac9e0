// Package hook is a typed hook runtime. It calls handlers at named points of a program, in
// a defined order and within limits. It records what the handlers did, and can explain the
// result.
//
// A [Phase] is a named point with an input and an output type. A [Subscription] binds a
// [Handler] to a phase, with its order and limits. A [Runtime] holds the subscriptions of a
// set of phases. The package knows nothing about agents: package belay defines the phases
// of an agent.
//
// # Usage
//
// Define a phase once, as a package variable:
//
//	var Upload = hook.Define(hook.Definition[File, Verdict]{
//		Name: "upload", Kind: hook.Gate, ...
//	})
//
// Bind handlers to the phase and install them. Install returns a [Lease]. Closing the lease
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
// There are three kinds of phases. The verdicts of a [Gate] can stop the next action, and
// the most severe verdict wins. The contributions of a [Collect] phase are merged by its
// merge rule. Handlers of an [Observe] phase change nothing.
//
// The order of handlers never depends on the order of registration. Handlers that rewrite
// run first, one at a time. The other handlers run after the handlers that After and Before
// put in front of them. If several handlers could be next, the smallest (priority, id) is
// next. [Plan] shows the order and the reasons. [Phase.Explain] shows what each handler
// answered.
//
// # Concurrency
//
// A Runtime, a Snapshot and a Lease are safe for concurrent use. A handler may install,
// close and dispatch. Blocking handlers run on the goroutine that dispatches, so each costs
// only a call, a clock reading and a record. Handlers with Deadline execution, and handlers
// marked Concurrent, run on their own goroutines, in parallel within a level of the plan.
// The runtime merges answers in plan order, never in order of completion.
//
// If a handler with Deadline execution does not return in time, the runtime abandons it: it
// cancels the handler's context with a cause, and never uses the late answer. If too many
// abandoned runs of a subscription are alive, the runtime quarantines the subscription: it
// does not start the handler again until some of those runs return.
//
// The runtime recovers from every panic of a handler. It cannot stop runtime.Goexit, which
// ends the goroutine that calls it. In a handler with its own goroutine, Goexit is a
// failure like any other. In a blocking handler it ends the dispatching goroutine, after
// the run was recorded.
//
// All handlers share the input, so inputs must be immutable: use unexported fields, and
// accessors that return copies.
//
// # Errors
//
// Mistakes are found when you install, never in a turn: [Runtime.Install] returns an
// [*InstallError] with one problem for each wrong field of a subscription. A handler's
// [Failure] mode says what its failure means: gates fail [Closed] by default. Diagnostics
// have stable codes: see [codes.All].
//
// Records hold no text of prompts, inputs or outputs. The text of an error is recorded only
// if it is a [SafeError].
//
// # Testing
//
// A handler is a plain function: call it. Package hooktest tries one subscription with one
// input and checks the result. It has handlers that misbehave on purpose, a clock that a
// test moves by hand, and the conformance suites for implementations of [Journal] and
// [Queue].
//
// If you use a Runtime inside a testing/synctest bubble, make it inside the bubble, because
// a Runtime reuses timers and channels.
package hook
