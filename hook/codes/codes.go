// Package codes defines the codes of diagnostics. [All] returns the level of each code, its
// meaning and what to do about it.
package codes

import "slices"

// Code names a diagnostic. Codes are stable, because they are stored, searched for and
// documented.
type Code string

// The codes of the runtime. [All] explains each of them.
const (
	Error             Code = "hook.error"
	Panic             Code = "hook.panic"
	Goexit            Code = "hook.goexit"
	Timeout           Code = "hook.timeout"
	Canceled          Code = "hook.canceled"
	OutputInvalid     Code = "hook.output_invalid"
	ExecutableMissing Code = "hook.executable_missing"
	CapabilityMissing Code = "hook.capability_missing"
	Quarantined       Code = "hook.quarantined"
	Overloaded        Code = "hook.overloaded"
	MatchFailed       Code = "hook.match_failed"
	Skipped           Code = "hook.skipped"
	Released          Code = "hook.released"
	Journal           Code = "journal.unavailable"
	QueueFull         Code = "job.queue_full"
	NoQueue           Code = "job.no_queue"
	JobInvalid        Code = "job.invalid"
	JobUnknown        Code = "job.handler_unknown"
	HandlerGone       Code = "job.handler_gone"
	HandlerChanged    Code = "job.handler_changed"
	InputGone         Code = "job.input_gone"
	PolicyConflict    Code = "policy.conflict"
	ContextTruncated  Code = "prompt_context.truncated"
	ContextDropped    Code = "prompt_context.dropped"
	SectionTruncated  Code = "prompt_section.truncated"
	SectionDropped    Code = "prompt_section.dropped"
	BundleDuplicate   Code = "tool_bundle.duplicate"
	ToolConflict      Code = "tool_bundle.conflict"
	BundleUnrouted    Code = "tool_bundle.unrouted"
	ListingTruncated  Code = "tool_listing.truncated"
	ReminderDropped   Code = "reminder.dropped"
	StopLimit         Code = "turn_stop.limit"
	AnswerCut         Code = "model.answer_cut"
	ModelUnavailable  Code = "model.unavailable"
	SettingIgnored    Code = "model.setting_ignored"
	ApprovalScope     Code = "approval.scope"

	// The codes below are in the problem documents of package serve.

	RequestInvalid     Code = "request.invalid"
	RequestTooLarge    Code = "request.too_large"
	RequestNotFound    Code = "request.not_found"
	RequestHost        Code = "request.host"
	RequestCrossOrigin Code = "request.cross_origin"
	CursorInvalid      Code = "request.cursor"
	RequestMethod      Code = "request.method"
	RequestRate        Code = "request.rate_limited"
	AuthRequired       Code = "auth.required"
	AuthForbidden      Code = "auth.forbidden"
	AuthRate           Code = "auth.rate_limited"
	SessionExists      Code = "session.exists"
	SessionHeld        Code = "session.held"
	TurnNone           Code = "turn.none"
	TurnParked         Code = "turn.parked"
	TurnElsewhere      Code = "turn.elsewhere"
	JobState           Code = "job.state"
	ApprovalDecided    Code = "approval.decided"
	ApprovalHash       Code = "approval.hash"
	ApprovalExpired    Code = "approval.expired"
	ServerDraining     Code = "server.draining"
	ServerFailed       Code = "server.failed"
)

// Level is the severity of a diagnostic.
type Level string

// The levels.
const (
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

// Info explains a code.
type Info struct {
	Code    Code   `json:"code"`
	Level   Level  `json:"level"`
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy"`
}

// table is the source of the levels and of the documentation.
var table = []Info{
	{Error, LevelWarn, "The handler returned an error.", "Read the error in the log (RuntimeOptions.Logger); the record keeps only its class."},
	{Panic, LevelError, "The handler panicked. The runtime caught it.", "Fix the handler; the stack is in the log (RuntimeOptions.Logger)."},
	{Goexit, LevelError, "The handler ended its goroutine with runtime.Goexit.", "Return instead. Do not call testing.T.FailNow from a handler."},
	{Timeout, LevelWarn, "The handler did not answer within its timeout. A late answer is not used.", "Raise the timeout, or make the handler return when its context is cancelled."},
	{Canceled, LevelWarn, "The turn was cancelled while the handler ran or before it started.", "Nothing, if the cancellation was intended."},
	{OutputInvalid, LevelError, "The answer is malformed, or its rewrite could not be applied.", "Correct the answer; `belay hooks schema PHASE` shows its form."},
	{ExecutableMissing, LevelError, "The handler's program was not found or cannot be executed.", "Check the path and the executable bit."},
	{CapabilityMissing, LevelError, "The answer contributes something that the subscription is not allowed to contribute. The answer is dropped, except for a denial in it.", "Declare the capability, or ask the operator for the grant."},
	{Quarantined, LevelError, "Too many abandoned runs of the subscription are still alive, so it is not started.", "Make the handler return when its context is cancelled."},
	{Overloaded, LevelError, "Too many fire_and_record runs are in progress.", "Use background execution, or make the handlers faster."},
	{MatchFailed, LevelWarn, "The match condition failed. At a gate this counts as a match, elsewhere as a failure of the handler.", "Correct the condition."},
	{Skipped, LevelInfo, "The handler was not called, because an earlier one had stopped the phase.", "Nothing."},
	{Released, LevelError, "The turn's snapshot was released before the phase fired. Gates deny.", "Release the snapshot after the last dispatch."},
	{Journal, LevelError, "The journal could not be written. Gates deny until it can be written again.", "Check the store's disk and permissions."},
	{QueueFull, LevelError, "The job queue is full. The job was not stored.", "Start more workers, or raise the queue's limit."},
	{NoQueue, LevelError, "The answer schedules a job, and the runtime has no queue.", "Give the runtime a queue."},
	{JobInvalid, LevelError, "A contributed job is malformed.", "Give the job the name of a handler, and a key and a reference of plain characters."},
	{JobUnknown, LevelError, "A contributed job names a handler that is not registered.", "Register the job handler before the phase fires."},
	{HandlerGone, LevelError, "The work was recorded for a handler that is no longer installed.", "Install the handler again, or discard the job."},
	{HandlerChanged, LevelError, "The work was recorded for another version of its handler or subscription.", "Finish the jobs of the old version before you change the handler, or discard the job."},
	{InputGone, LevelError, "The input that the job refers to could not be found again.", "Keep the transcript until its jobs are done."},
	{PolicyConflict, LevelWarn, "Two subscriptions set one policy key to different values. The earlier value is used.", "Order the two subscriptions with after, or set the key in only one of them."},
	{ContextTruncated, LevelWarn, "Prompt context was cut to its limit.", "Contribute less, or raise the limit."},
	{ContextDropped, LevelWarn, "A prompt context entry was left out, because the limit was reached.", "Contribute less, or raise the limit."},
	{SectionTruncated, LevelWarn, "A prompt section was cut to its budget.", "Contribute less, or raise the budget."},
	{SectionDropped, LevelWarn, "A prompt section was left out, because the limit was reached.", "Contribute less, or raise the limit."},
	{BundleDuplicate, LevelWarn, "Two tool bundles have the same id. The earlier one is used.", "Rename one of them."},
	{ToolConflict, LevelError, "A tool bundle was dropped, because a tool with the same name already exists.", "Rename the tool, or contribute it once."},
	{BundleUnrouted, LevelError, "A tool bundle was dropped, because no extension runs its tools or a declaration is invalid.", "Give the agent the extension that the bundle's route names, and correct its schemas."},
	{ListingTruncated, LevelWarn, "The list of skills or subagents in a tool's description has no room for all descriptions, or not even for all names. The agent reports this once.", "Raise the setting limits.listing_tokens, or Options.Budget of the extension; or remove skills and agents that are not needed."},
	{StopLimit, LevelWarn, "Hooks continued the turn as often as the limit allows. turn.stop is not fired again in this turn.", "Let the hook look at input.continuations and pass, or raise Limits.Continuations."},
	{ModelUnavailable, LevelWarn, "The model of the session or of the turn is unavailable. Another model answers, which the message names.", "Set its key, give its name to Options.Models, or choose another with Session.SetModel."},
	{SettingIgnored, LevelWarn, "The provider could not use a setting in a request, such as a thinking budget in a turn that another model began. The request was sent without it.", "Nothing, if the turn is good enough without the setting. Otherwise repeat the message in a new turn, or change the setting that the message names."},
	{AnswerCut, LevelWarn, "The model's answer reached its maximum length and is cut off.", "Raise Options.MaxTokens, or ask for less at a time."},
	{ApprovalScope, LevelWarn, "The scope of an approval cannot be read, or does not cover the call. The approval counts for this call only.", "Find the reason in the log (Options.Logger), and give the scope again with the next approval."},
	{RequestInvalid, LevelError, "The request is invalid.", "Correct the field that the problem names; /v1/docs lists the fields."},
	{RequestTooLarge, LevelError, "The body of the request is too large.", "Send less, or raise serve.max_body."},
	{RequestNotFound, LevelError, "The thing does not exist, or the token may not see it.", "Check the id and the labels of the token."},
	{RequestHost, LevelError, "The Host header has a name that the server does not have.", "Add the name with --host or serve.hosts."},
	{RequestCrossOrigin, LevelError, "A page of another site sent the request.", "Send it from a program, or from a page of this server."},
	{RequestMethod, LevelError, "The address does not allow this method.", "Use one of the methods in the header Allow; /v1/docs lists the operations."},
	{RequestRate, LevelError, "The token sends too many requests, or has too many open streams and requests that wait for a turn.", "Wait for the seconds in Retry-After, close streams, or raise serve.rate or serve.streams."},
	{CursorInvalid, LevelError, "The cursor or the position is invalid.", "Use the value that an earlier response had."},
	{AuthRequired, LevelError, "The request has no valid token.", "Send the header Authorization: Bearer TOKEN; `belay token create` makes a token."},
	{AuthForbidden, LevelError, "The token lacks the role that the operation needs.", "Use a token with this role; `belay token list` shows the roles."},
	{AuthRate, LevelError, "Too many requests with unknown tokens came from one address.", "Wait, and use a valid token."},
	{SessionExists, LevelError, "A session with this id already exists.", "Use another id, or leave it out."},
	{SessionHeld, LevelError, "Another process or request uses the session.", "Wait until its turn has ended."},
	{TurnNone, LevelError, "The session has no open turn.", "Start a turn."},
	{TurnParked, LevelError, "The turn is parked.", "Decide its approvals, then resume it, or abort it."},
	{TurnElsewhere, LevelError, "A process that is not a worker runs the turn.", "Stop the turn there, for example with Ctrl-C in belay run."},
	{JobState, LevelError, "The state of the job does not allow the request.", "Cancel only jobs that wait. Retry jobs that wait, have failed or were cancelled."},
	{ApprovalDecided, LevelError, "The approval was already decided.", "Read the approval: it says who decided."},
	{ApprovalHash, LevelError, "The decision does not match the input of the call.", "Read the approval again, and send its hash."},
	{ApprovalExpired, LevelError, "The approval has expired.", "Resume the turn: the call is denied, and the model may ask again."},
	{ServerDraining, LevelWarn, "The server is stopping.", "Send the request again; another server or the next start answers."},
	{ServerFailed, LevelError, "The server failed.", "Read the log of the server."},
	{ReminderDropped, LevelWarn, "Reminders were left out of a request, because the limit was reached.", "Send fewer reminders, or raise Limits.ReminderCharacters."},
}

// All returns the table of codes.
func All() []Info { return slices.Clone(table) }

// Level returns the level of the code. An unknown code is a warning.
func (c Code) Level() Level {
	for i := range table {
		if table[i].Code == c {
			return table[i].Level
		}
	}
	return LevelWarn
}
