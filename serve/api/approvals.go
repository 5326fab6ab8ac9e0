package api

import (
	"encoding/json"

	"github.com/belay-run/belay"
)

// ListApprovals is the input of listApprovals.
type ListApprovals struct {
	Session string `json:"session,omitempty" in:"query" jsonschema:"only of this session and its subagents"`
	All     bool   `json:"all,omitempty" in:"query" jsonschema:"also those that are decided or have expired"`
	// Undecided leaves out decided approvals, but not expired ones.
	Undecided bool   `json:"undecided,omitempty" in:"query" jsonschema:"with all: not those that are decided"`
	Limit     int    `json:"limit" in:"query" minimum:"1" maximum:"500" default:"100" jsonschema:"the maximum number of approvals"`
	After     string `json:"after,omitempty" in:"query" jsonschema:"with all: the field next of the previous page"`
}

// Approval is an approval with its call.
type Approval struct {
	belay.Approval
	// Input is the input of the call. It is absent if the transcript does not have it.
	Input json.RawMessage `json:"input,omitempty"`
	Agent string          `json:"agent,omitempty"`
	// Wait says what a call waits for that its tool has parked. Nobody can decide it.
	Wait string `json:"wait,omitempty" jsonschema:"what a call waits for that its own tool has parked; nobody can decide it"`
	// Question is the text of a question that the model asks. Answer it with the field answer
	// of the decision.
	Question string  `json:"question,omitempty" jsonschema:"a question of the model: send the field answer to answer it"`
	Advice   *Advice `json:"advice,omitempty" jsonschema:"what the call affects; only when one approval is read"`
}

// Advice helps a person to decide about a call.
type Advice struct {
	// Reach says what the call affects.
	Reach string `json:"reach"`
	// Run says how the call would run, if it is a command.
	Run string `json:"run,omitempty"`
	// Pattern is a scope that covers this call and similar ones. It is empty if there is none,
	// or if the approval is already decided.
	Pattern string `json:"pattern,omitempty"`
}

// ApprovalList is a list of approvals.
type ApprovalList struct {
	Approvals []Approval `json:"approvals"`
	Next      string     `json:"next,omitempty" jsonschema:"with all: pass it as after to get the next page; absent on the last page"`
}

// The values of [DecideApproval.Scope].
const (
	ScopeOnce    = "once"
	ScopeSession = "session"
	ScopePattern = "pattern"
)

// DecideApproval is the input of decideApproval.
type DecideApproval struct {
	Approval string  `json:"approval" in:"path" required:"true" jsonschema:"the id of the approval"`
	Hash     string  `json:"hash" required:"true" jsonschema:"the field hash of the approval: the decision is about exactly this input"`
	Allow    bool    `json:"allow" required:"true" jsonschema:"true to approve, false to deny"`
	Scope    string  `json:"scope" enum:"once,session,pattern" default:"once" jsonschema:"what an approval covers: this call, this tool in this session, or calls that the pattern covers"`
	Pattern  string  `json:"pattern,omitempty" jsonschema:"the pattern for the scope pattern, such as shell(git push *)"`
	Reason   string  `json:"reason,omitempty" jsonschema:"the reason, for the model"`
	Answer   *string `json:"answer,omitempty" jsonschema:"the answer to a question of the model"`
}
