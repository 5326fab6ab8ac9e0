package belay

import (
	"github.com/belay-run/belay/hook"
)

// Turn is a turn that is over, or parked.
type Turn struct {
	ID     string    `json:"id"`
	Reason EndReason `json:"reason"`
	// Text is the model's last text.
	Text  string `json:"text"`
	Steps int    `json:"steps"`
	Usage Usage  `json:"usage"`
	// By and Why say who ended a turn that is blocked, or what went wrong.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// Waits are the approvals that a parked turn waits for, each with the input it
	// is about.
	Waits []Question `json:"waits,omitempty"`
	// Diagnostics tell what hooks got wrong and what was cut.
	Diagnostics []hook.Diagnostic `json:"diagnostics,omitempty"`

	err error
}
