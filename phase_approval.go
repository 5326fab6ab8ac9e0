package belay

import (
	"encoding/json"

	"github.com/belay-run/belay/hook"
)

// ApprovalAsked is the input of approval.request: a call that needs approval.
type ApprovalAsked struct{ input[approvalAsked] }

type approvalAsked struct {
	ID     string  `json:"id" jsonschema:"the approval's id"`
	Call   string  `json:"call" jsonschema:"the call's id"`
	Tool   string  `json:"tool" jsonschema:"the tool's name"`
	Input  rawJSON `json:"input" jsonschema:"the final input"`
	Hash   string  `json:"hash" jsonschema:"identifies the final input and where its paths lead"`
	Reason string  `json:"reason" jsonschema:"why approval is needed"`
	By     string  `json:"by" jsonschema:"who asked"`
	Floor  bool    `json:"floor,omitempty" jsonschema:"whether the floor asked, and not a hook"`
	soFar
}

func (a *approvalAsked) part() string { return a.ID }

// ID is the approval's id.
func (a ApprovalAsked) ID() string { return a.data().ID }

// Call is the call's id.
func (a ApprovalAsked) Call() string { return a.data().Call }

// Tool is the tool's name.
func (a ApprovalAsked) Tool() string { return a.data().Tool }

// Input is the final input.
func (a ApprovalAsked) Input() json.RawMessage { return json.RawMessage(a.data().Input) }

// Decode decodes the input into a struct.
func (a ApprovalAsked) Decode(into any) error { return a.data().Input.decode(into) }

// Hash identifies the final input and the files that its paths lead to: see [Approval]. A
// decision is valid for this hash only.
func (a ApprovalAsked) Hash() string { return a.data().Hash }

// Reason says why approval is needed.
func (a ApprovalAsked) Reason() string { return a.data().Reason }

// By is who asked: a subscription, or a guard, zone or rule of the floor.
func (a ApprovalAsked) By() string { return a.data().By }

// Floor reports whether the floor asked. Otherwise a hook asked.
func (a ApprovalAsked) Floor() bool { return a.data().Floor }

// approvalDecision is the decision of an ApprovalVerdict.
type approvalDecision string

// The decisions at approval.request. The zero value lets a person decide.
const (
	approvalPass  approvalDecision = ""
	approvalAllow approvalDecision = "allow"
	approvalDeny  approvalDecision = "deny"
)

// ApprovalVerdict is the answer at approval.request. With the zero value a person decides.
// Decision is "allow", "deny" or empty; [Allow] and [DenyApproval] set it.
type ApprovalVerdict struct {
	Decision approvalDecision `json:"decision,omitempty" jsonschema:"pass (the default), allow or deny"`
	Reason   string           `json:"reason,omitempty" jsonschema:"why"`
	Aside
}

// Allow approves the call, and no person is asked. The subscription needs the capability
// hook.CanApprove.
func Allow(reason string) ApprovalVerdict {
	return ApprovalVerdict{Decision: approvalAllow, Reason: reason}
}

// DenyApproval denies the call, and no person is asked. The subscription needs the
// capability hook.CanApprove.
func DenyApproval(reason string) ApprovalVerdict {
	return ApprovalVerdict{Decision: approvalDeny, Reason: reason}
}

func (v ApprovalVerdict) decision() approvalDecision {
	return knownDecision(v.Decision, approvalDecisions, approvalDeny)
}

// Answer returns the verdict in the form that the hook runtime uses. Both decisions replace
// a person's decision, so both need the capability approve. A denial wins over an approval.
func (v ApprovalVerdict) Answer() *hook.Answer {
	switch v.decision() {
	case approvalPass:
		return answer(hook.SeverityPass, nil, v.Note, v.Context...)
	case approvalAllow:
		return answer(hook.SeverityAsk, []hook.Part{
			{Kind: "allow", Needs: hook.CanApprove, Content: v.Reason},
		}, v.Note, v.Context...)
	default:
		return checked(v.Decision, approvalDecisions, answer(hook.SeverityDeny, []hook.Part{
			{Kind: "deny", Needs: hook.CanApprove, Content: v.Reason},
		}, v.Note, v.Context...))
	}
}

func mergeApproval(m *hook.Merging, merged, v ApprovalVerdict) ApprovalVerdict {
	if m.Wins {
		merged.Decision, merged.Reason = v.decision(), v.Reason
	}
	merged.Aside = mergeAside(m, merged.Aside, v.Aside)
	return merged
}

// ApprovalOutcome is the input of approval.decided.
type ApprovalOutcome struct{ input[approvalOutcome] }

type approvalOutcome struct {
	ID       string    `json:"id" jsonschema:"the approval's id"`
	Call     string    `json:"call" jsonschema:"the call's id"`
	Tool     string    `json:"tool" jsonschema:"the tool's name"`
	Hash     string    `json:"hash" jsonschema:"identifies the final input and where its paths lead"`
	Decision string    `json:"decision" jsonschema:"allow or deny"`
	Scope    ScopeKind `json:"scope,omitempty" jsonschema:"the scope of the approval: session or pattern; without it, this call only"`
	By       string    `json:"by" jsonschema:"who decided: a person, a hook, belay, expiry or cancel"`
	Reason   string    `json:"reason,omitempty" jsonschema:"why"`
	soFar
}

func (a *approvalOutcome) part() string { return a.ID }

// ID is the approval's id.
func (a ApprovalOutcome) ID() string { return a.data().ID }

// Call is the call's id.
func (a ApprovalOutcome) Call() string { return a.data().Call }

// Tool is the tool's name.
func (a ApprovalOutcome) Tool() string { return a.data().Tool }

// Hash identifies the final input and the files that its paths lead to: see [Approval].
func (a ApprovalOutcome) Hash() string { return a.data().Hash }

// Decision is allow or deny.
func (a ApprovalOutcome) Decision() string { return a.data().Decision }

// Scope is the scope of the approval.
func (a ApprovalOutcome) Scope() ScopeKind { return a.data().Scope }

// By is who decided: a person, a hook, or belay. It is expiry if nobody decided in time,
// and cancel if the turn ended before anybody decided.
func (a ApprovalOutcome) By() string { return a.data().By }

// Reason says why the call was allowed or denied.
func (a ApprovalOutcome) Reason() string { return a.data().Reason }
