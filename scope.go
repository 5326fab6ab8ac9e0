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

// ApprovalScope says which calls an approval covers. The zero value is once: it covers
// only this call with this input. Every other scope lasts as long as the session, and
// answers only later questions of the same asker. A scope never allows calls that hooks
// or the floor deny.
type ApprovalScope struct {
	Kind ScopeKind `json:"kind,omitempty"`
	// Pattern says which calls are covered, for ScopePattern. If the Authorizer is a
	// [PatternAuthorizer], it defines the grammar of patterns. Otherwise Pattern is a
	// [path.Match] pattern for names of tools.
	Pattern string `json:"pattern,omitempty"`
}

// ScopeKind is the kind of an ApprovalScope.
type ScopeKind string

// The kinds of scopes. In JSON, a missing kind and "once" mean the same.
const (
	ScopeOnce    ScopeKind = ""        // only the call that was asked about
	ScopeSession ScopeKind = "session" // every call of the same tool in this session
	ScopePattern ScopeKind = "pattern" // every call in this session that the pattern covers
)

// patternLength is the maximum length of a pattern, in characters. Belay never shortens a
// pattern, because a shorter pattern may cover more calls.
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

// reaches returns nil if the decision may have its scope. Otherwise the error says why not.
// It does not check the grammar of the pattern.
func (d *Decision) reaches() error {
	s := d.Scope
	switch {
	case !s.wide() && s.Pattern == "":
		return nil
	case !d.Allow:
		return fmt.Errorf("%w: a denial covers only one call: leave Scope empty", ErrScope)
	case s.Kind == ScopePattern && strings.TrimSpace(s.Pattern) == "":
		return fmt.Errorf("%w: the pattern is empty: write which calls the approval covers", ErrScope)
	case s.Kind == ScopePattern && (!utf8.ValidString(s.Pattern) || utf8.RuneCountInString(s.Pattern) > patternLength):
		return fmt.Errorf("%w: the pattern is not valid UTF-8 or is longer than %d characters: write a shorter pattern", ErrScope, patternLength)
	case s.Kind == ScopePattern && redact.Text(s.Pattern) != s.Pattern: // patterns are stored, and a redacted pattern would cover other calls
		return fmt.Errorf("%w: the pattern seems to contain a secret, and patterns are stored: write * instead of the secret, or allow only this call", ErrScope)
	case s.Kind == ScopePattern, s.Kind == ScopeSession && s.Pattern == "":
		return nil
	case s.Pattern != "":
		return fmt.Errorf("%w: only the kind %q has a pattern: remove the pattern, or change the kind", ErrScope, ScopePattern)
	default:
		return fmt.Errorf("%w: unknown kind %q: use once, %s or %s", ErrScope, s.Kind, ScopeSession, ScopePattern)
	}
}

// Grant is a stored approval that covers more than one call. As long as its session exists,
// the same asker does not ask again about calls that the grant covers. A [Decision] with a
// scope creates the grant, and [Session.Revoke] removes it.
type Grant struct {
	// Approval is the id of the approval that created the grant. It is also the id of the
	// grant.
	Approval string `json:"approval"`
	// Asker is the subscription, or the part of the floor, whose questions the grant
	// answers. Floor is true if Asker is a part of the floor. Both are copied from the
	// approval.
	Asker string `json:"asker"`
	Floor bool   `json:"floor,omitempty"`
	// Tool is the tool that the grant covers, if Pattern is empty. If Pattern is set, the
	// pattern decides, and Tool is only the tool of the approved call.
	Tool    string `json:"tool"`
	Pattern string `json:"pattern,omitempty"`
	// By is who approved, and Time is when.
	By   string    `json:"by"`
	Time time.Time `json:"time"`
}

// maxGrants is the maximum number of grants of a session. If a session has this many, a new
// grant replaces the oldest one. Then Belay asks again about calls that the oldest grant
// covered.
const maxGrants = 64

// withGrant returns the grants with one more. If there are too many, it drops the oldest.
// It adds nothing if a grant already covers the same calls of the same asker. It makes a
// new list, because stored records share the old list.
func withGrant(grants []Grant, g Grant) []Grant {
	for _, have := range grants {
		if have.Asker == g.Asker && have.Floor == g.Floor && have.Pattern == g.Pattern && (have.Pattern != "" || have.Tool == g.Tool) {
			return grants
		}
	}
	return append(slices.Clip(grants[max(len(grants)-maxGrants+1, 0):]), g)
}

// Grants returns the grants of the session, oldest first. It opens the session, as a turn
// does. For a session that another process holds, use a [ListStore].
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

// Revoke removes the grant that an approval created. From then on the grant's asker asks
// again. If a turn is running, Revoke waits. With Options.RefuseBusy it returns ErrBusy
// instead. It returns ErrNotFound if the session has no such grant.
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
