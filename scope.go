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

// Scope says how far a yes reaches. The zero value is once: the call that was
// asked about, with the input that was shown. Every other scope ends with the
// session, holds for the asker of that approval alone, and answers questions
// only: what hooks or the floor deny stays denied.
type Scope struct {
	Kind ScopeKind `json:"kind,omitempty"`
	// Pattern says which calls, for ScopePattern. Its grammar is that of the
	// floor, see [PatternAuthorizer]; without one it is a pattern of [path.Match]
	// over the names of tools.
	Pattern string `json:"pattern,omitempty"`
}

// ScopeKind is a sort of Scope.
type ScopeKind string

// The sorts of scopes. On the wire once is nothing, or "once".
const (
	ScopeOnce    ScopeKind = ""        // the call that was asked about
	ScopeSession ScopeKind = "session" // every call of that tool in this session
	ScopePattern ScopeKind = "pattern" // every call in this session that the pattern covers
)

// patternLength is the most characters of a pattern. It is never cut: a part of a
// pattern may cover more than the whole.
const patternLength = 512

// String is once, session, or the pattern.
func (s Scope) String() string {
	switch {
	case !s.wide():
		return "once"
	case s.Kind == ScopePattern:
		return s.Pattern
	default:
		return string(s.Kind)
	}
}

// wide reports whether it reaches further than the call that was asked about.
func (s Scope) wide() bool { return s.Kind != ScopeOnce && s.Kind != "once" }

// reaches says why a decision cannot have its scope, or nothing. Whether its
// pattern can be read is for those to say who know its grammar.
func (d *Decision) reaches() error {
	s := d.Scope
	switch {
	case !s.wide() && s.Pattern == "":
		return nil
	case !d.Allow:
		return fmt.Errorf("%w: a refusal is about one call: leave its scope out", ErrScope)
	case s.Kind == ScopePattern && strings.TrimSpace(s.Pattern) == "":
		return fmt.Errorf("%w: it has no pattern: name the calls it is for", ErrScope)
	case s.Kind == ScopePattern && (!utf8.ValidString(s.Pattern) || utf8.RuneCountInString(s.Pattern) > patternLength):
		return fmt.Errorf("%w: its pattern is not text of at most %d characters: write a shorter one", ErrScope, patternLength)
	case s.Kind == ScopePattern && redact.Text(s.Pattern) != s.Pattern: // it is stored, and without the secret it would cover something else
		return fmt.Errorf("%w: its pattern holds what looks like a secret, and patterns are stored: write * in its place, or allow this call alone", ErrScope)
	case s.Kind == ScopePattern, s.Kind == ScopeSession && s.Pattern == "":
		return nil
	case s.Pattern != "":
		return fmt.Errorf("%w: only the kind %q has a pattern: leave one of them out", ErrScope, ScopePattern)
	default:
		return fmt.Errorf("%w: there is no kind %q: use once, %s or %s", ErrScope, s.Kind, ScopeSession, ScopePattern)
	}
}

// Grant is a yes on record that reaches further than one call: while its session
// lasts, what its asker leaves to a person and it covers is not asked again. It
// comes of a [Decision] with a scope, and [Session.Revoke] takes it back.
type Grant struct {
	// Approval is the approval that it was given with. It is the grant's id.
	Approval string `json:"approval"`
	// Asker is whose questions it answers, and Floor whether that is the floor's or
	// a hook's: the approval's By and Floor.
	Asker string `json:"asker"`
	Floor bool   `json:"floor,omitempty"`
	// Tool is the tool that it covers, or, with a Pattern, the one that it was
	// given for.
	Tool    string `json:"tool"`
	Pattern string `json:"pattern,omitempty"`
	// By is who gave it, and Time when.
	By   string    `json:"by"`
	Time time.Time `json:"time"`
}

// maxGrants is how many grants a session has at most. The oldest makes room: what
// it covered is asked again.
const maxGrants = 64

// withGrant adds a grant. One that covers the same is enough: taking that back takes
// back what both gave. What is stored shares the list, and is not written to.
func withGrant(grants []Grant, g Grant) []Grant {
	for _, have := range grants {
		if have.Asker == g.Asker && have.Floor == g.Floor && have.Pattern == g.Pattern && (have.Pattern != "" || have.Tool == g.Tool) {
			return grants
		}
	}
	return append(slices.Clip(grants[max(len(grants)-maxGrants+1, 0):]), g)
}

// Grants are what the session may do without asking again, the oldest first. It
// opens the session, as a turn does; a [ListStore] tells them of sessions that
// others hold.
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

// Revoke takes back the grant that was given with an approval: from then on its
// asker asks again. It waits for a turn under way, or is refused, as Options.Busy
// says. ErrNotFound: the session has no such grant.
func (s *Session) Revoke(ctx context.Context, approval string) error {
	_, err := s.take(ctx, func(t *turn) EndReason {
		t.quiet = true
		defer t.leaveParked()
		kept := slices.DeleteFunc(slices.Clone(s.state.Grants), func(g Grant) bool { return g.Approval == approval })
		if len(kept) == len(s.state.Grants) {
			return t.fail(fmt.Errorf("session %q: revoke %q: %w: it has no such grant", s.id, approval, ErrNotFound))
		}
		s.state.Grants = kept
		if err := t.commit(nil, nil, nil); err != nil {
			return t.fail(err)
		}
		return EndTurn
	})
	return err
}
