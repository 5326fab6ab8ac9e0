package belay

import (
	"time"

	"github.com/belay-run/belay/hook"
)

// EventKind says what an event is about.
type EventKind string

// The events.
const (
	EventTurnStart         EventKind = "turn_start"
	EventTextDelta         EventKind = "text_delta"
	EventThinkingDelta     EventKind = "thinking_delta"
	EventToolUse           EventKind = "tool_use"
	EventToolUseResult     EventKind = "tool_use_result"
	EventToolProgress      EventKind = "tool_progress" // how far a call is, in the tool's words
	EventModelResponse     EventKind = "model_response"
	EventTokenConsumption  EventKind = "token_consumption" //nolint:gosec // tokens of a model, no credentials
	EventCompactionStart   EventKind = "compaction_start"
	EventCompactionEnd     EventKind = "compaction_end"
	EventHookInvoked       EventKind = "hook_invoked"
	EventSkillInvoked      EventKind = "skill_invoked"
	EventSubagentInvoked   EventKind = "subagent_invoked"
	EventSubagentCompleted EventKind = "subagent_completed"
	EventApprovalRequested EventKind = "approval_requested"
	EventApprovalDecided   EventKind = "approval_decided"
	EventHookRun           EventKind = "hook_run"
	EventHookOutput        EventKind = "hook_output"    // what a hook shows to people
	EventHookFailed        EventKind = "hook_failed"    // a hook failed: what happened, and what it said
	EventTurnContinued     EventKind = "turn_continued" // turn.stop has it go on
	EventError             EventKind = "error"
	EventTurnEnd           EventKind = "turn_end"
)

// Event tells the outside what happens in a turn. Which fields it has depends
// on its kind.
type Event struct {
	// Seq counts the events of a session from when it was opened. A watcher that sees a
	// gap has missed something, and is told so.
	Seq     uint64    `json:"seq"`
	Kind    EventKind `json:"type"`
	Time    time.Time `json:"time"`
	Session string    `json:"session"`
	Turn    string    `json:"turn"`
	Step    int       `json:"step,omitempty"`
	Agent   string    `json:"agent"`
	// Run, Parent and Depth place an event of a subagent; those of the main
	// agent have none.
	Run    string `json:"run,omitempty"`
	Parent string `json:"parent,omitempty"`
	Depth  int    `json:"depth,omitempty"`

	// Text is a delta, the message of an error, what a hook shows, why a turn goes on, or
	// the name of what was invoked; in an approval_decided what the approver said
	// otherwise, when it was decided elsewhere; in a hook_failed the end of what the hook
	// said about it, at most 2 KiB, which no record holds.
	Text string `json:"text,omitempty"`
	// By is the subscription that a hook_output, a hook_failed or a turn_continued is from.
	By string `json:"by,omitempty"`
	// Diagnostic says, in a hook_failed, at which phase and what happened, as the record
	// of the run does.
	Diagnostic *hook.Diagnostic `json:"diagnostic,omitempty"`
	// Invoked is the directive of a hook_invoked, or the skill of a skill_invoked.
	Invoked *Invoked `json:"invoked,omitempty"`
	// Subagent is that of a subagent_invoked or a subagent_completed. Run is the
	// child's.
	Subagent *SubagentEvent `json:"subagent,omitempty"`
	// Call is the call that is made or answered.
	Call *CallPart `json:"call,omitempty"`
	// Result is what came of it.
	Result *Result `json:"result,omitempty"`
	// Message is the response of a model_response, as stored, or the summary of
	// a compaction_end.
	Message *Message `json:"message,omitempty"`
	// Usage is that of the step in a token_consumption.
	Usage *Usage `json:"usage,omitempty"`
	// Approval is what is asked or decided.
	Approval *Approval `json:"approval,omitempty"`
	// HookRun is the record of a hook whose visibility is user_visible; its
	// subscription is in Text.
	HookRun *hook.Run `json:"hook_run,omitempty"`
	// Retry says, in an error, that the attempt is made again: what was streamed
	// of this step is void.
	Retry bool `json:"retry,omitempty"`
	// Result of the turn, in a turn_end.
	End *Turn `json:"end,omitempty"`
}

// Who invokes a directive or a skill.
const (
	SourceUser  = "user"
	SourceAgent = "agent"
)

// Invoked is a directive or a skill about to do its work.
type Invoked struct {
	Name string `json:"name"`
	// Source is user or agent.
	Source string `json:"source"`
	// Args are what an agent invokes a skill with.
	Args string `json:"args,omitempty"`
}

// SubagentEvent is a child run that begins or is over.
type SubagentEvent struct {
	Name string `json:"name"`
	// Prompt is what it is asked, when it begins.
	Prompt string `json:"prompt,omitempty"`
	// Status is how it ended: success, error, aborted, denied or parked.
	Status string `json:"status,omitempty"`
	// Message says more, where it did not end well.
	Message string `json:"message,omitempty"`
}

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
