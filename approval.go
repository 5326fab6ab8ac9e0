package belay

import (
	"errors"
	"fmt"
	"time"
)

// Approval is a question to a person: may this call run? The approval holds only a hash of
// the call's input. The input itself is in the transcript.
//
// Reason, and the pattern of a scope, may quote the call. A store that keeps approvals in
// tables stores these texts with the transcript. So you can share the other fields of an
// approval and keep them for a long time.
type Approval struct {
	ID      string `json:"id"`
	Session string `json:"session"`
	Turn    string `json:"turn"`
	Call    string `json:"call"`
	Tool    string `json:"tool"`
	// Hash is the canonical hash of the final input. If the floor says which files the
	// paths of the call lead to, Hash continues with a plus sign and hashes of the strings
	// in [Authorization].Places.
	Hash string `json:"hash"`
	// Reason says why approval is needed. The text is from the hook or the floor.
	Reason string `json:"reason"`
	// By is who asked: a subscription, or a guard, zone or rule of the floor. By never
	// quotes the call. Floor is true if the floor asked.
	By      string    `json:"by"`
	Floor   bool      `json:"floor,omitempty"`
	Asked   time.Time `json:"asked"`
	Expires time.Time `json:"expires,omitzero"`
	// Decided is nil while the approval is pending.
	Decided *Decision `json:"decided,omitempty"`
}

// Decision answers an approval.
type Decision struct {
	// Approval is the id of the approval. Hash identifies the input: the decision is valid
	// for that input only.
	Approval string `json:"approval"`
	Hash     string `json:"hash"`
	Allow    bool   `json:"allow"`
	// Scope says which calls an approval covers. Defaults to this call only.
	Scope ApprovalScope `json:"scope,omitzero"`
	// By is who decided: a person or a subscription, or "expiry" or "cancel". It is required.
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Time   time.Time `json:"time"`
}

// Accepts returns nil if a store may record the decision. Otherwise it returns ErrDecided,
// ErrWrongHash, ErrExpired or ErrScope. Stores call it.
func (a *Approval) Accepts(d Decision, now time.Time) error {
	switch {
	case a.Decided != nil:
		return fmt.Errorf("approval %q: %w by %s", a.ID, ErrDecided, a.Decided.By)
	case d.Hash != a.Hash:
		return fmt.Errorf("approval %q: %w", a.ID, ErrWrongHash)
	case a.expired(now):
		return fmt.Errorf("approval %q: %w", a.ID, ErrExpired)
	}
	if err := d.reaches(); err != nil {
		return fmt.Errorf("approval %q: %w", a.ID, err)
	}
	return nil
}

func (a *Approval) expired(now time.Time) bool {
	return !a.Expires.IsZero() && !now.Before(a.Expires)
}

// Errors of an invalid Decision. Use errors.Is.
var (
	ErrDecided   = errors.New("belay: the approval was already decided")
	ErrWrongHash = errors.New("belay: the decision does not match the input of the approval")
	ErrExpired   = errors.New("belay: the approval has expired")
	ErrScope     = errors.New("belay: the scope of the decision is invalid")
)
