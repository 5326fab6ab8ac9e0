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

// Store keeps sessions: their messages, the states of their calls, their approvals and, if
// it is a [JournalStore], the records of hooks. The conformance suite in store/storetest
// checks what a store must do.
//
// A commit is plain data. An implementation can write it in its database's own transaction,
// join several commits into one, and enqueue jobs in the same transaction.
type Store interface {
	// Open takes a hold on a session and reads it. It creates the session if there is none.
	// Until Release, or until the holder counts as gone, no other process can open it:
	// ErrHeld. Every hold has a new epoch.
	Open(ctx context.Context, session string) (*Stored, error)
	// Commit writes all of c or nothing, durably. ErrFenced: the epoch is not that of the
	// current hold. ErrConflict: the messages do not follow the last stored one, or a call
	// belongs to a message that is not stored. hook.ErrQueueFull: there is no room for the
	// jobs. After any other error, including a cancelled context, either all of it or
	// nothing is stored. Open then reads which.
	//
	// After Commit returns, the caller may reuse the commit, its slices and its state.
	// Messages, inputs and results never change in place.
	Commit(ctx context.Context, c *Commit) error
	// Release releases the hold on a session. It does nothing if the epoch is wrong.
	Release(ctx context.Context, session string, epoch int64) error
	// Read yields the messages of a session after the one with the number after, oldest
	// first. ErrNotFound: there is no such session. It needs no hold.
	Read(ctx context.Context, session string, after int64) iter.Seq2[*Message, error]
	// Decide stores the decision about a pending approval, once: see Decision. It needs no
	// hold: a person decides while the session is parked or waits. If [Approval.Accepts]
	// returns an error, Decide returns it with the approval as it is stored, which names
	// the one who decided first. ErrNotFound: there is no such approval.
	Decide(ctx context.Context, d Decision) (Approval, error)
}

// JournalStore is a Store that also keeps the records of hooks and the jobs that they
// schedule. Without it the agent's journal and queue are separate from the transcript.
type JournalStore interface {
	Store
	// Journal returns the journal for runs that are not part of a commit, such as those
	// that end after their turn.
	Journal() hook.Journal
	// Queue returns the queue for background jobs, or nil if the store has none.
	Queue() hook.Queue
}

// ListStore is a Store that can list sessions and approvals. Without it, callers must know
// the ids.
type ListStore interface {
	Store
	// Sessions yields the sessions that match, the most recently changed first.
	Sessions(ctx context.Context, filter SessionFilter) iter.Seq2[SessionInfo, error]
	// Approvals yields the approvals that match, oldest first.
	Approvals(ctx context.Context, filter ApprovalFilter) iter.Seq2[Approval, error]
}

// SessionFilter selects sessions. Every field that is set must match.
type SessionFilter struct {
	// Prefix is the beginning of the ids.
	Prefix string
	// Open selects sessions with a running or parked turn.
	Open bool
	// Labels selects sessions that have all of these labels with these values. No session
	// has a label with an empty value.
	Labels map[string]string
	// After is the [SessionInfo.Cursor] of the last session of the previous page: the
	// listing continues after it. Sessions that are created or changed between two pages
	// come first in a new listing, and do not shift the pages. Defaults to the first page.
	After string
	// Limit is the maximum number. Defaults to all.
	Limit int
}

// SessionInfo describes a session in a list.
type SessionInfo struct {
	ID string `json:"id"`
	// Created and Changed are the times of the first and the last commit, or of Open.
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
	// Last is the number of the last message, 0 if there is none.
	Last int64 `json:"last"`
	// Held says that a process has it open.
	Held bool `json:"held,omitempty"`
	// Title and Labels are set with [Session.Describe].
	Title  string            `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	State  SessionState      `json:"state"`
}

// ApprovalFilter selects approvals. Every field that is set must match.
type ApprovalFilter struct {
	Session string
	// Pending selects approvals that are not decided.
	Pending bool
	// Limit is the maximum number. Defaults to all.
	Limit int
}

// Errors of a store, for errors.Is.
var (
	// ErrNotFound says that there is nothing with that name.
	ErrNotFound = errors.New("belay: not found")
	// ErrHeld says that another process, or another agent, holds the session.
	ErrHeld = errors.New("belay: the session is in use")
	// ErrFenced says that another process has taken over the hold on the session.
	ErrFenced = errors.New("belay: another process has taken over the session")
	// ErrConflict says that a commit does not follow what is stored.
	ErrConflict = errors.New("belay: the commit does not follow what is stored")
)

// Stored is a session as it is stored.
type Stored struct {
	// Epoch is the number of the hold. Every commit carries it.
	Epoch int64
	// Messages are the messages that the model sees, see [Visible]. The caller may append
	// to the slice but not change its elements.
	Messages []*Message
	// Last is the number of the last message, 0 if there is none.
	Last int64
	// Calls are those of the last response, if it has any, by index.
	Calls []CallRecord
	// Approvals are those asked since the last response.
	Approvals []Approval
	State     SessionState
}

// Commit is stored in one transaction.
type Commit struct {
	Session string
	Epoch   int64
	// Messages follow the last stored one, without a gap.
	Messages []*Message
	// Amended replaces the last message of the session, which has the same number. It is a
	// response that was stored before hooks checked its calls, now with the inputs that
	// they rewrote. ErrConflict: it is not the last message stored before this commit. Nil
	// changes no message.
	Amended *Message
	// Calls replace those with the same Message and Index.
	Calls []CallRecord
	// Approvals replace pending ones with the same ID. A decided one stays as it is, and
	// that is no error.
	Approvals []Approval
	// Runs are records of hooks, for the journal.
	Runs []hook.Run
	// Jobs are enqueued in the same transaction. The jobs of hooks come through the Queue,
	// with their own records.
	Jobs []hook.Job
	// State replaces the session's state. Nil keeps it.
	State *SessionState
	// Queued is the id of the queued turn that begins with this commit and leaves the
	// queue. ErrConflict: it is not in the queue. It is for a [TurnStore], and empty for
	// others.
	Queued string
}

// SessionState is the state of a session besides its messages.
type SessionState struct {
	// Turns counts the turns begun, and Last is how the last one ended.
	Turns int       `json:"turns"`
	Last  EndReason `json:"last,omitempty"`
	// Ending says who ended the last turn, or what went wrong. Nil if it ended normally.
	Ending *Ending `json:"ending,omitempty"`
	// Usage is the sum over all turns.
	Usage Usage `json:"usage"`
	// Pending are reminders that no request has included yet.
	Pending []PendingReminder `json:"pending,omitempty"`
	// Reminders are the session's settings.
	Reminders ReminderSettings `json:"reminders,omitzero"`
	// Agent is the name of the agent that ran the last turn.
	Agent string `json:"agent,omitempty"`
	// Turn is the open turn: nil between turns.
	Turn *TurnState `json:"turn,omitempty"`
	// Model is the name of the session's model, if it is not the agent's.
	Model string `json:"model,omitempty"`
	// Grants are the approvals that cover more than one call, oldest first. A fork does not
	// get them.
	Grants []Grant `json:"grants,omitempty"`
	// ForkedFrom is the message at which the session was forked.
	ForkedFrom *ForkPoint `json:"forked_from,omitempty"`
}

// Ending says why a turn ended.
type Ending struct {
	// By is the hook that blocked the turn. Why is the hook's reason, or what went wrong,
	// cut to its first part.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
}

// ForkPoint is a message of another session.
type ForkPoint struct {
	Session string `json:"session"`
	Seq     int64  `json:"seq"`
}

// TurnState is what is needed to continue a turn, besides the transcript.
type TurnState struct {
	ID    string `json:"id"`
	Step  int    `json:"step"`
	Text  string `json:"text"`
	Usage Usage  `json:"usage"`
	// Parked says that the turn waits for someone. Otherwise it is running, or was running
	// when its process ended.
	Parked bool `json:"parked,omitempty"`
	// Waits are the calls of a parked turn that their tools parked. Calls that wait for an
	// approval are not among them: see [Questions].
	Waits []ParkedCall `json:"waits,omitempty"`
	// Policy, Context, Sections and Bundles are the contributions of hooks at the beginning
	// of the turn.
	Policy   policy.Settings `json:"policy,omitempty"`
	Context  []ContextEntry  `json:"context,omitempty"`
	Sections []PromptSection `json:"sections,omitempty"`
	Bundles  []ToolBundle    `json:"bundles,omitempty"`
	// Model is the name of the turn's model, if one was chosen for this turn.
	Model string `json:"model,omitempty"`
	// Appended are messages that tools added. They are kept here until the results of their
	// step are stored.
	Appended []Injection `json:"appended,omitempty"`
	// Unjudged says that the last message is a response whose gates (tool.pre, turn.stop)
	// have not answered yet. They are asked when the turn is resumed.
	Unjudged bool `json:"unjudged,omitempty"`
	// Continuations counts how many times turn.stop made the turn continue.
	Continuations int `json:"continuations,omitempty"`
	// Ended is how the turn ended, while its end phases have not fired.
	Ended EndReason `json:"ended,omitempty"`
	// Answer is the schema of the final answer that the turn must give, if it must give one.
	Answer json.RawMessage `json:"answer,omitempty"`
	// Missed counts how many times the model was asked for its missing final answer.
	Missed int `json:"missed,omitempty"`
	// Warned says that the model was warned about repeating calls.
	Warned bool `json:"warned,omitempty"`
	// Children is the part of Usage that the turns of subagents have used in the open step, by
	// their ids. When a process was killed, what a child used and nobody counted is added.
	Children map[string]Usage `json:"children,omitempty"`
}

// ParkedCall is a call that its tool parked.
type ParkedCall struct {
	// Call is the call's id.
	Call string `json:"call"`
	Tool string `json:"tool"`
	// Wait is the name that the tool gave to [Park].
	Wait string `json:"wait"`
}

// CallState is the state of a call.
//
//	judged ──▶ parked ──▶ started ──▶ done
//	   └──────────────────────┴────────▶
//
// A call that was started when its process ended is not run again unless its
// tool is idempotent.
type CallState string

// The states of a call.
const (
	CallJudged  CallState = "judged"  // hooks and floor have spoken; it may run
	CallParked  CallState = "parked"  // it waits: for an approval, or for what its tool waits for
	CallStarted CallState = "started" // it is about to run, or runs
	CallDone    CallState = "done"    // it has a result
)

// CallRecord is the stored record of a tool call.
type CallRecord struct {
	// Message and Index identify the response and the call in it.
	Message int64     `json:"message"`
	Index   int       `json:"index"`
	ID      string    `json:"id"`
	Tool    string    `json:"tool"`
	State   CallState `json:"state"`
	// Input is the final input.
	Input json.RawMessage `json:"input,omitempty"`
	// Wait is what a parked call waits for: the id of an approval, or a name that its tool
	// gave to [Park].
	Wait string `json:"wait,omitempty"`
	// Resumes is the name that its tool gave to [Park], even while the call waits for an
	// approval.
	Resumes string `json:"resumes,omitempty"`
	// Result is set when the call is done. It is also set for a started call whose tool has
	// returned, while a slow hook at tool.post runs.
	Result *Result `json:"result,omitempty"`
}

// Spent returns the usage of all turns, including the open one.
func (s SessionState) Spent() Usage {
	if s.Turn == nil {
		return s.Usage
	}
	return s.Usage.add(s.Turn.Usage)
}

// blank reports whether the session has never been used.
func (s SessionState) blank() bool { return reflect.ValueOf(s).IsZero() }

// Clone returns a copy that shares nothing that can change.
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

// Visible returns the part of a transcript that the model sees: all of it or, after a
// compaction, the summary, the messages that it keeps, and what came after it.
func Visible(messages []*Message) []*Message {
	for i, m := range slices.Backward(messages) {
		if !m.IsCompaction {
			continue
		}
		visible := []*Message{m}
		if m.Keep > 0 && m.Keep <= int64(i) {
			for _, kept := range messages[m.Keep-1 : i] {
				if !kept.IsCompaction { // the summary replaces it
					visible = append(visible, kept)
				}
			}
		}
		return append(visible, messages[i+1:]...)
	}
	return slices.Clip(messages)
}
