package belay

import (
	"context"
	"encoding/json"
)

// Approver asks a person and waits for the answer. It is called for all calls of a response
// at the same time, each on its own goroutine. If an approver can show only one question
// at a time, it must make the other calls wait.
type Approver interface {
	// Approve returns the decision. An error denies, and so does the end of ctx.
	Approve(ctx context.Context, question Question) (Decision, error)
}

// Question is an approval with the input of the call. It can also be a call that its tool
// parked: then Wait is set, and ID and Hash are empty.
type Question struct {
	Approval
	// Wait is the name that the tool gave to [Park]. Nobody can decide such a call: it
	// continues with [Session.Resume] when what it waits for has happened.
	Wait string `json:"wait,omitempty"`
	// Input is the final input of the call.
	Input json.RawMessage `json:"input"`
	// Agent is the name of the agent that makes the call.
	Agent string `json:"agent,omitempty"`
	// Run and Depth are the run and the depth of a subagent. They are empty for the main
	// agent.
	Run   string `json:"run,omitempty"`
	Depth int    `json:"depth,omitempty"`
}
