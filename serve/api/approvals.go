package api

import (
	"encoding/json"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
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
	Question string `json:"question,omitempty" jsonschema:"a question of the model: send the field answer to answer it"`
	// Title is the title of the session, or else the beginning of its first message.
	Title string `json:"title,omitempty" jsonschema:"the title of the session, or else the beginning of its first message"`
	// Message is what the user asked for in the turn, cut to 500 characters.
	Message string `json:"message,omitempty" jsonschema:"what the user asked for in the turn, cut to 500 characters"`
	// Expired says that the time to decide is over.
	Expired bool    `json:"expired,omitempty" jsonschema:"the time to decide is over"`
	Advice  *Advice `json:"advice,omitempty" jsonschema:"what the call affects; only when one approval is read"`
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
	// Why is one sentence: who asks for approval, and why.
	Why string `json:"why" jsonschema:"one sentence: who asks for approval, and why"`
	// Cause is the reason in a few words, for a screen that already shows the call.
	Cause string `json:"cause,omitempty" jsonschema:"why approval is needed, in a few words"`
	// Findings are the things that the call does, as far as the floor can determine.
	Findings []Finding `json:"findings,omitempty" jsonschema:"the things that the call does, as far as the floor can determine"`
	// Preview is what a write or an edit would change now.
	Preview *Preview `json:"preview,omitempty" jsonschema:"what a write or an edit would change in the file as it is now"`
	// Hooks are the hooks that were asked about the call, from the journal.
	Hooks []HookAnswer `json:"hooks,omitempty" jsonschema:"the hooks at tool.pre that were asked about the call"`
	// SharedHooks says that the step has several calls, and that the records do not say which
	// call each hook was asked about. Hooks then has the hooks of all of them.
	SharedHooks bool `json:"shared_hooks,omitempty" jsonschema:"the step has several calls, and hooks has the answers about all of them"`
}

// Finding is one thing that a call does.
type Finding struct {
	Kind string `json:"kind" jsonschema:"tool, command, read, write, url or unknown"`
	// Subject is the command, the path or the URL.
	Subject string `json:"subject"`
	Zone    int    `json:"zone" jsonschema:"how far it reaches, from 0 (safe) to 6 (never)"`
	// Text is the finding in one short sentence.
	Text string `json:"text" jsonschema:"the finding in one short sentence"`
	// Line is the line of a command, counted from 1. It is 0 for other calls.
	Line int `json:"line,omitempty" jsonschema:"the line of the command, counted from 1"`
	// Protection is the id of the protection that applies, or empty.
	Protection string `json:"protection,omitempty"`
	// Asks says that the approval is needed because of this finding.
	Asks bool `json:"asks,omitempty" jsonschema:"the approval is needed because of this finding"`
}

// Preview is what a call would change in a file.
type Preview struct {
	Path string `json:"path"`
	// Action is created, overwritten, edited or unchanged. It is empty if there is a Problem.
	Action string `json:"action,omitempty" jsonschema:"created, overwritten, edited or unchanged"`
	// Diff is in the unified format. Cut means that it is incomplete.
	Diff    string `json:"diff,omitempty" jsonschema:"a unified diff"`
	Cut     bool   `json:"cut,omitempty" jsonschema:"the diff is incomplete"`
	Added   int    `json:"added" jsonschema:"the number of added lines"`
	Removed int    `json:"removed" jsonschema:"the number of removed lines"`
	// Problem says why the call would fail now.
	Problem string `json:"problem,omitempty" jsonschema:"why the call would fail now"`
}

// HookAnswer is what a hook answered about a call.
type HookAnswer struct {
	Hook  string     `json:"hook"`
	Run   string     `json:"run,omitempty" jsonschema:"the id of the run, to read or explain it"`
	State hook.State `json:"state"`
	// Contributed are the kinds of its contributions, such as verdict or reminder.
	Contributed []string `json:"contributed,omitempty" jsonschema:"the kinds of its contributions"`
	// Verdict is ask, deny or halt. It is empty if the hook let the call pass.
	Verdict string       `json:"verdict,omitempty" jsonschema:"ask, deny or halt; absent if the hook let the call pass"`
	Code    codes.Code   `json:"code,omitempty" jsonschema:"why the run failed"`
	Latency hook.Latency `json:"latency,omitempty"`
	Shadow  bool         `json:"shadow,omitempty" jsonschema:"its answer did not count"`
	Asked   bool         `json:"asked,omitempty" jsonschema:"this hook asked for the approval"`
}

// ApprovalList is a list of approvals.
type ApprovalList struct {
	Approvals []Approval `json:"approvals"`
	Next      string     `json:"next,omitempty" jsonschema:"with all: pass it as after to get the next page; absent on the last page"`
}

// ApprovalCount is the result of countApprovals.
type ApprovalCount struct {
	Waiting int `json:"waiting" jsonschema:"how many approvals and questions wait"`
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

// Grant is an approval that covers more than one call, with its session. Its id is the id of the
// approval.
type Grant struct {
	Session string `json:"session"`
	belay.Grant
}

// ListGrants is the input of listGrants.
type ListGrants struct {
	Session string `json:"session,omitempty" in:"query" jsonschema:"only grants of this session"`
	Limit   int    `json:"limit" in:"query" minimum:"1" maximum:"500" default:"50" jsonschema:"the maximum number of grants; the last session of a page is complete, so there can be a few more"`
	After   string `json:"after,omitempty" in:"query" jsonschema:"the field next of the previous page"`
}

// GrantList is a page of grants.
type GrantList struct {
	Grants []Grant `json:"grants"`
	Next   string  `json:"next,omitempty" jsonschema:"pass it as after to get the next page; empty on the last page. A page can be short, or empty, and have a next one: a request looks at about 2,000 sessions"`
}

// RevokeGrant is the input of revokeGrant.
type RevokeGrant struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	Grant   string `json:"grant" in:"path" required:"true" maxLength:"128" jsonschema:"the id of the grant, which is the id of its approval"`
}
