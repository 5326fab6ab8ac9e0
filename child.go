package belay

import (
	"fmt"
)

// Child is the run of a subagent below a tool call.
type Child struct {
	// Name is the subagent's name, and Prompt what it is asked.
	Name, Prompt string
	// Run is the run's id. Defaults to one of its own.
	Run string
	// Isolated leaves the child's questions to its own agent. Defaults to asking
	// whoever the parent asks.
	Isolated bool
	// Ends says that an earlier run, which was parked or interrupted, ends and is not
	// resumed: subagent.start is not asked. Defaults to a new run.
	Ends bool
}

// ChildError is why a child run gave no answer.
type ChildError struct {
	Name string
	// Status is error, aborted or denied.
	Status string
	// Message says why.
	Message string
	// Text is what the child said last.
	Text string

	err error
}

func (e *ChildError) Error() string { return fmt.Sprintf("subagent %q: %s", e.Name, e.Message) }

func (e *ChildError) Unwrap() error { return e.err }

// The ways in which a child run ends.
const (
	ChildSuccess = "success"
	ChildFailed  = "error"
	ChildAborted = "aborted"
	ChildDenied  = "denied"
	ChildParked  = "parked"
)
