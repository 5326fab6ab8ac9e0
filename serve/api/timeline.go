package api

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
)

// ListTurns is the input of listTurns.
type ListTurns struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	Before  int64  `json:"before,omitempty" in:"query" minimum:"0" jsonschema:"the field next of the previous page"`
	Limit   int    `json:"limit" in:"query" minimum:"1" maximum:"200" default:"20" jsonschema:"the maximum number of turns"`
}

// Turn is one turn of a session.
type Turn struct {
	ID string `json:"id"`
	// State is running, parked, interrupted, done, or how the turn ended. It is ended if the
	// store does not say how: it keeps the reason of the last turn only.
	State string    `json:"state" jsonschema:"running, parked, interrupted, done, or how the turn ended; ended if that is not stored"`
	Begin time.Time `json:"begin"`
	// End is the time of the last message. It is zero while the turn is open.
	End time.Time `json:"end,omitzero" jsonschema:"absent while the turn is open"`
	// Text is the beginning of the user's message.
	Text string `json:"text" jsonschema:"the beginning of the user's message"`
	// First and Last are the numbers of its first and its last message.
	First int64 `json:"first" jsonschema:"the number of its first message"`
	Last  int64 `json:"last" jsonschema:"the number of its last message so far"`
	Steps int   `json:"steps"`
	// Calls and Failed count the tool calls, and those with an error.
	Calls  int         `json:"calls"`
	Failed int         `json:"failed,omitempty" jsonschema:"how many calls failed or were denied"`
	Usage  belay.Usage `json:"usage" jsonschema:"of the responses; without subagents"`
	// Trace is the id of the trace of the turn, if the agent is traced. It is empty for the
	// turns of subagents, which belong to the trace of the turn that called them.
	Trace string `json:"trace,omitempty" jsonschema:"the id of the turn's trace in OpenTelemetry, if the agent is traced; absent for turns of subagents"`
}

// TurnList is a page of turns, the newest first.
type TurnList struct {
	Turns []Turn `json:"turns"`
	Next  int64  `json:"next,omitempty" jsonschema:"pass it as before to get earlier turns; absent on the last page"`
}

// ReadTimeline is the input of readTimeline.
type ReadTimeline struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	Turn    string `json:"turn" in:"path" required:"true" jsonschema:"the id of the turn"`
	At      int64  `json:"at,omitempty" in:"query" minimum:"0" jsonschema:"the number of a message of the turn: finds an old turn of a long session faster"`
}

// The kinds of spans.
const (
	SpanModel    = "model"    // a request to the model
	SpanTool     = "tool"     // a tool call
	SpanHook     = "hook"     // a hook run
	SpanApproval = "approval" // the time in which a call waited for a person
	SpanSubagent = "subagent" // the session of a subagent
)

// Span is one bar of a timeline.
type Span struct {
	Kind string `json:"kind" jsonschema:"model, tool, hook, approval or subagent"`
	// Name is the model, the tool, the hook, the tool that waits, or the agent.
	Name  string    `json:"name"`
	Begin time.Time `json:"begin"`
	// End is zero while it runs or waits.
	End  time.Time `json:"end,omitzero" jsonschema:"absent while it runs or waits"`
	Step int       `json:"step,omitempty"`
	// Estimated says that Begin or End is not stored, and is taken from the stored times
	// around it.
	Estimated bool `json:"estimated,omitempty" jsonschema:"begin or end is taken from the stored times around it"`
	// Outcome is ok, failed, denied, asked, running or waiting.
	Outcome string     `json:"outcome" jsonschema:"ok, failed, denied, asked, running or waiting"`
	Code    codes.Code `json:"code,omitempty" jsonschema:"why a hook failed"`
	Class   string     `json:"class,omitempty" jsonschema:"why a tool call failed"`

	// Seq is the number of the message: the response, or the results of a call.
	Seq      int64        `json:"seq,omitempty" jsonschema:"the number of the response, or of the message with the result"`
	Attempts int          `json:"attempts,omitempty" jsonschema:"how many requests a response needed; only if hooks run at model.pre"`
	Usage    *belay.Usage `json:"usage,omitempty" jsonschema:"of a response"`
	Call     string       `json:"call,omitempty" jsonschema:"the id of the call"`

	Phase       string   `json:"phase,omitempty" jsonschema:"of a hook run"`
	Dispatch    string   `json:"dispatch,omitempty" jsonschema:"runs of one dispatch belong together"`
	Run         string   `json:"run,omitempty" jsonschema:"the id of the hook run, to read or explain it"`
	State       string   `json:"state,omitempty" jsonschema:"the state of the hook run"`
	Contributed []string `json:"contributed,omitempty" jsonschema:"what the hook contributed"`
	Shadow      bool     `json:"shadow,omitempty" jsonschema:"the answer of the hook did not count"`

	Approval string `json:"approval,omitempty" jsonschema:"the id of the approval"`
	By       string `json:"by,omitempty" jsonschema:"who asked, or who decided"`
	Session  string `json:"session,omitempty" jsonschema:"the session of a subagent"`
}

// Timeline has everything that happened in a turn, on one axis of time.
type Timeline struct {
	Turn  Turn   `json:"turn"`
	Spans []Span `json:"spans" jsonschema:"sorted by begin"`
	// Truncated says that the turn has more hook runs than the response.
	Truncated bool `json:"truncated,omitempty" jsonschema:"there are more hook runs: list the runs of the turn"`
}
