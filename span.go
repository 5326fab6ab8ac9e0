package belay

import (
	"context"
	"time"

	"github.com/belay-run/belay/hook"
)

// SpanExtension follows turns and jobs as spans: periods with a beginning and an end, one
// inside another. Package telemetry has one, which makes traces and metrics of them.
type SpanExtension interface {
	Extension
	// Follow is called when a turn or a job begins, or continues in this process. What runs
	// in it gets the returned context. The returned follower gets the spans inside, and the
	// end of root. Return nil to get none of them.
	Follow(ctx context.Context, root *Span) (context.Context, SpanFollower)
}

// SpanFollower gets the spans of a turn or of a job. The calls of a response run in parallel,
// so several goroutines may call it at once. The turn waits while it runs.
type SpanFollower interface {
	// BeginSpan is called when a span begins. What runs in the span gets the returned
	// context, which must be derived from ctx.
	BeginSpan(ctx context.Context, span *Span) context.Context
	// EndSpan is called once when the span is over, with the context that BeginSpan or
	// Follow has returned. It is not called if the process ends before.
	EndSpan(ctx context.Context, span *Span)
}

// RunSkipper is an optional interface of a SpanFollower that does not need a span for every hook
// run. A turn may have dozens of runs, and a span for each costs more than most of them.
type RunSkipper interface {
	SpanFollower
	// SkipsRuns returns how long a hook run may take of which the follower needs no span, if
	// the run has completed without an answer. Zero means that it needs the spans of all runs.
	SkipsRuns() time.Duration
}

// SpanKind is the kind of a span.
type SpanKind string

// The spans.
const (
	SpanTurn     SpanKind = "turn" // also the turn of a subagent, inside the span of a call
	SpanStep     SpanKind = "step"
	SpanModel    SpanKind = "model"    // one request to a model; each attempt has its own
	SpanTool     SpanKind = "tool"     // a tool call
	SpanApproval SpanKind = "approval" // from the question to the decision
	SpanCommit   SpanKind = "commit"   // one commit to the store
	SpanHook     SpanKind = "hook"     // one hook run
	SpanJob      SpanKind = "job"      // one attempt of a background job
)

// Span is a part of the work of an agent. The kind determines which fields are set. Do not
// change a span, and do not keep one.
type Span struct {
	Kind SpanKind
	// Scope is the place of the span. The step is 0 for a turn.
	Scope hook.Scope
	// Began and Ended are the times of the span. A span that is reported afterwards, or that
	// began in another process, began before BeginSpan is called. Ended is zero while the
	// span lasts.
	Began, Ended time.Time
	// Resumed says that the turn, the step or the call began earlier, usually in another
	// process. Its earlier part has no end.
	Resumed bool
	// Suspended is set at the end, if a turn, a step or a call is not over: it waits for
	// something, or another process continues it. The end comes with a later span that has
	// Resumed.
	Suspended bool

	// Run, Parent and Depth identify the run of a subagent, for the turn of one: see
	// [Event].
	Run, Parent string
	Depth       int
	// Name is the name of the agent, the model or the tool. It is empty for a call of a tool
	// that the agent does not have: the model made the name up.
	Name string
	// Attempt counts the requests of a step to a model, from 1. It is 0 for a request of a
	// tool or of a compaction.
	Attempt int
	// Request is what the model gets.
	Request *Request
	// Call is the tool call, with its input.
	Call *Invocation
	// Approval is the decided approval of a SpanApproval.
	Approval *Approval
	// HookRun is the record of a SpanHook.
	HookRun *hook.Run
	// Job is the job of a SpanJob.
	Job *hook.Job
	// Prompt is the text of the user of a turn. It may be set only at the end.
	Prompt string

	// Turn, Response and Result are set at the end of a turn, a request and a call. They may
	// be nil, for example if the request failed.
	Turn     *Turn
	Response *Response
	Result   *Result
	// Err is the error with which the span ended.
	Err error
}
