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

// QueuedTurn is a turn that nobody has begun: a user message that waits. It is stored
// before anybody takes it up, so that whoever submitted it may leave.
type QueuedTurn struct {
	// ID names it. Submit gives it one.
	ID string `json:"id"`
	// Session is the conversation it belongs to.
	Session string `json:"session"`
	// Agent is the name of the agent that is to take the turn.
	Agent string `json:"agent"`
	// Model is the name of the model that is to answer: see [Options.Models].
	// Defaults to the agent's own.
	Model string `json:"model,omitempty"`
	// Text and Parts are the message.
	Text  string    `json:"text"`
	Parts []Part    `json:"parts,omitempty"`
	Time  time.Time `json:"time"`
}

// NewQueuedTurn makes a turn of a message, and refuses what is no message.
func NewQueuedTurn(session, agent, text string, parts ...Part) (QueuedTurn, error) {
	s := QueuedTurn{
		ID: "turn-" + strings.ToLower(rand.Text()), Session: session, Agent: agent, Text: text, Parts: slices.Clone(parts), Time: time.Now(),
	}
	switch {
	case session == "":
		return s, errors.New("submit: there is no session: a session needs an id, under which it is found again")
	case agent == "":
		return s, fmt.Errorf("submit to session %q: there is no agent: name the one that is to take the turn", session)
	}
	if err := checkInput(text, parts); err != nil {
		return s, fmt.Errorf("submit to session %q: %w", session, err)
	}
	return s, nil
}

// TurnStore is a Store that keeps messages which wait for their turns, and knows
// which turns are due. Package engine takes them; this is the door it comes in by.
// Without it turns are taken by the process that was asked to.
//
// A session is on the list of due turns at most once. It comes on the list with its
// first queued turn, stays while a turn of it is under way or parked, and leaves when
// a turn has ended and nothing waits. Whoever takes the turn has claimed it. A claim
// ends with its holder: what a process that is gone had claimed is due again.
type TurnStore interface {
	Store
	// Submit stores a message and that its session's turn is due, in one
	// transaction. It needs no hold; a session that is not there is made.
	Submit(ctx context.Context, s QueuedTurn) error
	// Queued are the turns of a session that nobody has begun, the oldest first. A
	// commit takes one up: see Commit.
	Queued(ctx context.Context, session string) ([]QueuedTurn, error)
	// Claim waits until a turn is due that the filter lets pass, and takes the one
	// that has been due longest, so that no other claims it.
	Claim(ctx context.Context, filter TurnFilter) (DueTurn, error)
	// Settle lets go of a claim. If again is zero the turn has ended: the next
	// queued one is due, or else the session leaves the list. Otherwise the turn is
	// due at that time, which [Never] puts off until Wake, and due.Why is told with
	// it. What was submitted, decided or woken since the claim makes it due at once. A
	// claim that was lost is left alone.
	Settle(ctx context.Context, due DueTurn, again time.Time) error
	// Wake makes the turn of a session due now, if it is on the list. Decide does
	// this too, for the session of the approval and for those that it is a child of.
	Wake(ctx context.Context, session string) error
	// Load tells who holds what and how much waits.
	Load(ctx context.Context) (Load, error)
	// Changes yields a session as it is, and again whenever it has changed, until
	// ctx is done. Changes that come together are told once. ErrNotFound: there is
	// no such session.
	Changes(ctx context.Context, session string) iter.Seq2[SessionInfo, error]
}

// Never is a time that does not come.
var Never = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// DueTurn is a session whose turn is to be taken.
type DueTurn struct {
	Session string `json:"session"`
	// Agent and Model are those of the turn. Model is empty for the agent's own.
	Agent string `json:"agent"`
	Model string `json:"model,omitempty"`
	// Since is when it became due, or was claimed.
	Since time.Time `json:"since"`
	// Again is when it is due, if that is later, and Why says what it was put off for,
	// in the words of whoever let go of it.
	Again time.Time `json:"again,omitzero"`
	Why   string    `json:"why,omitempty"`
	// Mark counts what has made it due: see [TurnStore.Settle].
	Mark int64 `json:"-"`
}

// TurnFilter selects due turns. The zero value selects all.
type TurnFilter struct {
	// ExceptAgents and ExceptModels are those whose turns are left to others, and
	// ExceptOwn the agents whose turns are if they name no model.
	ExceptAgents, ExceptModels, ExceptOwn []string
}

// Load is what a store that is served by several processes looks like at a moment.
type Load struct {
	// Waiting counts the turns that are due and that nobody has claimed, and
	// OldestAge is how long the oldest of them has been due.
	Waiting   int           `json:"waiting"`
	OldestAge time.Duration `json:"oldest_age"`
	// Parked counts the turns that wait for somebody.
	Parked int `json:"parked"`
	// PutOff are turns that could not be taken and are due later, the oldest first: 20
	// at most.
	PutOff []DueTurn `json:"put_off,omitempty"`
	// Holders are the processes that have the store open.
	Holders []HolderLoad `json:"holders,omitempty"`
}

// HolderLoad is what a process that has a store open is at.
type HolderLoad struct {
	PID   int64     `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
	// Self says that it is this store, and Gone that the process is gone and what it
	// held is still to be settled.
	Self bool `json:"self,omitempty"`
	Gone bool `json:"gone,omitempty"`
	// Worker says that it has claimed turns, or waits for one.
	Worker bool `json:"worker,omitempty"`
	// Sessions counts those it holds, and Turns are what it has claimed, the oldest
	// first.
	Sessions int64     `json:"sessions"`
	Turns    []DueTurn `json:"turns,omitempty"`
}

// errNoTurnStore says that a store is none for workers.
var errNoTurnStore = errors.New("belay: the store keeps no messages that wait for their turns: use store/sqlite or store/postgres, or take the turn with Run or Turn")

// Submit stores a user message for whoever takes turns, and returns when it is
// durable: package engine has a worker for that, in this process or in another. The
// turn is this agent's, by its name. While the session takes another turn the message
// waits. The store must be a [TurnStore].
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
