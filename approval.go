package belay

import (
	"errors"
	"fmt"
	"time"
)

// Approval is a question to a person: may this call run? It holds a hash of the
// input and not the input, which is in the transcript.
//
// What is put in words, the reasons and the pattern of a scope, may quote the
// call. A store that keeps approvals in tables keeps the words apart from them,
// with what was said, so that approvals can be shared and kept for long.
type Approval struct {
	ID      string `json:"id"`
	Session string `json:"session"`
	Turn    string `json:"turn"`
	Call    string `json:"call"`
	Tool    string `json:"tool"`
	// Hash is the canonical hash of the final input. If the floor says where the paths of the
	// call lead, hashes of those places follow, after a plus sign.
	Hash string `json:"hash"`
	// Reason is why a person is asked, in the asker's words.
	Reason string `json:"reason"`
	// By is who asked: a subscription, or the guard, zone or rule of the floor. It
	// is a name and quotes nothing. Floor tells the two apart.
	By      string    `json:"by"`
	Floor   bool      `json:"floor,omitempty"`
	Asked   time.Time `json:"asked"`
	Expires time.Time `json:"expires,omitzero"`
	// Decided is nil while it is pending.
	Decided *Decision `json:"decided,omitempty"`
}

// Decision answers an approval.
type Decision struct {
	// Approval and Hash name the question and the input it is about: a decision
	// is for that input alone.
	Approval string `json:"approval"`
	Hash     string `json:"hash"`
	Allow    bool   `json:"allow"`
	// Scope is how far a yes reaches. Defaults to once.
	Scope Scope `json:"scope,omitzero"`
	// By is who decided: a person's name, a subscription, expiry, cancel.
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Time   time.Time `json:"time"`
}

// Accepts says why a decision cannot stand, or nothing: ErrDecided, ErrWrongHash,
// ErrExpired or ErrScope. Stores ask it.
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
	ErrScope     = errors.New("belay: the decision cannot reach that far")
)
