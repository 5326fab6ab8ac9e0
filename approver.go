package belay

import (
	"context"
	"encoding/json"
)

// Approver asks a person and waits for the answer. Belay calls Approve for all calls of a
// response at the same time, each on its own goroutine. An approver that can show only one
// question at a time must make the other calls of Approve wait.
type Approver interface {
	// Approve returns the decision. If it returns an error, Belay denies the call. ctx ends
	// when the approval expires, when the turn is aborted, or when somebody else has
	// already decided.
	Approve(ctx context.Context, question Question) (Decision, error)
}

// Question is an approval with the input of the call. It can also describe a call that
// its tool has parked. Then Wait is set, and ID and Hash are empty.
type Question struct {
	Approval
	// Wait is the name that the tool passed to [Park]. It is empty for an approval. If it
	// is set, there is nothing to decide: call [Session.Resume] when the event that the
	// call waits for has happened.
	Wait string `json:"wait,omitempty"`
	// Input is the final input of the call.
	Input json.RawMessage `json:"input"`
	// Agent is the name of the agent that makes the call.
	Agent string `json:"agent,omitempty"`
	// Run and Depth are the id and the depth of a subagent's run. They are zero for the
	// main agent.
	Run   string `json:"run,omitempty"`
	Depth int    `json:"depth,omitempty"`
}
