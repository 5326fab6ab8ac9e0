// Package scripted is a model that plays a script. Use it for demos, tests and benchmarks:
// it needs no network and costs nothing.
//
// # Usage
//
// A script is a list of steps, one for each request. [New] takes them from Go:
//
//	model := scripted.New([]scripted.Step{
//		{Text: "Let me see.", Calls: []scripted.Call{{Tool: "read", Input: `{"path": "notes.md"}`}}},
//		{Fault: &scripted.Fault{Kind: belay.ModelOverloaded, Status: 529}},
//		{Text: "The notes say: buy milk.", Expect: &scripted.Expect{
//			Results: []scripted.Result{{Tool: "read", Text: "milk"}},
//		}},
//	}, nil)
//
// Step.Compute returns a step that depends on the request. [Load] and [Parse] read a script
// from a YAML file; this one shows every key:
//
//	name: scripted/demo        # provider/name
//	window: 8000               # in tokens; longer requests fail with too_long
//	max_output: 1000
//	price: {in: 3, out: 15, cache_read: 0.3, cache_write: 3.75}
//	repeat: true               # repeat the last step for ever
//	follow_transcript: true    # count messages to choose the step
//	cache: true                # simulate a prompt cache in the usage
//	keep: 100                  # how many requests to record
//	pace: {chunk: 20}          # default for steps
//	steps:
//	  - expect:                # a different request fails
//	      system: careful      # part of the system prompt
//	      user: notes          # part of the user's newest message
//	      reminders: [tests]   # each is part of some reminder
//	      results:             # of all calls in the model's last message
//	        - {call: call_1, tool: read, text: milk, is_error: false}
//	      tools: [read]        # tools in the request
//	      no_tools: [shell]    # tools not in the request
//	    thinking: The notes are in a file.
//	    text: Let me see.
//	    calls:
//	      - {id: call_2, tool: read, input: {path: notes.md}}
//	      - {tool: write, input: '{"path": "not'}   # input that is cut off
//	    stop: max_tokens       # end_turn, tool_use, max_tokens or refusal
//	    usage: {in: 10, out: 5, cache_read: 0, cache_write: 0, cost: 0.01}
//	    pace: {delay: 1s, pause: 20ms, chunk: -1}   # -1: all at once
//	  - text: So far, so
//	    fault: {kind: network, after: 3, status: 502, retry_after: 2s, message: cut}
//	  - fault: {cut: true}     # the stream ends without a response
//	  - fault: {hang: true}    # nothing arrives until the request is cancelled
//
// By default a response is streamed word by word, without delays. [Pace] changes this. With
// [Whole] as Pace.Chunk there are no deltas, which takes the least time. MaxTokens of a request
// has no effect. To test that limit, use a step with the stop reason max_tokens.
//
// # Concurrency
//
// A model is safe for concurrent use. Requests get the steps in the order in which they arrive,
// so each conversation needs its own model. Model.Fork returns one with the same script. If one
// agent has many sessions, set Options.FollowTranscript. Then the number of messages in the
// conversation determines the step.
//
// # Errors
//
// A failed attempt returns a [*belay.ModelError]. Its kind is one of these:
//
//   - Fault.Kind of the step, or ModelServer if it is empty.
//   - ModelTooLong if the request is longer than the window.
//   - ModelInvalid if the script has no step for the request, if the request is not as the step
//     expects, or if the step is invalid. The error names the step.
//
// If the context is cancelled, the error wraps the error of the context.
//
// [Parse] and [Load] report all wrong keys and values in a YAML file, one per line. Each message
// has the line number and often a suggestion: script.yaml:4: unknown key "tol" (did you mean
// "tool"?).
//
// # Testing
//
// A script with expectations is also a test, see [Expect]. Model.Requests returns the requests,
// and Model.Left returns how many steps were not played. In a testing/synctest bubble, delays
// take no real time.
package scripted
