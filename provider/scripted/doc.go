// Package scripted is a model that plays a script: for demos, tests and benchmarks, without a
// network and without costs.
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
// A step may be computed from the request, see Step.Compute. [Load] and [Parse] read a script
// from YAML; this one shows every key:
//
//	name: scripted/demo        # provider/name
//	window: 8000               # longer requests fail with too_long
//	max_output: 1000
//	price: {in: 3, out: 15, cache_read: 0.3, cache_write: 3.75}
//	repeat: true               # repeat the last step for ever
//	follow_transcript: true    # the conversation says which step comes next
//	cache: true                # estimate what a cache would have read
//	keep: 100                  # requests to remember
//	pace: {chunk: 20}          # default for steps
//	steps:
//	  - expect:                # or the attempt fails
//	      system: careful      # in the system prompt
//	      user: notes          # in the newest message of the user
//	      reminders: [tests]   # each in some reminder
//	      results:             # of all the last calls
//	        - {call: call_1, tool: read, text: milk, is_error: false}
//	      tools: [read]        # advertised
//	      no_tools: [shell]    # not advertised
//	    thinking: The notes are in a file.
//	    text: Let me see.
//	    calls:
//	      - {id: call_2, tool: read, input: {path: notes.md}}
//	      - {tool: write, input: '{"path": "not'}   # half a call
//	    stop: max_tokens       # end_turn, tool_use, max_tokens or refusal
//	    usage: {in: 10, out: 5, cache_read: 0, cache_write: 0, cost: 0.01}
//	    pace: {delay: 1s, pause: 20ms, chunk: -1}   # -1: all at once
//	  - text: So far, so
//	    fault: {kind: network, after: 3, status: 502, retry_after: 2s, message: cut}
//	  - fault: {cut: true}     # the stream ends without a response
//	  - fault: {hang: true}    # nothing comes until the request is cancelled
//
// A response is streamed word by word and at once, unless a [Pace] says otherwise. With Whole as
// its Chunk nothing is streamed, which is the cheapest. MaxTokens of a request is recorded but
// has no effect: use a step with the stop reason max_tokens.
//
// # Concurrency
//
// A model is safe for concurrent use. Requests get the steps in the order of their arrival, so
// each conversation needs a model of its own: Model.Fork makes one with the same script. For
// many sessions of one agent, set Options.FollowTranscript: then the step follows from the
// conversation alone.
//
// # Errors
//
// A failed attempt returns a [*belay.ModelError]: of the kind that the fault names, ModelTooLong
// if the request does not fit the window, and ModelInvalid if the script has ended, if the
// request is not what the step expects or if the step cannot be played. In the last three cases
// the error names the place in the script. If the context is cancelled, its error is returned,
// wrapped.
//
// A mistake in a YAML file is reported with its line and a suggestion: script.yaml:4: unknown
// key "tol" (did you mean "tool"?). All mistakes are reported, one per line.
//
// # Testing
//
// With expectations a script is also a test. Model.Requests returns the requests, and Model.Left
// reports whether steps are left. Delays use timers of package time, so they take no time in a
// testing/synctest bubble.
package scripted
