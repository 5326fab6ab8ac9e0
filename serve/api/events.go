package api

import (
	"time"

	"github.com/belay-run/belay"
)

// Kinds of events that only streams have.
const (
	EventMissed   = "missed"   // the client was too slow: events that are not stored were dropped
	EventProblem  = "problem"  // the stream ends with an error
	EventSnapshot = "snapshot" // the first event of allEvents
	EventRun      = "run"      // a record of a hook run, in runEvents
)

// Missed is the data of the event "missed".
type Missed struct {
	Missed int `json:"missed"`
}

// FeedEvent is one event of allEvents. It describes the present state, so getting it twice
// does no harm.
type FeedEvent struct {
	Session string          `json:"session"`
	Title   string          `json:"title,omitempty"`
	Turn    string          `json:"turn,omitempty"`
	Agent   string          `json:"agent,omitempty"`
	State   string          `json:"state,omitempty" jsonschema:"running, parked, interrupted, done, or how the last turn ended"`
	Reason  belay.EndReason `json:"reason,omitempty" jsonschema:"why the turn ended"`
	Why     string          `json:"why,omitempty" jsonschema:"what went wrong"`
	By      string          `json:"by,omitempty" jsonschema:"who blocked the turn"`
	Time    time.Time       `json:"time"`
	// Approval is set for approval_requested and approval_decided.
	Approval *belay.Approval `json:"approval,omitempty"`
}

// Snapshot is the first event of allEvents: everything that is open, and the sessions that
// changed since the cursor.
type Snapshot struct {
	Sessions  []FeedEvent      `json:"sessions"`
	Approvals []belay.Approval `json:"approvals" jsonschema:"the pending approvals"`
	Truncated bool             `json:"truncated,omitempty" jsonschema:"more sessions changed than are listed: list the sessions"`
}
