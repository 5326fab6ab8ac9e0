package belay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/redact"
)

// ApprovalScope says which calls an approval covers. The zero value is once: the call that was
// asked about, with the input that was shown. Every other scope ends with the session and
// answers only later questions of the same asker. What hooks or the floor deny stays
// denied.
type ApprovalScope struct {
	Kind ScopeKind `json:"kind,omitempty"`
	// Pattern says which calls are covered, for ScopePattern. The floor defines its
	// grammar, see [PatternAuthorizer]. Without one it is a pattern of [path.Match] over
	// the names of tools.
	Pattern string `json:"pattern,omitempty"`
}

// ScopeKind is the kind of an ApprovalScope.
type ScopeKind string

// The kinds of scopes. In JSON, once is left out or "once".
const (
	ScopeOnce    ScopeKind = ""        // the call that was asked about
	ScopeSession ScopeKind = "session" // every call of that tool in this session
	ScopePattern ScopeKind = "pattern" // every call in this session that the pattern covers
)

// patternLength is the maximum length of a pattern, in characters. A pattern is never cut:
// a part of it may cover more than the whole.
const patternLength = 512

// String returns once, session, or the pattern.
func (s ApprovalScope) String() string {
	switch {
	case !s.wide():
		return "once"
	case s.Kind == ScopePattern:
		return s.Pattern
	default:
		return string(s.Kind)
	}
}

// wide reports whether the scope covers more than the call that was asked about.
func (s ApprovalScope) wide() bool { return s.Kind != ScopeOnce && s.Kind != "once" }

// reaches returns why a decision cannot have its scope, or nil. It does not check the
// grammar of the pattern.
func (d *Decision) reaches() error {
	s := d.Scope
	switch {
	case !s.wide() && s.Pattern == "":
		return nil
	case !d.Allow:
		return fmt.Errorf("%w: a denial is about one call: leave its scope out", ErrScope)
	case s.Kind == ScopePattern && strings.TrimSpace(s.Pattern) == "":
		return fmt.Errorf("%w: it has no pattern: say which calls it covers", ErrScope)
	case s.Kind == ScopePattern && (!utf8.ValidString(s.Pattern) || utf8.RuneCountInString(s.Pattern) > patternLength):
		return fmt.Errorf("%w: its pattern is not text of at most %d characters: write a shorter one", ErrScope, patternLength)
	case s.Kind == ScopePattern && redact.Text(s.Pattern) != s.Pattern: // it is stored, and without the secret it would cover other calls
		return fmt.Errorf("%w: its pattern contains what looks like a secret, and patterns are stored: write * instead, or allow only this call", ErrScope)
	case s.Kind == ScopePattern, s.Kind == ScopeSession && s.Pattern == "":
		return nil
	case s.Pattern != "":
		return fmt.Errorf("%w: only the kind %q has a pattern: leave one of them out", ErrScope, ScopePattern)
	default:
		return fmt.Errorf("%w: there is no kind %q: use once, %s or %s", ErrScope, s.Kind, ScopeSession, ScopePattern)
	}
}

// Grant is a stored approval that covers more than one call. While its session exists,
// calls that it covers are not asked about again by the same asker. A [Decision] with a
// scope creates it, and [Session.Revoke] removes it.
type Grant struct {
	// Approval is the approval that created the grant. It is the grant's id.
	Approval string `json:"approval"`
	// Asker is the subscription or the part of the floor whose questions the grant answers,
	// and Floor says which of the two: see the approval's By and Floor.
	Asker string `json:"asker"`
	Floor bool   `json:"floor,omitempty"`
	// Tool is the tool that the grant covers or, with a Pattern, the tool of the call that
	// was approved.
	Tool    string `json:"tool"`
	Pattern string `json:"pattern,omitempty"`
	// By is who approved, and Time is when.
	By   string    `json:"by"`
	Time time.Time `json:"time"`
}

// maxGrants is how many grants a session can have. The oldest is removed: what it covered
// is asked about again.
const maxGrants = 64

// withGrant adds a grant. A grant that covers the same is not added twice: revoking it
// revokes both. It makes a new list, because stored records share the old one.
func withGrant(grants []Grant, g Grant) []Grant {
	for _, have := range grants {
		if have.Asker == g.Asker && have.Floor == g.Floor && have.Pattern == g.Pattern && (have.Pattern != "" || have.Tool == g.Tool) {
			return grants
		}
	}
	return append(slices.Clip(grants[max(len(grants)-maxGrants+1, 0):]), g)
}

// Grants returns the grants of the session, oldest first. It opens the session, as a turn
// does. For sessions that other processes hold, use a [ListStore].
func (s *Session) Grants(ctx context.Context) ([]Grant, error) {
	var grants []Grant
	_, err := s.take(ctx, func(t *turn) EndReason {
		t.quiet = true
		defer t.leaveParked()
		grants = slices.Clone(s.state.Grants)
		return EndTurn
	})
	return grants, err
}

// Revoke removes the grant that an approval created: its asker asks again from then on. If
// a turn is running, Revoke waits or is refused, as Options.RefuseBusy says. ErrNotFound: the
// session has no such grant.
func (s *Session) Revoke(ctx context.Context, approval string) error {
	_, err := s.take(ctx, func(t *turn) EndReason {
		t.quiet = true
		defer t.leaveParked()
		kept := slices.DeleteFunc(slices.Clone(s.state.Grants), func(g Grant) bool { return g.Approval == approval })
		if len(kept) == len(s.state.Grants) {
			return t.fail(fmt.Errorf("session %q: revoke %q: %w: the session has no such grant", s.id, approval, ErrNotFound))
		}
		s.state.Grants = kept
		if err := t.commit(nil, nil, nil); err != nil {
			return t.fail(err)
		}
		return EndTurn
	})
	return err
}
