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
)

// Store keeps sessions: their messages, the states of their calls, approvals,
// and, if it is a [JournalStore], the records of hooks. The conformance suite in
// store/storetest says exactly what an implementation must do.
//
// A commit is data, so that an implementation can write it with whatever
// transaction its database has, join several into one, and enqueue jobs in the
// same transaction.
type Store interface {
	// Open takes hold of a session, creating it if there is none, and reads it.
	// Until Release, or until the holder counts as gone, no other can open it:
	// ErrHeld. Every hold has an epoch that none before it had.
	Open(ctx context.Context, session string) (*Stored, error)
	// Commit writes all of c or nothing, durably. ErrFenced: the epoch is not
	// that of the session's hold. ErrConflict: the messages do not follow on the
	// last one, or a call is of a message that is not stored.
	// hook.ErrQueueFull: the jobs do not fit. After any other error, a cancelled
	// context's too, all of it is stored or nothing, and Open tells which.
	//
	// The commit is the caller's again when Commit returns, with its slices and
	// its state; messages, inputs and results are never changed in place.
	Commit(ctx context.Context, c *Commit) error
	// Release lets go of a session. The wrong epoch is harmless.
	Release(ctx context.Context, session string, epoch int64) error
	// Read yields the messages of a session behind the one numbered after,
	// oldest first. ErrNotFound: there is no such session. It needs no hold.
	Read(ctx context.Context, session string, after int64) iter.Seq2[*Message, error]
	// Decide stores the decision of a pending approval, once: see Decision. It
	// needs no hold: a person decides while the session is parked or waits. What
	// [Approval.Accepts] says against it is the error, and the approval is returned
	// as it stands: so a second one is told who was first. ErrNotFound: there is no
	// such approval.
	Decide(ctx context.Context, d Decision) (Approval, error)
}

// JournalStore is a Store that keeps the records of hooks too, and the jobs they
// schedule. Without it the agent's journal and queue are apart from the
// transcript.
type JournalStore interface {
	Store
	// Journal takes the runs that no commit carries, such as those that end after
	// their turn.
	Journal() hook.Journal
	// Queue takes background work; nil if the store has none.
	Queue() hook.Queue
}

// ListStore is a Store that can be looked through, for listings and inboxes.
// Without it, one must know the ids.
type ListStore interface {
	Store
	// Sessions yields the sessions that match, the last changed first.
	Sessions(ctx context.Context, filter SessionFilter) iter.Seq2[SessionInfo, error]
	// Approvals yields the approvals that match, the oldest first.
	Approvals(ctx context.Context, filter ApprovalFilter) iter.Seq2[Approval, error]
}

// SessionFilter selects sessions. Every field that is set must match.
type SessionFilter struct {
	// Prefix is how their ids begin.
	Prefix string
	// Open selects those with a turn under way, parked ones too.
	Open bool
	// Limit stops after so many. Defaults to all.
	Limit int
}

// SessionInfo is what a listing tells of a session.
type SessionInfo struct {
	ID string `json:"id"`
	// Created and Changed are when it was first and last committed to, or opened.
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
	// Last is the number of the last message, 0 if there is none.
	Last int64 `json:"last"`
	// Held says that a process has it open.
	Held  bool         `json:"held,omitempty"`
	State SessionState `json:"state"`
}

// ApprovalFilter selects approvals. Every field that is set must match.
type ApprovalFilter struct {
	Session string
	// Pending selects those that nobody has decided.
	Pending bool
	// Limit stops after so many. Defaults to all.
	Limit int
}

// Questions about a store that callers ask with errors.Is.
var (
	// ErrNotFound says that there is nothing of that name.
	ErrNotFound = errors.New("belay: not found")
	// ErrHeld says that another process, or another agent, holds the session.
	ErrHeld = errors.New("belay: the session is held elsewhere")
	// ErrFenced says that the hold on the session was lost to another.
	ErrFenced = errors.New("belay: the hold on the session was lost")
	// ErrConflict says that a commit does not follow on what is stored.
	ErrConflict = errors.New("belay: the commit does not follow on what is stored")
)

// Stored is a session as it is kept.
type Stored struct {
	// Epoch is the holder's number, which every commit carries.
	Epoch int64
	// Messages are what the model sees, as [Visible] says. They may be appended
	// to and not written to.
	Messages []*Message
	// Last is the number of the last message, 0 if there is none.
	Last int64
	// Calls are those of the last response, if it has any, by index.
	Calls []Call
	// Approvals are those asked since the last response.
	Approvals []Approval
	State     SessionState
}

// Commit is what is stored in one transaction.
type Commit struct {
	Session string
	Epoch   int64
	// Messages follow on the last one stored, without a gap.
	Messages []*Message
	// Amended replaces the last message of the session, which has the same number. It is
	// a response that was stored before hooks judged its calls, and that now says which
	// inputs they rewrote. ErrConflict: it is not the last message stored before this
	// commit. Nil leaves all messages as they are.
	Amended *Message
	// Calls replace those of the same Message and Index.
	Calls []Call
	// Approvals replace those of the same ID that are pending. One that is
	// decided stays as it is, and the commit stands.
	Approvals []Approval
	// Runs are records of hooks, for the journal.
	Runs []hook.Run
	// Jobs are enqueued in the same transaction. Those of hooks come by way of
	// the Queue, together with their own records.
	Jobs []hook.Job
	// State replaces the session's. Nil leaves it.
	State *SessionState
	// Queued is the id of the queued turn that this commit takes up: it waits no
	// longer. ErrConflict: it does not wait. It is for a [TurnStore] and empty for
	// others.
	Queued string
}

// SessionState is what a session remembers besides its messages.
type SessionState struct {
	// Turns counts the turns begun, and Last is how the last one ended.
	Turns int       `json:"turns"`
	Last  EndReason `json:"last,omitempty"`
	// Ending says who ended the last turn, or what went wrong, if anything did.
	Ending *Ending `json:"ending,omitempty"`
	// Usage is the sum over all turns.
	Usage Usage `json:"usage"`
	// Pending are reminders that no request has carried yet.
	Pending []PendingReminder `json:"pending,omitempty"`
	// Reminders are the session's settings.
	Reminders ReminderSettings `json:"reminders,omitzero"`
	// Agent is the name of the agent that took the last turn.
	Agent string `json:"agent,omitempty"`
	// Turn is the turn under way: nil between turns.
	Turn *TurnState `json:"turn,omitempty"`
	// Model is the name of the model that answers, if it is not the agent's.
	Model string `json:"model,omitempty"`
	// Grants are what people allowed for more than one call, the oldest first. A
	// fork has none of them: they were given to this session.
	Grants []Grant `json:"grants,omitempty"`
	// ForkedFrom is where the session branched off.
	ForkedFrom *ForkPoint `json:"forked_from,omitempty"`
}

// Ending says why a turn ended as it did.
type Ending struct {
	// By is the hook that ended a turn which is blocked, and Why what it said, or what
	// went wrong: the first part of it, if that is long.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
}

// ForkPoint is a message of another session.
type ForkPoint struct {
	Session string `json:"session"`
	Seq     int64  `json:"seq"`
}

// TurnState is what is needed to go on with a turn, besides the transcript.
type TurnState struct {
	ID    string `json:"id"`
	Step  int    `json:"step"`
	Text  string `json:"text"`
	Usage Usage  `json:"usage"`
	// Parked says that it waits for someone; otherwise it is being taken, or was
	// when its process ended.
	Parked bool `json:"parked,omitempty"`
	// Policy, Context, Sections and Bundles are what hooks contributed when the
	// turn began.
	Policy   PolicySettings  `json:"policy,omitempty"`
	Context  []ContextEntry  `json:"context,omitempty"`
	Sections []PromptSection `json:"sections,omitempty"`
	Bundles  []ToolBundle    `json:"bundles,omitempty"`
	// Model is the name of the model that answers, if one was chosen for this turn.
	Model string `json:"model,omitempty"`
	// Appended are messages that tools added, until the results of their step are
	// stored.
	Appended []Injection `json:"appended,omitempty"`
	// Unjudged says that the last message is a response whose gates (tool.pre,
	// turn.stop) have not answered yet. Whoever resumes the turn asks them.
	Unjudged bool `json:"unjudged,omitempty"`
	// Continuations counts how often turn.stop made it go on.
	Continuations int `json:"continuations,omitempty"`
	// Ended is how it ended, while its end phases are still to fire.
	Ended EndReason `json:"ended,omitempty"`
	// Missed counts how often it was told that its answer is missing.
	Missed int `json:"missed,omitempty"`
	// Warned says that the model was told that it goes in circles.
	Warned bool `json:"warned,omitempty"`
	// Children is the part of Usage that the turns of subagents have used in the open step, by
	// their ids. When a process was killed, what a child used and nobody counted is added.
	Children map[string]Usage `json:"children,omitempty"`
}

// CallState is where a call stands.
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

// Call is a tool call on record.
type Call struct {
	// Message and Index say which call of which response it is.
	Message int64     `json:"message"`
	Index   int       `json:"index"`
	ID      string    `json:"id"`
	Tool    string    `json:"tool"`
	State   CallState `json:"state"`
	// Input is the final input.
	Input json.RawMessage `json:"input,omitempty"`
	// Wait is what a parked call waits for: an approval's id, or a name that its
	// tool gave.
	Wait string `json:"wait,omitempty"`
	// Resumes is the name that its tool gave, even while it waits for an approval.
	Resumes string `json:"resumes,omitempty"`
	// Result is set when it is done. It is also set for a call that is started and whose
	// tool has returned, while a slow hook at tool.post is asked about it.
	Result *Result `json:"result,omitempty"`
}

// Spent is the usage of all turns, the one under way included.
func (s SessionState) Spent() Usage {
	if s.Turn == nil {
		return s.Usage
	}
	return s.Usage.add(s.Turn.Usage)
}

// blank reports whether it is the state of a session that nobody has used.
func (s SessionState) blank() bool { return reflect.ValueOf(s).IsZero() }

// Clone returns a copy that shares nothing which changes.
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

// Visible returns what a model sees of a whole transcript: all of it, or from
// the last compaction on, with what that keeps of what came before.
func Visible(messages []*Message) []*Message {
	for i, m := range slices.Backward(messages) {
		if !m.IsCompaction {
			continue
		}
		visible := []*Message{m}
		if m.Keep > 0 && m.Keep <= int64(i) {
			for _, kept := range messages[m.Keep-1 : i] {
				if !kept.IsCompaction { // this one stands for it
					visible = append(visible, kept)
				}
			}
		}
		return append(visible, messages[i+1:]...)
	}
	return slices.Clip(messages)
}
