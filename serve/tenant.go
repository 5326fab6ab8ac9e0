package serve

import (
	"bytes"
	"path/filepath"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
)

// A token that is limited to labels is a tenant. Tenants see their own conversations, but
// nothing about the machine and the network of the server: no paths of files, no addresses of
// providers, and no texts of errors, which may quote both. Everything that a tenant gets
// passes the functions in this file.

// isTenant reports whether the token is limited to labels.
func (t *Token) isTenant() bool { return len(t.Labels) > 0 }

// hiddenError replaces the text of an error.
const hiddenError = "the operator of the server can read the reason"

// path leaves out the path of a file.
func (t *Token) path(path string) string {
	if t.isTenant() {
		return ""
	}
	return path
}

// why returns why a turn ended. The reasons of hooks and of people are for everybody.
func (t *Token) why(reason belay.EndReason, why string) string {
	if t.isTenant() && reason == belay.EndError && why != "" {
		return hiddenError
	}
	return why
}

// session describes a session for the token.
func (t *Token) session(info *belay.SessionInfo, described api.Session) api.Session {
	if e := described.Ending; e != nil {
		described.Ending = &belay.Ending{By: e.By, Why: t.why(info.State.Last, e.Why)}
	}
	return described
}

// diagnostics leaves out the texts of diagnostics. Their codes stay.
func (t *Token) diagnostics(all []hook.Diagnostic) []hook.Diagnostic {
	if !t.isTenant() {
		return all
	}
	all = slices.Clone(all)
	for i := range all {
		all[i].Message = ""
	}
	return all
}

// run leaves out where a hook was declared.
func (t *Token) run(r hook.Run) hook.Run {
	if t.isTenant() {
		r.Origin.File, r.Origin.Line = "", 0
		r.Diagnostics = t.diagnostics(r.Diagnostics)
	}
	return r
}

// explanation leaves out the texts of failures.
func (t *Token) explanation(x hook.Explanation) hook.Explanation {
	if !t.isTenant() {
		return x
	}
	if x.Error != "" {
		x.Error = hiddenError
	}
	x.Entries = slices.Clone(x.Entries)
	for i := range x.Entries {
		if x.Entries[i].Code != "" && x.Entries[i].Why != "" {
			x.Entries[i].Why = hiddenError
		}
	}
	x.Diagnostics = t.diagnostics(x.Diagnostics)
	return x
}

// advice leaves out paths of files that the call itself does not name, and why a file cannot be
// shown.
func (t *Token) advice(a *api.Advice, input []byte) *api.Advice {
	if !t.isTenant() {
		return a
	}
	a.Findings = slices.DeleteFunc(slices.Clone(a.Findings), func(f api.Finding) bool {
		return filepath.IsAbs(f.Subject) && !bytes.Contains(input, []byte(f.Subject))
	})
	if a.Preview != nil && a.Preview.Problem != "" {
		shown := *a.Preview
		shown.Problem = hiddenError
		a.Preview = &shown
	}
	return a
}

// event describes an event for the token.
func (t *Token) event(e belay.Event) belay.Event {
	if !t.isTenant() {
		return e
	}
	switch e.Kind {
	case belay.EventError, belay.EventHookFailed:
		if e.Text != "" {
			e.Text = hiddenError
		}
	default:
	}
	if e.Diagnostic != nil {
		e.Diagnostic = &t.diagnostics([]hook.Diagnostic{*e.Diagnostic})[0]
	}
	if e.HookRun != nil {
		run := t.run(*e.HookRun)
		e.HookRun = &run
	}
	if e.Subagent != nil && e.Subagent.Status == "error" && e.Subagent.Message != "" {
		child := *e.Subagent
		child.Message = hiddenError
		e.Subagent = &child
	}
	if e.End != nil {
		end := *e.End
		end.Why, end.Diagnostics = t.why(end.Reason, end.Why), t.diagnostics(end.Diagnostics)
		e.End = &end
	}
	return e
}

// models leaves out the addresses and keys of providers.
func (t *Token) models(all *inspect.Models) *inspect.Models {
	if !t.isTenant() {
		return all
	}
	shown := &inspect.Models{Model: all.Model}
	if all.Problem != "" {
		shown.Problem = hiddenError
	}
	for i := range all.Providers {
		p := &all.Providers[i]
		shown.Providers = append(shown.Providers, inspect.Provider{Provider: api.Provider{Name: p.Name, Kind: p.Kind, Status: p.Status, NeedsKey: p.NeedsKey, Models: p.Models}})
	}
	shown.Providers = orEmpty(shown.Providers)
	return shown
}
