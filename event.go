package belay

import (
	"time"

	"github.com/belay-run/belay/hook"
)

// EventKind is the kind of an event.
type EventKind string

// The events.
const (
	EventTurnStart         EventKind = "turn_start"
	EventTextDelta         EventKind = "text_delta"
	EventThinkingDelta     EventKind = "thinking_delta"
	EventToolUse           EventKind = "tool_use"
	EventToolUseResult     EventKind = "tool_use_result"
	EventToolProgress      EventKind = "tool_progress" // progress of a call; the text is from the tool
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
	EventHookOutput        EventKind = "hook_output"    // output of a hook; the user should see it
	EventHookFailed        EventKind = "hook_failed"    // a hook failed; the event has its error output
	EventTurnContinued     EventKind = "turn_continued" // a hook of turn.stop made the turn continue
	EventSteered           EventKind = "turn_steered"   // a message of Session.Steer is part of the turn now
	EventError             EventKind = "error"
	EventTurnEnd           EventKind = "turn_end"
)

// Event reports something that happened in a turn. The kind determines which fields are
// set.
type Event struct {
	// Seq counts the events of a session since the session was opened. It is 0 for an
	// event that Belay makes from the store.
	Seq uint64 `json:"seq,omitempty"`
	// Position says where to continue watching after this event, also in another process:
	// see WatchOptions.After. It is set only for a watcher that was started with a
	// position.
	Position string    `json:"position,omitempty"`
	Kind     EventKind `json:"type"`
	Time     time.Time `json:"time"`
	Session  string    `json:"session"`
	Turn     string    `json:"turn"`
	Step     int       `json:"step,omitempty"`
	Agent    string    `json:"agent"`
	// Run, Parent and Depth identify the run of a subagent. They are zero for the main
	// agent.
	Run    string `json:"run,omitempty"`
	Parent string `json:"parent,omitempty"`
	Depth  int    `json:"depth,omitempty"`

	// Text depends on the kind: a delta, the message of an error, the output of a hook, why
	// a turn continues, or the name of the directive, skill or subagent.
	//
	// For approval_decided, Text is the approver's answer if somebody else had already
	// decided. For hook_failed, it is the end of the hook's error output, at most 2 KiB. No
	// record contains this output.
	Text string `json:"text,omitempty"`
	// By is the name of the subscription. Only hook_output, hook_failed and
	// turn_continued have it.
	By string `json:"by,omitempty"`
	// Diagnostic describes the failure that a hook_failed reports, and names its phase. The
	// record of the hook run has the same diagnostic.
	Diagnostic *hook.Diagnostic `json:"diagnostic,omitempty"`
	// Invoked is the directive of a hook_invoked, or the skill of a skill_invoked.
	Invoked *InvokedEvent `json:"invoked,omitempty"`
	// Subagent describes the child of a subagent_invoked or a subagent_completed. The field
	// Run is then the id of the child's run.
	Subagent *SubagentEvent `json:"subagent,omitempty"`
	// Call is the tool call of a tool_use, a tool_progress or a tool_use_result.
	Call *CallPart `json:"call,omitempty"`
	// Result is the result of the call. Only tool_use_result has it.
	Result *Result `json:"result,omitempty"`
	// Message is the stored response of a model_response, the message of a turn_steered, or
	// the summary of a compaction_end. For a turn_start that comes from the store, it is the user's message.
	Message *Message `json:"message,omitempty"`
	// Usage is the usage of the step. Only token_consumption has it.
	Usage *Usage `json:"usage,omitempty"`
	// Approval is the approval that is requested or decided.
	Approval *Approval `json:"approval,omitempty"`
	// HookRun is the record of a hook run. Only hook_run has it, and only hooks with the
	// visibility user_visible have this event. Text is then the name of the subscription.
	HookRun *hook.Run `json:"hook_run,omitempty"`
	// Retry is set in an error event if Belay sends the request again. Discard the text
	// of this step that you have received.
	Retry bool `json:"retry,omitempty"`
	// End is the result of the turn. Only turn_end has it.
	End *Turn `json:"end,omitempty"`

	stored int64 // the number of the last stored message at the time of the event
	turns  int   // the number of the turn; set only in a turn_end
	// unstored says that the event is about a call of [Controls.RunTool]. Such a call is
	// not stored.
	unstored bool
}

// Sources of an [InvokedEvent].
const (
	SourceUser  = "user"
	SourceAgent = "agent"
)

// InvokedEvent describes a directive or a skill that will run.
type InvokedEvent struct {
	Name string `json:"name"`
	// Source is user or agent.
	Source string `json:"source"`
	// Args are the arguments that an agent passes to a skill.
	Args string `json:"args,omitempty"`
}

// SubagentEvent describes a child run that begins, has ended or has parked.
type SubagentEvent struct {
	Name string `json:"name"`
	// Prompt is the child's task. Only subagent_invoked has it.
	Prompt string `json:"prompt,omitempty"`
	// Status says how the run ended: success, error, aborted, denied or parked.
	Status string `json:"status,omitempty"`
	// Message explains a status other than success.
	Message string `json:"message,omitempty"`
}
