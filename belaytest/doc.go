// Package belaytest is the test kit for agents. It has a model that plays a script, turns
// with a timeout, and assertions that print what happened.
//
// # Usage
//
// Make an agent under test from a model and the options of the real agent, as with
// [belay.New]. [Script] is a model that plays steps:
//
//	func TestReleaseNotes(t *testing.T) {
//		write := belaytest.NewTool("write", "written")
//		agent := belaytest.New(t, belaytest.Script(
//			belaytest.Calls("write", `{"path": "/srv/prod/notes.md"}`),
//			belaytest.Says("I may not write there."),
//		), &belay.Options{Tools: []belay.Tool{write}, Hooks: []hook.Subscription{NoProd}})
//
//		turn := agent.Say("publish the notes")
//		turn.Ended(belay.EndTurn)
//		turn.Denied("write", "no-prod", "production is off limits")
//		turn.Said("may not")
//		write.Ran(t) // never
//	}
//
// [Agent.Say] runs a turn and waits for its end, [Agent.Resume] resumes a parked turn,
// and [Agent.Take] runs a turn in any other way. The returned [Turn] has assertions about
// its end, the calls and their results, denials, reminders, prompt context and hooks;
// [Turn.Request] is the request to the model. [Answer] runs a turn for structured output.
// [Agent.Golden] compares a whole conversation with a file.
//
// [NewTool] makes a tool that records its calls and answers from a list. [NewApprover]
// makes an approver that answers from a list.
//
// The kit checks three things automatically:
//
//   - after each turn: the transcript and every request are well-formed, see [WellFormed]
//   - at the end of the test: all steps of the script were played
//   - at the end of the test: no goroutine of a turn is left, except for idle HTTP connections
//
// Options that are not set get defaults for tests: a store in memory that keeps the records
// of hook runs, a temporary directory for long results, and almost no pause before a retry.
//
// # Concurrency
//
// Use an Agent only on the goroutine of its test. It runs one turn at a time, so parallel
// tests need their own agents. A Tool and an Approver are safe for concurrent use.
//
// A turn can run in a testing/synctest bubble if its agent was made in the same bubble.
//
// # Errors
//
// A failed assertion is an error of the test, and the test continues. The message shows
// the expected value, the actual value and the whole turn. Some problems end the test at
// once: for example, New fails, a turn does not end after its cancellation, or a test
// calls [Turn.Request] for a request that was never sent.
//
// If the runtime fails in a turn, the test fails too, unless it calls [Turn.Failed], or
// calls [Turn.Ended] with belay.EndError or belay.EndAborted.
//
// # Testing
//
// To test only hooks, use hook/hooktest. To test stores and models, use the suites in
// store/storetest and provider/providertest. Set BELAYTEST_UPDATE=1 in the environment to
// write golden files.
package belaytest
