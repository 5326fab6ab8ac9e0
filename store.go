package belay

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/policy"
)

// Store keeps sessions: their messages, the states of their calls and their approvals. A
// [JournalStore] also keeps the records of hook runs. The conformance suite in
// store/storetest checks an implementation.
//
// A commit is plain data. An implementation can write a commit in a transaction of its
// database, join several commits into one, and enqueue jobs in the same transaction.
type Store interface {
	// Open takes a hold on a session and reads the session. It creates the session if it
	// does not exist. Other processes get ErrHeld until Release is called, or until the
	// store decides that the holder is gone. Every hold has a new epoch.
	Open(ctx context.Context, session string) (*Stored, error)
	// Commit stores all of c or nothing, durably. It returns ErrFenced if the epoch is not
	// the epoch of the current hold. It returns ErrConflict if the numbers of the messages
	// do not follow the last stored message, or if a call belongs to a message that is not
	// stored. It returns hook.ErrQueueFull if there is no room for the jobs. After any
	// other error, including a cancelled context, c may be stored or not. Open then reads
	// the stored state.
	//
	// After Commit has returned, the caller may reuse the commit, its slices and its state.
	// It must not change the messages, inputs and results in the commit.
	Commit(ctx context.Context, c *Commit) error
	// Release releases the hold on a session. It does nothing if the epoch is not the
	// current one.
	Release(ctx context.Context, session string, epoch int64) error
	// Read yields the messages of a session whose number is greater than after, oldest
	// first. It yields ErrNotFound if the session does not exist. It needs no hold.
	Read(ctx context.Context, session string, after int64) iter.Seq2[*Message, error]
	// Decide stores the decision about a pending approval. An approval can be decided only
	// once. Decide needs no hold, because a person may decide in another process. If
	// [Approval.Accepts] returns an error, Decide returns this error and the stored
	// approval, which says who decided first. Decide returns ErrNotFound if the approval
	// does not exist.
	Decide(ctx context.Context, d Decision) (Approval, error)
}

// JournalStore is a Store that also keeps the records of hook runs and the jobs that hooks
// schedule. With any other store, the agent's journal and queue are separate from the
// transcript.
type JournalStore interface {
	Store
	// Journal returns the journal for hook runs that are not part of a commit, such as runs
	// that end after their turn.
	Journal() hook.Journal
	// Queue returns the queue for background jobs, or nil if the store has none.
	Queue() hook.Queue
}

// ListStore is a Store that can list sessions and approvals.
type ListStore interface {
	Store
	// Sessions yields the sessions that match, most recently changed first.
	Sessions(ctx context.Context, filter SessionFilter) iter.Seq2[SessionInfo, error]
	// Approvals yields the approvals that match, oldest first.
	Approvals(ctx context.Context, filter ApprovalFilter) iter.Seq2[Approval, error]
}

// SessionFilter selects sessions. A session must match every field that is set.
type SessionFilter struct {
	// ID selects the session with exactly this id.
	ID string
	// Prefix is the beginning of the ids.
	Prefix string
	// Since selects sessions that were changed at this time or later: see
	// [SessionInfo.Changed].
	Since time.Time
	// Open selects sessions with a running or parked turn.
	Open bool
	// Labels selects sessions that have all of these labels with these values. No session
	// has a label with an empty value.
	Labels map[string]string
	// After continues a listing. It is the [SessionInfo.Cursor] of the last session of the
	// previous page. A session that is created or changed between two pages does not appear
	// on later pages. It comes first in a new listing. Defaults to the first page.
	After string
	// Limit is the maximum number of sessions. Defaults to all.
	Limit int
}

// SessionInfo describes a session in a list.
type SessionInfo struct {
	ID string `json:"id"`
	// Created is the time of the first Open or commit. Changed is the time of the last one.
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
	// Last is the number of the last message. It is 0 if there is none.
	Last int64 `json:"last"`
	// Held says that a process has the session open.
	Held bool `json:"held,omitempty"`
	// Title and Labels are set with [Session.Describe].
	Title  string            `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	State  SessionState      `json:"state"`
}

// ApprovalFilter selects approvals. An approval must match every field that is set.
type ApprovalFilter struct {
	// ID selects the approval with exactly this id.
	ID      string
	Session string
	// Pending selects approvals that are not decided.
	Pending bool
	// After is the id of an approval. It selects the approvals that come later in the list.
	// An unknown id selects none.
	After string
	// Limit is the maximum number of approvals. Defaults to all.
	Limit int
}

// Errors of a store. Use errors.Is.
var (
	// ErrNotFound says that a session, an approval or another thing does not exist.
	ErrNotFound = errors.New("belay: not found")
	// ErrHeld says that another process, or another agent, holds the session.
	ErrHeld = errors.New("belay: the session is in use")
	// ErrFenced says that another process has taken over the hold on the session.
	ErrFenced = errors.New("belay: another process has taken over the session")
	// ErrConflict says that a commit does not follow the stored messages.
	ErrConflict = errors.New("belay: the commit does not match the stored session")
)

// Stored is a session as it is stored.
type Stored struct {
	// Epoch is the number of the hold. Every commit must have it.
	Epoch int64
	// Messages are the messages that the model gets: see [Visible]. The caller may append
	// to the slice but must not change its elements.
	Messages []*Message
	// Last is the number of the last message. It is 0 if there is none.
	Last int64
	// Calls are the calls of the last response, sorted by index.
	Calls []CallRecord
	// Approvals are the approvals that were asked after the last response.
	Approvals []Approval
	State     SessionState
}

// Commit is everything that one transaction stores.
type Commit struct {
	Session string
	Epoch   int64
	// Messages follow the last stored message. Their numbers have no gap.
	Messages []*Message
	// Amended replaces the last message of the session and has the same number. It is a
	// response that was stored before hooks checked its calls. Now it has the inputs that
	// the hooks rewrote. Commit returns ErrConflict if Amended has another number than the
	// last stored message. Nil changes no message.
	Amended *Message
	// Calls replace stored calls with the same Message and Index.
	Calls []CallRecord
	// Approvals replace pending approvals with the same ID. If the stored approval is
	// already decided, Commit does not change it and returns no error.
	Approvals []Approval
	// Runs are records of hook runs, for the journal.
	Runs []hook.Run
	// Jobs are enqueued in the same transaction. They do not include the jobs of hooks:
	// Belay adds these to the Queue.
	Jobs []hook.Job
	// State replaces the session's state. Nil keeps the stored state.
	State *SessionState
	// Queued is the id of the queued turn that begins with this commit. The store removes
	// this turn from the queue. Commit returns ErrConflict if the turn is not in the queue.
	// Queued is always empty if the store is not a [TurnStore].
	Queued string
}

// SessionState is the state of a session besides its messages.
type SessionState struct {
	// Turns is the number of turns that have begun. Last says how the last turn ended.
	Turns int       `json:"turns"`
	Last  EndReason `json:"last,omitempty"`
	// Ending says who ended the last turn, or what went wrong. It is nil if the turn ended
	// normally.
	Ending *Ending `json:"ending,omitempty"`
	// Usage is the sum over all turns.
	Usage Usage `json:"usage"`
	// Pending are reminders that have not been sent to the model yet.
	Pending []PendingReminder `json:"pending,omitempty"`
	// Reminders are the session's settings.
	Reminders ReminderSettings `json:"reminders,omitzero"`
	// Agent is the name of the agent that ran the last turn.
	Agent string `json:"agent,omitempty"`
	// Turn is the open turn. It is nil between turns.
	Turn *TurnState `json:"turn,omitempty"`
	// Model is the name of the session's model. It is empty if the session uses the agent's
	// model.
	Model string `json:"model,omitempty"`
	// Grants are the approvals that cover more than one call, oldest first. A fork does not
	// copy them.
	Grants []Grant `json:"grants,omitempty"`
	// ForkedFrom is the message at which the session was forked. It is nil for other
	// sessions.
	ForkedFrom *ForkPoint `json:"forked_from,omitempty"`
}

// Ending says why a turn ended.
type Ending struct {
	// By is the hook that blocked the turn. Why is the beginning of the hook's reason or of
	// the error's text.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
}

// ForkPoint is a message of another session.
type ForkPoint struct {
	Session string `json:"session"`
	Seq     int64  `json:"seq"`
}

// TurnState is everything that is needed to continue a turn, besides the transcript.
type TurnState struct {
	ID    string `json:"id"`
	Step  int    `json:"step"`
	Text  string `json:"text"`
	Usage Usage  `json:"usage"`
	// Parked says that the turn waits for a person or an external event. Otherwise the turn
	// is running, or was running when its process ended.
	Parked bool `json:"parked,omitempty"`
	// Waits are the calls of a parked turn that their tools have parked. They do not
	// include calls that wait for an approval: see [Questions].
	Waits []ParkedCall `json:"waits,omitempty"`
	// Policy, Context, Sections and Bundles are the contributions of hooks at the beginning
	// of the turn.
	Policy   policy.Settings `json:"policy,omitempty"`
	Context  []ContextEntry  `json:"context,omitempty"`
	Sections []PromptSection `json:"sections,omitempty"`
	Bundles  []ToolBundle    `json:"bundles,omitempty"`
	// Model is the name of the model that was chosen for this turn only. It may be empty.
	Model string `json:"model,omitempty"`
	// Appended are messages that tools have added. They wait here until the results of
	// their step are stored.
	Appended []Injection `json:"appended,omitempty"`
	// Unjudged says that the last message is a response whose gates (tool.pre, turn.stop)
	// have not answered yet. When the turn is resumed, Belay fires these phases.
	Unjudged bool `json:"unjudged,omitempty"`
	// Continuations is how many times hooks of turn.stop have made the turn continue.
	Continuations int `json:"continuations,omitempty"`
	// Ended says how the turn ended. It is set when the turn has ended but its end phases
	// have not fired yet.
	Ended EndReason `json:"ended,omitempty"`
	// Answer is the JSON Schema of the final answer. It is empty if the turn needs no
	// structured output.
	Answer json.RawMessage `json:"answer,omitempty"`
	// Missed is how many times Belay has reminded the model of its missing final answer.
	Missed int `json:"missed,omitempty"`
	// Warned says that Belay has warned the model about repeating calls.
	Warned bool `json:"warned,omitempty"`
	// Children is the part of Usage that subagents have used in the open step, by the ids
	// of their turns. After a crash, Belay uses it to add the usage of children that Usage
	// does not include yet.
	Children map[string]Usage `json:"children,omitempty"`
}

// ParkedCall is a call that its tool has parked.
type ParkedCall struct {
	// Call is the call's id.
	Call string `json:"call"`
	Tool string `json:"tool"`
	// Wait is the name that the tool passed to [Park].
	Wait string `json:"wait"`
}

// CallState is the state of a call.
//
//	judged ──▶ parked ──▶ started ──▶ done
//	   └──────────────────────┴────────▶
//
// If a process ends while a call is started, the call runs again after Resume only if its
// tool is idempotent.
type CallState string

// The states of a call.
const (
	CallJudged  CallState = "judged"  // hooks and the floor have answered, and the call may run
	CallParked  CallState = "parked"  // the call waits for an approval, or its tool has parked it
	CallStarted CallState = "started" // the call will run now, or is running
	CallDone    CallState = "done"    // the call has a result
)

// CallRecord is the stored record of a tool call.
type CallRecord struct {
	// Message is the number of the response. Index is the position of the call in it.
	Message int64     `json:"message"`
	Index   int       `json:"index"`
	ID      string    `json:"id"`
	Tool    string    `json:"tool"`
	State   CallState `json:"state"`
	// Input is the final input.
	Input json.RawMessage `json:"input,omitempty"`
	// Wait says what a parked call waits for: it is the id of an approval, or the name that
	// the tool passed to [Park].
	Wait string `json:"wait,omitempty"`
	// Resumes is the name that the tool passed to [Park]. It is kept while the call waits
	// for an approval.
	Resumes string `json:"resumes,omitempty"`
	// Result is set when the call is done. It is also set for a started call whose tool has
	// returned while a slow hook of tool.post is still running.
	Result *Result `json:"result,omitempty"`
}

// Spent returns the usage of all turns, including the open turn.
func (s SessionState) Spent() Usage {
	if s.Turn == nil {
		return s.Usage
	}
	return s.Usage.add(s.Turn.Usage)
}

// blank reports whether the session has never been used.
func (s SessionState) blank() bool { return reflect.ValueOf(s).IsZero() }

// Clone returns a copy. It shares only data that never changes.
func (s SessionState) Clone() SessionState {
	if s.Turn != nil {
		turn := *s.Turn
		s.Turn = &turn
	}
	if s.ForkedFrom != nil {
		from := *s.ForkedFrom
		s.ForkedFrom = &from
	}
	return s
}

// Visible returns the messages that the model gets. After a compaction these are the
// summary, the messages that the compaction keeps, and the messages after the summary.
// Otherwise these are all messages.
func Visible(messages []*Message) []*Message {
	for i, m := range slices.Backward(messages) {
		if !m.IsCompaction {
			continue
		}
		visible := []*Message{m}
		if m.Keep > 0 && m.Keep <= int64(i) {
			for _, kept := range messages[m.Keep-1 : i] {
				if !kept.IsCompaction { // the new summary replaces an earlier one
					visible = append(visible, kept)
				}
			}
		}
		return append(visible, messages[i+1:]...)
	}
	return slices.Clip(messages)
}
