package belay

import (
	"fmt"
)

// Child describes the run of a subagent, which a tool call starts.
type Child struct {
	// Name is the subagent's name. Prompt is its task.
	Name, Prompt string
	// Run is the run's id. Defaults to a new id.
	Run string
	// Isolated makes the child use the Approver and the Asker of its own agent. Defaults to
	// false: the child uses the parent's.
	Isolated bool
	// Ends says that an earlier run, which was parked or interrupted, ends now and is not
	// resumed. The phase subagent.start does not fire, because the run has begun before.
	// subagent.stop fires. Defaults to false: a run begins or is resumed, and both phases
	// fire.
	Ends bool
}

// ChildError says why a child run gave no answer.
type ChildError struct {
	Name string
	// Status is error, aborted or denied.
	Status string
	// Message explains the status.
	Message string
	// Text is the last text of the child.
	Text string

	err error
}

func (e *ChildError) Error() string { return fmt.Sprintf("subagent %q: %s", e.Name, e.Message) }

func (e *ChildError) Unwrap() error { return e.err }

// The statuses of a child run. A parked run can be resumed. The other statuses are final.
const (
	ChildSuccess = "success"
	ChildFailed  = "error"
	ChildAborted = "aborted"
	ChildDenied  = "denied"
	ChildParked  = "parked"
)
