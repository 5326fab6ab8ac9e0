package belay

import "github.com/belay-run/belay/hook"

// SubagentCall is the input of subagent.start: a child run that will begin.
type SubagentCall struct{ input[subagentCall] }

type subagentCall struct {
	Name   string `json:"name" jsonschema:"the subagent's name"`
	Prompt string `json:"prompt" jsonschema:"its task"`
	Run    string `json:"run" jsonschema:"the child run's id"`
	Parent string `json:"parent,omitempty" jsonschema:"the parent run's id"`
	Depth  int    `json:"depth" jsonschema:"the depth of the child; a child of the main agent has depth 1"`
	soFar
}

func (s *subagentCall) part() string { return s.Run }

// Name is the subagent's name.
func (s SubagentCall) Name() string { return s.data().Name }

// Prompt is the child's task.
func (s SubagentCall) Prompt() string { return s.data().Prompt }

// Run is the child run's id.
func (s SubagentCall) Run() string { return s.data().Run }

// Parent is the parent run's id. It is empty if the parent is the main agent.
func (s SubagentCall) Parent() string { return s.data().Parent }

// Depth is the depth of the child. A child of the main agent has depth 1.
func (s SubagentCall) Depth() int { return s.data().Depth }

// subagentDecision is the decision of a SubagentVerdict.
type subagentDecision string

// The decisions at subagent.start. The zero value lets the run begin.
const (
	subagentPass subagentDecision = ""
	subagentDeny subagentDecision = "deny"
)

// SubagentVerdict is the answer at subagent.start. The zero value lets the run begin.
// Decision is "deny" or empty; [DenySubagent] sets it.
type SubagentVerdict struct {
	Decision subagentDecision `json:"decision,omitempty" jsonschema:"pass (the default) or deny"`
	Reason   string           `json:"reason,omitempty" jsonschema:"why"`
	Aside
}

// DenySubagent refuses a child run.
func DenySubagent(reason string) SubagentVerdict {
	return SubagentVerdict{Decision: subagentDeny, Reason: reason}
}

func (v SubagentVerdict) decision() subagentDecision {
	return knownDecision(v.Decision, subagentDecisions, subagentDeny)
}

// Answer returns the verdict in the form that the hook runtime uses.
func (v SubagentVerdict) Answer() *hook.Answer {
	if v.decision() == subagentPass {
		return answer(hook.SeverityPass, nil, v.Note, v.Context...)
	}
	return checked(v.Decision, subagentDecisions, answer(hook.SeverityDeny, []hook.Part{
		{Kind: "deny", Needs: hook.CanBlock, Content: v.Reason},
	}, v.Note, v.Context...))
}

func mergeSubagent(m *hook.Merging, merged, v SubagentVerdict) SubagentVerdict {
	if m.Wins {
		merged.Decision, merged.Reason = v.decision(), v.Reason
	}
	merged.Aside = mergeAside(m, merged.Aside, v.Aside)
	return merged
}

// SubagentReturn is the input of subagent.stop: a child run that has ended or parked.
type SubagentReturn struct{ input[subagentReturn] }

type subagentReturn struct {
	Name    string `json:"name" jsonschema:"the subagent's name"`
	Run     string `json:"run" jsonschema:"the child run's id"`
	Parent  string `json:"parent,omitempty" jsonschema:"the parent run's id"`
	Depth   int    `json:"depth" jsonschema:"the depth of the child"`
	Status  string `json:"status" jsonschema:"success, error, aborted, denied or parked"`
	Message string `json:"message,omitempty" jsonschema:"what went wrong"`
	soFar
}

func (s *subagentReturn) part() string { return s.Run }

// Name is the subagent's name.
func (s SubagentReturn) Name() string { return s.data().Name }

// Run is the child run's id.
func (s SubagentReturn) Run() string { return s.data().Run }

// Parent is the parent run's id.
func (s SubagentReturn) Parent() string { return s.data().Parent }

// Depth is the depth of the child.
func (s SubagentReturn) Depth() int { return s.data().Depth }

// Status is success, error, aborted, denied or parked.
func (s SubagentReturn) Status() string { return s.data().Status }

// Message says what went wrong. It is empty for a success.
func (s SubagentReturn) Message() string { return s.data().Message }
