package belay

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/redact"
)

// patterns returns the first floor that has its own patterns, or nil. The agent's own floor
// comes before the floors of its parents.
func (t *turn) patterns() PatternAuthorizer { //nolint:ireturn // it is one of several floors
	for _, floor := range t.floors() {
		if p, ok := floor.(PatternAuthorizer); ok {
			return p
		}
	}
	return nil
}

// checkPattern returns an error if a pattern is invalid. The floor may be nil.
func checkPattern(floor PatternAuthorizer, pattern string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the floor panicked while checking the pattern: %v", ErrScope, p)
		}
	}()
	if floor != nil {
		if err := floor.CheckPattern(pattern); err != nil {
			return fmt.Errorf("%w: invalid pattern: %w", ErrScope, err)
		}
		return nil
	}
	if strings.ContainsAny(pattern, "()") {
		return fmt.Errorf("%w: the agent has no floor that supports patterns for inputs: use only names of tools, such as %q", ErrScope, "deploy_*")
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("%w: invalid pattern: %w: write the name of a tool, with * and ? as wildcards", ErrScope, err)
	}
	return nil
}

// covers reports whether a pattern covers a call. It reports false if the floor cannot
// determine the answer.
func (t *turn) covers(pattern string, c *call) (covered bool) {
	defer func() {
		if p := recover(); p != nil {
			covered = false
			t.agent.opts.Logger.WarnContext(t.base, "the floor panicked while checking a pattern", "session", t.scope.Session, "turn", t.scope.Turn, "panic", p)
		}
	}()
	if floor := t.patterns(); floor != nil {
		covered, err := floor.Covers(t.ctx, pattern, t.toolCall(c))
		if err != nil {
			t.agent.opts.Logger.WarnContext(t.base, "the floor could not check a pattern", "session", t.scope.Session, "turn", t.scope.Turn, "error", err)
		}
		return covered && err == nil
	}
	covered, err := path.Match(pattern, c.Tool)
	return covered && err == nil && checkPattern(nil, pattern) == nil
}

// leaveParked releases a session whose turn is parked, because another process may resume
// the turn.
func (t *turn) leaveParked() {
	if open := t.session.state.Turn; open != nil && open.Parked {
		t.session.release(t.base)
	}
}

// asker is a hook or a part of the floor that asks for approval, with its reason. A hook
// and a part of the floor are different askers even if they have the same name.
type asker struct {
	by, reason string
	floor      bool
}

// stillAsked returns the askers of a call whose questions no grant answers, and the
// grants that answer the questions of the other askers.
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

// asOne makes one question for several askers, with the name of the first asker and the
// reasons of all. The person must see all reasons, because one approval lets the call run.
func asOne(all []asker) asker {
	one := all[0]
	for _, a := range all[1:] {
		one.reason += "; " + a.by + ": " + a.reason
	}
	return one
}

// granted returns the grant that answers an asker's question about a call, or nil.
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

// isAsker reports whether stored is the stored form of the name by. The store redacts
// secrets in names.
func isAsker(stored, by string) bool {
	return stored == by || strings.Contains(stored, redact.Mark) && stored == redact.Text(by)
}

// asGranted returns the decision that follows from grants.
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

// scopeFault returns why a decision may not have its scope. It returns "" if the scope is
// valid.
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
		return "the pattern does not cover the call that was approved"
	}
	return ""
}

// noteNarrowed reports that an approval covers only one call, because its wider scope is
// invalid.
func (t *turn) noteNarrowed(c *call, why string) {
	c.diagnostics = append(c.diagnostics, hook.Diagnostic{
		Code: codes.ApprovalScope, Level: codes.ApprovalScope.Level(), Message: fmt.Sprintf("the scope of approval %s is invalid, so the approval covers only this call", c.approval.ID),
	})
	t.agent.opts.Logger.WarnContext(t.base, "the scope of a decision is invalid, so it covers only one call", "session", t.scope.Session, "turn", t.scope.Turn, "approval", c.approval.ID, "reason", why)
}

// addGrant makes a grant from an approval that covers more than its call. The next commit
// stores the grant.
func (t *turn) addGrant(c *call) {
	c.grant = nil
	a, d := c.approval, c.approval.Decided
	if !d.Allow || !d.Scope.wide() || a.By == AskedByTool { // an answer covers no other question
		return
	}
	if why := t.scopeFault(c, d); why != "" {
		t.noteNarrowed(c, why)
		return
	}
	c.grant = &Grant{Approval: a.ID, Asker: a.By, Floor: a.Floor, Tool: a.Tool, Pattern: d.Scope.Pattern, By: d.By, Time: d.Time}
}
