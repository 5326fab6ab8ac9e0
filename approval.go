package belay

import (
	"errors"
	"fmt"
	"time"
)

// Approval is a question to a person: may this call run? It holds a hash of the input. The
// input itself is in the transcript.
//
// The reasons and the pattern of a scope may quote the call. A store that keeps approvals
// in tables stores these texts separately, with the transcript, so that approvals can be
// shared and kept for a long time.
type Approval struct {
	ID      string `json:"id"`
	Session string `json:"session"`
	Turn    string `json:"turn"`
	Call    string `json:"call"`
	Tool    string `json:"tool"`
	// Hash is the canonical hash of the final input. If the floor says where the paths of
	// the call lead, hashes of those places follow, after a plus sign.
	Hash string `json:"hash"`
	// Reason is why approval is needed, in the words of the hook or the floor.
	Reason string `json:"reason"`
	// By is who asked: a subscription, or the guard, zone or rule of the floor. It is a
	// name and quotes nothing. Floor reports whether it was the floor.
	By      string    `json:"by"`
	Floor   bool      `json:"floor,omitempty"`
	Asked   time.Time `json:"asked"`
	Expires time.Time `json:"expires,omitzero"`
	// Decided is nil while the approval is pending.
	Decided *Decision `json:"decided,omitempty"`
}

// Decision answers an approval.
type Decision struct {
	// Approval is the id of the approval, and Hash identifies the input. A decision holds
	// for that input only.
	Approval string `json:"approval"`
	Hash     string `json:"hash"`
	Allow    bool   `json:"allow"`
	// Scope says which calls an approval covers. Defaults to this call only.
	Scope ApprovalScope `json:"scope,omitzero"`
	// By is who decided: a person's name, a subscription, expiry or cancel.
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Time   time.Time `json:"time"`
}

// Accepts returns why a decision about the approval is invalid: ErrDecided, ErrWrongHash,
// ErrExpired or ErrScope. It returns nil for a valid one. Stores call it.
func (a *Approval) Accepts(d Decision, now time.Time) error {
	switch {
	case a.Decided != nil:
		return fmt.Errorf("approval %q: %w, by %s", a.ID, ErrDecided, a.Decided.By)
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

// Errors of an invalid Decision, for errors.Is.
var (
	ErrDecided   = errors.New("belay: the approval has been decided")
	ErrWrongHash = errors.New("belay: the decision is about another input")
	ErrExpired   = errors.New("belay: the approval has expired")
	ErrScope     = errors.New("belay: the approval cannot have this scope")
)
