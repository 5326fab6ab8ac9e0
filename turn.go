package belay

import (
	"encoding/json"

	"github.com/belay-run/belay/hook"
)

// Turn is the result of a turn that has ended or is parked.
type Turn struct {
	ID     string    `json:"id"`
	Reason EndReason `json:"reason"`
	// Text is the model's last text.
	Text string `json:"text"`
	// Answer is the final answer as JSON. Only a turn that [Answer] began has it.
	Answer json.RawMessage `json:"answer,omitempty"`
	Steps  int             `json:"steps"`
	Usage  Usage           `json:"usage"`
	// By and Why say who ended the turn and why, or what went wrong.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// Waits lists everything that a parked turn waits for, with the inputs of the calls:
	// approvals, and calls that their tools have parked.
	Waits []Question `json:"waits,omitempty"`
	// Diagnostics report failures of hooks, and texts that were cut or left out.
	Diagnostics []hook.Diagnostic `json:"diagnostics,omitempty"`

	err error
}
