package belay

import (
	"fmt"
)

// Child is the run of a subagent below a tool call.
type Child struct {
	// Name is the subagent's name, and Prompt is its task.
	Name, Prompt string
	// Run is the run's id. Defaults to a new id.
	Run string
	// Isolated lets the child's own agent ask its questions. Defaults to false: the
	// parent's Approver and Asker are used.
	Isolated bool
	// Ends says that an earlier run, which was parked or interrupted, ends and is not
	// resumed. subagent.start does not fire. Defaults to false: a new run.
	Ends bool
}

// ChildError says why a child run gave no answer.
type ChildError struct {
	Name string
	// Status is error, aborted or denied.
	Status string
	// Message says why.
	Message string
	// Text is the child's last text.
	Text string

	err error
}

func (e *ChildError) Error() string { return fmt.Sprintf("subagent %q: %s", e.Name, e.Message) }

func (e *ChildError) Unwrap() error { return e.err }

// The statuses of a child run that has ended.
const (
	ChildSuccess = "success"
	ChildFailed  = "error"
	ChildAborted = "aborted"
	ChildDenied  = "denied"
	ChildParked  = "parked"
)
