package belay

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay/hook"
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

// patterns is the floor that reads patterns, if one does: the agent's own before
// those of its parents.
func (t *turn) patterns() PatternAuthorizer { //nolint:ireturn // it is one of several floors
	for _, floor := range t.floors() {
		if p, ok := floor.(PatternAuthorizer); ok {
			return p
		}
	}
	return nil
}

// checkPattern says why a pattern cannot be read, or nothing. The floor may be nil.
func checkPattern(floor PatternAuthorizer, pattern string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: reading its pattern panicked: %v", ErrScope, p)
		}
	}()
	if floor != nil {
		if err := floor.CheckPattern(pattern); err != nil {
			return fmt.Errorf("%w: its pattern cannot be read: %w", ErrScope, err)
		}
		return nil
	}
	if strings.ContainsAny(pattern, "()") {
		return fmt.Errorf("%w: the agent has no floor that reads patterns over inputs: name tools alone, such as %q", ErrScope, "deploy_*")
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("%w: its pattern cannot be read: %w: write the name of a tool, with * and ? for what varies", ErrScope, err)
	}
	return nil
}

// covers reports whether a pattern covers a call. If nobody can tell, it does
// not.
func (t *turn) covers(pattern string, c *call) (covered bool) {
	defer func() {
		if p := recover(); p != nil {
			covered = false
			t.agent.opts.Logger.WarnContext(t.base, "the floor panicked over a pattern", "session", t.scope.Session, "turn", t.scope.Turn, "panic", p)
		}
	}()
	if floor := t.patterns(); floor != nil {
		covered, err := floor.Covers(t.ctx, pattern, t.toolCall(c))
		if err != nil {
			t.agent.opts.Logger.WarnContext(t.base, "the floor could not try a pattern", "session", t.scope.Session, "turn", t.scope.Turn, "error", err)
		}
		return covered && err == nil
	}
	covered, err := path.Match(pattern, c.Tool)
	return covered && err == nil && checkPattern(nil, pattern) == nil
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
			return t.failed(fmt.Errorf("session %q: revoke %q: %w: it has no such grant", s.id, approval, ErrNotFound))
		}
		s.state.Grants = kept
		if err := t.commit(nil, nil, nil); err != nil {
			return t.failed(err)
		}
		return EndTurn
	})
	return err
}

// leaveParked lets go of a session whose turn is parked: whoever resumes it need
// not be this process.
func (t *turn) leaveParked() {
	if open := t.session.state.Turn; open != nil && open.Parked {
		t.session.doubt(t.base)
	}
}

// asker is one who leaves a call to a person, and why. A hook may have the name of
// something in the floor, and is not taken for it.
type asker struct {
	by, reason string
	floor      bool
}

// stillAsked are a call's askers whose question no grant answers, and the grants
// that answer the others.
func (t *turn) stillAsked(c *call, grants ...[]Grant) (left []asker, by []Grant) {
	for i := range c.askers {
		if g := t.granted(c, &c.askers[i], grants); g != nil {
			by = append(by, *g)
		} else {
			left = append(left, c.askers[i])
		}
	}
	return left, by
}

// asOne is the question of several askers: in the name of the first, with what all
// of them say. A yes lets the call run, so nobody's reason is left out.
func asOne(all []asker) asker {
	one := all[0]
	for _, a := range all[1:] {
		one.reason += "; " + a.by + ": " + a.reason
	}
	return one
}

// granted is the grant that answers an asker's question about a call, or nil.
func (t *turn) granted(c *call, a *asker, grants [][]Grant) *Grant {
	for _, list := range grants {
		for i := range list {
			g := &list[i]
			if isAsker(g.Asker, a.by) && g.Floor == a.floor && (g.Pattern == "" && g.Tool == c.Tool || g.Pattern != "" && t.covers(g.Pattern, c)) {
				return g
			}
		}
	}
	return nil
}

// isAsker reports whether one who asks is the one on record. Stores keep no secrets:
// the name of a rule that holds one is on record without it.
func isAsker(stored, by string) bool {
	return stored == by || strings.Contains(stored, redact.Mark) && stored == redact.Text(by)
}

// asGranted is the decision that grants make.
func asGranted(by []Grant) Decision {
	d := Decision{Allow: true, By: by[0].By}
	var ids []string
	for _, g := range by {
		if !slices.Contains(ids, g.Approval) {
			ids = append(ids, g.Approval)
		}
	}
	d.Reason = "allowed before, with approval " + strings.Join(ids, " and ")
	return d
}

// scopeFault says why a yes to a call counts for that call alone, whatever its
// scope says, or nothing.
func (t *turn) scopeFault(c *call, d *Decision) string {
	if err := d.reaches(); err != nil {
		return err.Error()
	}
	if d.Scope.Kind != ScopePattern {
		return ""
	}
	if err := checkPattern(t.patterns(), d.Scope.Pattern); err != nil {
		return err.Error()
	}
	if !t.covers(d.Scope.Pattern, c) {
		return "its pattern does not cover the call that it was given for"
	}
	return ""
}

// narrowed says that a decision does not reach as far as it says.
func (t *turn) narrowed(c *call, why string) {
	c.diagnostics = append(c.diagnostics, hook.Diagnostic{
		Code: hook.CodeScope, Level: hook.CodeScope.Level(), Message: fmt.Sprintf("the decision of approval %s is for its call alone", c.approval.ID),
	})
	t.agent.opts.Logger.WarnContext(t.base, "a decision is for its call alone", "session", t.scope.Session, "turn", t.scope.Turn, "approval", c.approval.ID, "reason", why)
}

// widen makes a grant of a yes that reaches further than its call. The next
// commit stores it.
func (t *turn) widen(c *call) {
	c.grant = nil
	a, d := c.approval, c.approval.Decided
	if !d.Allow || !d.Scope.wide() {
		return
	}
	if why := t.scopeFault(c, d); why != "" {
		t.narrowed(c, why)
		return
	}
	c.grant = &Grant{Approval: a.ID, Asker: a.By, Floor: a.Floor, Tool: a.Tool, Pattern: d.Scope.Pattern, By: d.By, Time: d.Time}
}
