// Package belaytest is the test kit for agents: a model that plays a script, turns
// that cannot hang, and assertions that say what happened.
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
// [Agent.Say] runs a turn and waits for its end, [Agent.Resume] resumes a parked one,
// and [Agent.Take] reads any other stream. The returned [Turn] has assertions about
// its end, the calls and their results, denials, reminders, prompt context and hooks;
// [Turn.Request] is the request to the model. [Answer] runs a turn for structured
// output. [Agent.Golden] compares a whole conversation with a
// file.
//
// [NewTool] makes a tool that records its calls and answers from a list.
// [NewApprover] makes a person who answers from one.
//
// Three things are checked automatically: after each turn, that the transcript and
// every request are well-formed, as [WellFormed] defines it, and at the end of the
// test, that the script was played to its end and that no goroutine of a turn is
// left. Idle HTTP connections do not count.
//
// Missing options get defaults for tests: a store in memory that keeps the records of
// hooks, a temporary directory for long results, and no pause before a failed attempt
// is repeated.
//
// # Concurrency
//
// An Agent belongs to the goroutine of its test and runs one turn at a time; parallel
// tests need their own agents. A Tool and an Approver are safe for concurrent use, as
// the loop needs them to be.
//
// A turn can run in a testing/synctest bubble if its agent was made there.
//
// # Errors
//
// A failed assertion is an error of the test, which continues. Its message shows the
// expected and the actual value, and the whole turn. Fatal problems end the test: an
// agent that cannot be made, a turn that ignores its cancellation, a request that was
// never sent.
//
// A turn in which the runtime fails also fails the test, unless it asserts
// [Turn.Failed] or that the turn ended in an error or was aborted.
//
// # Testing
//
// Hooks alone are tested with hook/hooktest, and stores and models with the suites in
// store/storetest and provider/providertest. Set BELAYTEST_UPDATE=1 in the
// environment to accept new golden files.
package belaytest
