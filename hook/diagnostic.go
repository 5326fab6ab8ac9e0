package hook

import (
	"errors"
	"slices"
	"unicode/utf8"
)

// Code names a diagnostic. Codes are stable: they are stored, searched for and
// documented.
type Code string

// The codes of the runtime. [Codes] explains each.
const (
	CodeError             Code = "hook.error"
	CodePanic             Code = "hook.panic"
	CodeGoexit            Code = "hook.goexit"
	CodeTimeout           Code = "hook.timeout"
	CodeCanceled          Code = "hook.canceled"
	CodeOutputInvalid     Code = "hook.output_invalid"
	CodeExecutableMissing Code = "hook.executable_missing"
	CodeCapabilityMissing Code = "hook.capability_missing"
	CodeQuarantined       Code = "hook.quarantined"
	CodeOverloaded        Code = "hook.overloaded"
	CodeMatchFailed       Code = "hook.match_failed"
	CodeSkipped           Code = "hook.skipped"
	CodeReleased          Code = "hook.released"
	CodeJournal           Code = "journal.unavailable"
	CodeQueueFull         Code = "job.queue_full"
	CodeNoQueue           Code = "job.no_queue"
	CodeJobInvalid        Code = "job.invalid"
	CodeJobUnknown        Code = "job.handler_unknown"
	CodeHandlerGone       Code = "job.handler_gone"
	CodeHandlerChanged    Code = "job.handler_changed"
	CodeInputGone         Code = "job.input_gone"
	CodePolicyConflict    Code = "policy.conflict"
	CodeContextTruncated  Code = "prompt_context.truncated"
	CodeContextDropped    Code = "prompt_context.dropped"
	CodeSectionTruncated  Code = "prompt_section.truncated"
	CodeSectionDropped    Code = "prompt_section.dropped"
	CodeBundleDuplicate   Code = "tool_bundle.duplicate"
	CodeToolConflict      Code = "tool_bundle.conflict"
	CodeBundleUnrouted    Code = "tool_bundle.unrouted"
	CodeReminderDropped   Code = "reminder.dropped"
	CodeStopLimit         Code = "turn_stop.limit"
	CodeAnswerCut         Code = "model.answer_cut"
	CodeModelUnavailable  Code = "model.unavailable"
	CodeScope             Code = "approval.scope"
)

// Level says how much a diagnostic matters.
type Level string

// The levels.
const (
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

// CodeInfo explains a code.
type CodeInfo struct {
	Code    Code   `json:"code"`
	Level   Level  `json:"level"`
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy"`
}

// codes is the one table that the constants, the documentation and the levels
// come from.
var codes = []CodeInfo{
	{CodeError, LevelWarn, "The handler returned an error.", "Read the error in the log (RuntimeOptions.Logger); the record keeps only its class."},
	{CodePanic, LevelError, "The handler panicked. The runtime caught it.", "Fix the handler; the stack is in the log (RuntimeOptions.Logger)."},
	{CodeGoexit, LevelError, "The handler ended its goroutine with runtime.Goexit.", "Return instead. Do not call testing.T.FailNow from a handler."},
	{CodeTimeout, LevelWarn, "The handler did not answer within its timeout. A late answer is not used.", "Raise the timeout, or make the handler heed its context."},
	{CodeCanceled, LevelWarn, "The turn was cancelled while the handler ran or before it started.", "Nothing, if the cancel was meant."},
	{CodeOutputInvalid, LevelError, "The answer is malformed, or its rewriting could not be applied.", "Correct the answer; `belay hooks schema PHASE` shows its form."},
	{CodeExecutableMissing, LevelError, "The handler's program was not found or cannot be executed.", "Check the path and the executable bit."},
	{CodeCapabilityMissing, LevelError, "The answer contributes something the subscription may not. The answer is dropped, except for a denial in it.", "Declare the capability, or ask the operator for the grant."},
	{CodeQuarantined, LevelError, "Too many abandoned runs of the subscription are still alive, so it is not started.", "Make the handler return when its context is cancelled."},
	{CodeOverloaded, LevelError, "Too many fire_and_record runs are under way.", "Use background execution, or make the handlers faster."},
	{CodeMatchFailed, LevelWarn, "The match condition failed. At a gate that counts as a match, elsewhere as a failure of the handler.", "Correct the condition."},
	{CodeSkipped, LevelInfo, "The subscription was not asked, because an earlier one had stopped the phase.", "Nothing."},
	{CodeReleased, LevelError, "The turn's snapshot was released before the phase fired. Gates deny.", "Release the snapshot after the last dispatch."},
	{CodeJournal, LevelError, "The journal could not be written. Gates deny until it can.", "Check the store's disk and permissions."},
	{CodeQueueFull, LevelError, "The job queue is full; the work was refused.", "Start more workers, or raise the queue's bound."},
	{CodeNoQueue, LevelError, "The answer schedules a job and the runtime has no queue.", "Give the runtime a queue."},
	{CodeJobInvalid, LevelError, "A contributed job is malformed.", "Give it a handler, a reference and an idempotency key of plain characters."},
	{CodeJobUnknown, LevelError, "A contributed job names a handler nobody registered.", "Register the job handler before the phase fires."},
	{CodeHandlerGone, LevelError, "The work was recorded for a handler that is no longer installed.", "Install the handler again, or discard the job."},
	{CodeHandlerChanged, LevelError, "The work was recorded for another version of its handler or subscription.", "Finish the old version's jobs before changing it, or discard the job."},
	{CodeInputGone, LevelError, "The input that the job refers to could not be found again.", "Keep the transcript for as long as its jobs."},
	{CodePolicyConflict, LevelWarn, "Two subscriptions set one policy key to different values; the earlier stands.", "Order them with after, or let one of them set it."},
	{CodeContextTruncated, LevelWarn, "Prompt context was cut to its limit.", "Contribute less, or raise the limit."},
	{CodeContextDropped, LevelWarn, "A prompt context entry was left out: the limit was reached.", "Contribute less, or raise the limit."},
	{CodeSectionTruncated, LevelWarn, "A prompt section was cut to its budget.", "Contribute less, or raise the budget."},
	{CodeSectionDropped, LevelWarn, "A prompt section was left out: the limit was reached.", "Contribute less, or raise the limit."},
	{CodeBundleDuplicate, LevelWarn, "Two tool bundles have one id; the earlier stands.", "Rename one of them."},
	{CodeToolConflict, LevelError, "A tool bundle was dropped: one of its tools has another owner.", "Rename the tool, or contribute it once."},
	{CodeBundleUnrouted, LevelError, "A tool bundle was dropped: nobody runs its tools, or one of them cannot be declared.", "Give the agent the extension that the bundle's route names, and correct its schemas."},
	{CodeStopLimit, LevelWarn, "Hooks had the turn go on as often as they may: turn.stop is not asked again in it.", "Let the hook look at input.continuations and give in, or raise Limits.Continuations."},
	{CodeModelUnavailable, LevelWarn, "The model that the session was told to use is not to be had; the agent's own answers.", "Set its key, give its name to Options.Models, or choose another with Session.SetModel."},
	{CodeAnswerCut, LevelWarn, "The model's answer reached the limit on its length and is cut off.", "Raise Options.MaxTokens, or ask for less at a time."},
	{CodeScope, LevelWarn, "A yes to a call was to reach further, and cannot: its scope cannot be read, or does not cover that call. It counts for that call alone.", "Read why in the log (Options.Logger), and give the scope again with the next question."},
	{CodeReminderDropped, LevelWarn, "Reminders were left out of a request: the limit was reached.", "Tell the model less, or raise Limits.ReminderCharacters."},
}

// Codes returns the table of codes.
func Codes() []CodeInfo { return slices.Clone(codes) }

// Level returns the level the table gives the code; an unknown code is a
// warning.
func (c Code) Level() Level {
	for i := range codes {
		if codes[i].Code == c {
			return codes[i].Level
		}
	}
	return LevelWarn
}

// Diagnostic is something worth knowing about a dispatch.
type Diagnostic struct {
	Code         Code   `json:"code"`
	Level        Level  `json:"level"`
	Phase        string `json:"phase,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	// Message is safe to store: it quotes nothing of what was said.
	Message string `json:"message,omitempty"`
	// Err is the handler's own error, for the process's log. It is not stored.
	Err error `json:"-"`
}

// String renders "hook.timeout no-prod at tool.pre: message".
func (d Diagnostic) String() string {
	text := string(d.Code)
	if d.Subscription != "" {
		text += " " + d.Subscription
	}
	if d.Phase != "" {
		text += " at " + d.Phase
	}
	if d.Message != "" {
		text += ": " + d.Message
	}
	return text
}

// safeLength is how much of a safe message is stored, in characters.
const safeLength = 512

// SafeError is an error whose message may be stored: the handler vouches that
// it quotes nothing of prompts, tool inputs, outputs or the environment.
type SafeError struct {
	// Code is stored with the message. Defaults to CodeError.
	Code    Code
	Message string
	// Reason is what the handler itself said about its failure, such as the end of a
	// program's standard error. A gate that fails closed gives it as the reason of its
	// denial. It is shown and not stored. Defaults to none.
	Reason string
	// Err is the cause, which is not stored.
	Err error
}

func (e *SafeError) Error() string {
	text := e.Message
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *SafeError) Unwrap() error { return e.Err }

// classify returns the code of a handler's error.
func classify(err error) Code {
	if safe, ok := errors.AsType[*SafeError](err); ok && safe.Code != "" {
		return Code(cut(string(safe.Code), 64))
	}
	return CodeError
}

// cut shortens text to n characters.
func cut(text string, n int) string {
	if len(text) <= n || utf8.RuneCountInString(text) <= n {
		return text
	}
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
