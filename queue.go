package belay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// QueuedTurn is a user message whose turn has not begun. The store has it as soon as
// Submit returns. Then the process that submitted it may end.
type QueuedTurn struct {
	// ID identifies the queued turn. NewQueuedTurn sets it.
	ID string `json:"id"`
	// Session is the id of the conversation.
	Session string `json:"session"`
	// Agent is the name of the agent that runs the turn.
	Agent string `json:"agent"`
	// Model is the name of the model that answers: see [Options.Models]. Defaults to the
	// agent's own model.
	Model string `json:"model,omitempty"`
	// Text and Parts are the message.
	Text  string    `json:"text"`
	Parts []Part    `json:"parts,omitempty"`
	Time  time.Time `json:"time"`
	// Key is for messages that a client may send twice: see [KeyStore]. Defaults to none.
	Key SubmitKey `json:"-"`
	// Follows is the number of the message after which the turn must begin: see [KeyStore].
	// Defaults to 0: the turn begins after all that is in the session and in its queue.
	Follows int64 `json:"-"`
}

// SubmitKey identifies a request that submits a turn. A client that does not know whether its
// request arrived sends the request again, with the same key.
type SubmitKey struct {
	// ID identifies the request among those of all clients. Without it there is no key.
	ID string
	// Hash is a hash of the request. It shows whether a key was used for another request.
	Hash string
	// After is the position of the session before the turn: see [Event.Position].
	After string
	// Replace lets a new submission take over a key that was used before. Defaults to false:
	// Submit returns a [*SubmittedError].
	Replace bool
}

// SubmittedError says that a turn with the same key was submitted before. It describes that
// turn.
type SubmittedError struct {
	// Turn is the id of the queued turn. It may have begun or ended.
	Turn    string
	Session string
	Key     SubmitKey
	Time    time.Time
}

func (e *SubmittedError) Error() string {
	return fmt.Sprintf("belay: the turn was already submitted, as %s in session %q", e.Turn, e.Session)
}

// KeyStore is a TurnStore that stores one turn for each [SubmitKey]. It keeps the keys of a
// session until the session is deleted.
//
// Submit returns a [*SubmittedError], and stores nothing, if [QueuedTurn.Key] was used before.
// If [QueuedTurn.Follows] is set, Submit returns ErrConflict, and stores nothing, unless the
// session's last message has that number, no turn of the session is open, and none is queued.
// So of two turns that continue the same conversation, only one is stored.
type KeyStore interface {
	TurnStore
	// Submitted returns the turn that was submitted with a key. It returns ErrNotFound if there
	// is none.
	Submitted(ctx context.Context, key string) (*SubmittedError, error)
}

// NewQueuedTurn makes a queued turn from a message. It returns an error for an invalid
// message.
func NewQueuedTurn(session, agent, text string, parts ...Part) (QueuedTurn, error) {
	s := QueuedTurn{
		ID: "turn-" + strings.ToLower(rand.Text()), Session: session, Agent: agent, Text: text, Parts: slices.Clone(parts), Time: time.Now(),
	}
	switch {
	case session == "":
		return s, errors.New("submit: the session id is empty: set one")
	case agent == "":
		return s, fmt.Errorf("submit to session %q: the agent's name is empty: set the name of the agent that runs the turn", session)
	}
	if err := checkInput(text, parts); err != nil {
		return s, fmt.Errorf("submit to session %q: %w", session, err)
	}
	return s, nil
}

// TurnStore is a Store with a queue of turns. Workers of package engine run the queued
// turns. Turns of [Session.Run] and [Session.Turn] are not queued: the calling process
// runs them.
//
// The queue is a list of sessions. Each session is in it at most once, and may have
// several queued turns. A session enters the queue with its first queued turn. It stays
// there while one of its turns is queued, running or parked. A worker claims a session
// before it runs the session's next turn. If the worker's process ends, its claims end
// too, and the turns are due again.
type TurnStore interface {
	Store
	// Submit stores a message and makes the turn of its session due, in one transaction. It
	// needs no hold. It creates the session if the session does not exist.
	Submit(ctx context.Context, s QueuedTurn) error
	// Queued returns the turns of a session that have not begun, oldest first. A [Commit]
	// removes a queued turn when the turn begins.
	Queued(ctx context.Context, session string) ([]QueuedTurn, error)
	// Claim waits until a turn that matches the filter is due. It claims the turn that has
	// been due longest. While the claim lasts, no other process can claim this turn.
	Claim(ctx context.Context, filter TurnFilter) (DueTurn, error)
	// Settle releases a claim. If again is zero, the turn has ended: the next queued turn
	// is due, or the session leaves the queue. If again is [Never], the turn is due only
	// after Wake. Otherwise the turn becomes due at the given time. The store also keeps
	// due.Why, the reason for the delay. If a message, a decision or a Wake came after the
	// claim, the turn is due at once. Settle does nothing if the claim was lost.
	Settle(ctx context.Context, due DueTurn, again time.Time) error
	// Wake makes the turn of a session due now, if the session is in the queue. Decide also
	// does this for the approval's session and for its parents.
	Wake(ctx context.Context, session string) error
	// Load returns which sessions and turns each process holds, and how many turns wait.
	Load(ctx context.Context) (Load, error)
	// Changes yields the current state of a session, and the new state after each change,
	// until ctx ends. It may report several changes as one. It yields ErrNotFound if the
	// session does not exist.
	Changes(ctx context.Context, session string) iter.Seq2[SessionInfo, error]
}

// RequeueStore is a TurnStore that can queue an open turn, pass on requests to abort one, and
// withdraw a queued turn.
type RequeueStore interface {
	TurnStore
	// Requeue makes the open turn of a session due, so that a worker resumes it. Unlike
	// Wake, it also queues a turn that was not queued before. It uses Session, Agent, Model,
	// Abort and AbortTurn of turn. If Abort is set, the worker that runs the turn AbortTurn
	// aborts it, or the worker that claims it next. A request for another turn than the open
	// one has no effect. Requeue returns ErrNotFound if the session does not exist.
	Requeue(ctx context.Context, turn DueTurn) error
	// Aborts returns the turns that were claimed with this store and should be aborted.
	Aborts(ctx context.Context) ([]DueTurn, error)
	// Withdraw removes a queued turn that has not begun. It returns ErrNotFound if the queue of
	// the session does not have the turn.
	Withdraw(ctx context.Context, session, turn string) error
}

// Never is a time for Settle: the turn is due only after Wake.
var Never = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// DueTurn is a session with a turn to run.
type DueTurn struct {
	Session string `json:"session"`
	// Agent and Model are the names for this turn. An empty Model means the agent's own
	// model.
	Agent string `json:"agent"`
	Model string `json:"model,omitempty"`
	// Since is when the turn became due or was claimed.
	Since time.Time `json:"since"`
	// Again is the time when the turn becomes due, if the turn is not due yet. Why is the
	// reason of the delay, from Settle.
	Again time.Time `json:"again,omitzero"`
	Why   string    `json:"why,omitempty"`
	// Abort is who asked to abort a turn of the session. It is empty if nobody did. AbortTurn
	// is the id of that turn. If it is empty, the request is for any turn. See [RequeueStore].
	Abort     string `json:"abort,omitempty"`
	AbortTurn string `json:"abort_turn,omitempty"`
	// Mark changes each time something makes the turn due. [TurnStore.Settle] compares it
	// to find out whether this happened after the claim.
	Mark int64 `json:"-"`
}

// TurnFilter selects due turns. The zero value selects all.
type TurnFilter struct {
	// ExceptAgents and ExceptModels exclude turns by agent or model. ExceptOwn lists
	// agents: turns of these agents without a model name are excluded.
	ExceptAgents, ExceptModels, ExceptOwn []string
}

// Load describes the load of a store that several processes use.
type Load struct {
	// Waiting is the number of turns that are due and not claimed. OldestAge says how long
	// the oldest of them has been due.
	Waiting   int           `json:"waiting"`
	OldestAge time.Duration `json:"oldest_age"`
	// Parked is the number of turns that wait for a decision or an answer.
	Parked int `json:"parked"`
	// PutOff lists turns that could not run and are due later, oldest first, at most 20.
	PutOff []DueTurn `json:"put_off,omitempty"`
	// Holders are the processes that have the store open.
	Holders []HolderLoad `json:"holders,omitempty"`
}

// HolderLoad describes a process that has the store open.
type HolderLoad struct {
	PID   int64     `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
	// Self says that this is the calling process. Gone says that the process has ended but
	// its claims are not released yet.
	Self bool `json:"self,omitempty"`
	Gone bool `json:"gone,omitempty"`
	// Worker says that the process has claimed turns or waits for one.
	Worker bool `json:"worker,omitempty"`
	// Sessions is the number of sessions that the process holds. Turns are the turns that
	// it has claimed, oldest first.
	Sessions int64     `json:"sessions"`
	Turns    []DueTurn `json:"turns,omitempty"`
}

// errNoTurnStore says that the store has no queue of turns.
var errNoTurnStore = errors.New("belay: the store has no queue of turns: use store/sqlite or store/postgres, or run the turn with Run or Turn")

// Submit stores a user message and returns when the message is durable. A worker of package
// engine runs the turn in any process, with an agent that has the same name as this agent.
// If the session is running another turn, the message waits. The store must be a
// [TurnStore].
func (s *Session) Submit(ctx context.Context, text string, parts ...Part) (QueuedTurn, error) {
	store, ok := s.agent.store.(TurnStore)
	if !ok {
		return QueuedTurn{}, fmt.Errorf("submit to session %q: %w", s.id, errNoTurnStore)
	}
	sub, err := NewQueuedTurn(s.id, s.agent.opts.Name, text, parts...)
	if err != nil {
		return sub, err
	}
	if err := store.Submit(ctx, sub); err != nil {
		return sub, fmt.Errorf("submit to session %q: %w", s.id, err)
	}
	return sub, nil
}
