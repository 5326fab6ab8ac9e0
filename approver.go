package belay

import (
	"context"
	"encoding/json"
)

// Approver asks a person, and waits for the answer. It is asked about all calls of a
// response at a time, from goroutines of their own: one that can show only one
// question at a time lets the others wait.
type Approver interface {
	// Approve returns the decision. An error, or the end of ctx, denies.
	Approve(ctx context.Context, question Question) (Decision, error)
}

// Question is an approval with the input it is about.
type Question struct {
	Approval
	// Input is the final input of the call.
	Input json.RawMessage `json:"input"`
	// Agent is the name of the agent that wants to make it.
	Agent string `json:"agent,omitempty"`
	// Run and Depth place the call of a subagent; those of the main agent have none.
	Run   string `json:"run,omitempty"`
	Depth int    `json:"depth,omitempty"`
}
