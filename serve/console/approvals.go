package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/serve/api"
)

// inboxView is what the inbox shows.
type inboxView struct {
	Pending  []api.Approval // what waits, the oldest first
	Selected string         // the id of the approval
	Approval *api.Approval  // nil if nothing waits
	// Gates explains what the hooks at tool.pre said about the call, in their order, and which of
	// them were not asked. It is nil if that is unknown.
	Gates *api.Explanation
}

// mostPending is how many waiting approvals the inbox shows.
const mostPending = 200

// inbox shows the queue and one approval: the one of the address, or the oldest.
func inbox(ctx context.Context, v *visit) (templ.Component, error) {
	list, err := v.ListApprovals(ctx, api.ListApprovals{Limit: mostPending})
	if err != nil {
		return nil, err
	}
	b := inboxView{Pending: list.Approvals, Selected: v.r.PathValue("approval")}
	for i := range b.Pending {
		if b.Selected == "" { // a call that its tool has parked has no id: nobody can decide it
			b.Selected = b.Pending[i].ID
		}
	}
	if b.Selected == "" {
		return inboxPage(v, b), nil
	}
	one, err := v.ReadApproval(ctx, b.Selected)
	if err != nil {
		return nil, err
	}
	for i := range b.Pending { // the list knows the question and the session's title
		if a := &b.Pending[i]; a.ID == one.ID {
			one.Title, one.Message, one.Agent = cmp.Or(one.Title, a.Title), cmp.Or(one.Message, a.Message), cmp.Or(one.Agent, a.Agent)
		}
	}
	b.Approval = &one
	if b.Gates, err = v.gatesOf(ctx, &one); err != nil {
		return nil, err
	}
	return inboxPage(v, b), nil
}

// gatesOf explains what the hooks at tool.pre said about the call of an approval. It returns nil
// if the records do not say it, or if the token may not see it.
func (v *visit) gatesOf(ctx context.Context, a *api.Approval) (*api.Explanation, error) {
	if a.Advice == nil || a.Advice.SharedHooks || a.Question != "" {
		return nil, nil //nolint:nilnil // unknown
	}
	if len(a.Advice.Hooks) > 0 {
		x, err := v.ExplainRun(ctx, a.Session, a.Advice.Hooks[0].Run)
		return &x, unlessRefused(err)
	}
	if len(v.self.Labels) > 0 {
		return nil, nil //nolint:nilnil // a tenant sees no plan
	}
	list, err := v.PlanHooks(ctx, api.PlanHooks{Phase: belay.ToolPre.Name()})
	var x api.Explanation
	for i := range list.Plans {
		for j := range list.Plans[i].Entries {
			e := &list.Plans[i].Entries[j]
			x.Entries = append(x.Entries, hook.Explained{Position: e.Position, ID: e.ID, Shadow: e.Shadow, Why: "it did not match this call"})
		}
	}
	return &x, unlessRefused(err)
}

// unlessRefused returns an error, but not if the API refused the request: then the page is shown
// without this part.
func unlessRefused(err error) error {
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Status < http.StatusInternalServerError {
		return nil
	}
	return err
}

// gatesLine says how many hooks were asked, and how many were not.
func gatesLine(x *api.Explanation) string {
	asked := 0
	for i := range x.Entries {
		if x.Entries[i].Asked {
			asked++
		}
	}
	line := plural(asked, "hook was asked", "hooks were asked")
	if rest := len(x.Entries) - asked; rest > 0 {
		line += ", " + plural(rest, "was not", "were not")
	}
	return line
}

// queuedPath returns the page of something that waits. A call that its tool has parked has no
// approval, so its session is shown.
func queuedPath(a *api.Approval) string {
	if a.ID == "" {
		return sessionPath(a.Session)
	}
	return approvalPath(a.ID)
}

// phoneClass says what a phone shows: the list, or one approval.
func phoneClass(v *visit) string {
	if v.r.PathValue("approval") == "" {
		return "none"
	}
	return "one"
}

// decide decides an approval and shows the next one.
func decide(ctx context.Context, v *visit) error {
	if err := v.r.ParseForm(); err != nil {
		return err //nolint:wrapcheck // problem looks at it
	}
	form := v.r.PostForm
	in := api.DecideApproval{Approval: v.r.PathValue("approval"), Hash: form.Get("hash"), Reason: strings.TrimSpace(form.Get("reason"))}
	var said string
	switch choice := form.Get("choice"); choice {
	case "once", "session", "pattern":
		in.Allow, in.Scope, in.Reason = true, choice, ""
		if choice == "pattern" {
			in.Pattern = form.Get("pattern")
		}
		said = map[string]string{"once": "Approved once.", "session": "Approved for this session.", "pattern": "Approved, and calls like it."}[choice]
	case "answer":
		answer := form.Get("answer")
		in.Allow, in.Answer = true, &answer
		said = "Answer sent."
	case "deny":
		said = "Denied."
	default:
		return &api.Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("there is no choice %q", choice)}
	}
	if _, err := v.DecideApproval(ctx, in); err != nil {
		if errors.Is(err, belay.ErrDecided) || errors.Is(err, belay.ErrExpired) {
			said = sentence(err.Error())
		} else {
			return err
		}
	}
	v.say(said)
	v.goTo("/approvals")
	return nil
}

// A subject says in a few words what a call does.
type subjectText struct {
	Verb string // such as Run a command
	What string // such as the command
}

// subject describes the call of an approval.
func subject(a *api.Approval) subjectText {
	if a.Question != "" {
		return subjectText{"Question", a.Question}
	}
	var in struct {
		Command string `json:"command"`
		Path    string `json:"path"`
		URL     string `json:"url"`
		Task    string `json:"task"`
	}
	_ = json.Unmarshal(a.Input, &in) // other inputs are shown as they are
	switch {
	case in.Command != "":
		return subjectText{"Run a command", in.Command}
	case a.Tool == "write" && in.Path != "":
		return subjectText{"Write a file", in.Path}
	case a.Tool == "edit" && in.Path != "":
		return subjectText{"Edit a file", in.Path}
	case in.Path != "":
		return subjectText{"Use " + a.Tool, in.Path}
	case in.URL != "":
		return subjectText{"Use " + a.Tool, in.URL}
	}
	return subjectText{"Use " + a.Tool, string(a.Input)}
}

// commandOf returns the command of a call, or "".
func commandOf(a *api.Approval) string {
	var in struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal(a.Input, &in) // other inputs have none
	return in.Command
}

// stateOf returns waiting, approved, denied or expired.
func stateOf(a *api.Approval) string {
	switch {
	case a.Decided != nil && a.Decided.Allow:
		return "approved"
	case a.Decided != nil && a.Decided.By == "expiry":
		return "expired"
	case a.Decided != nil:
		return "denied"
	case a.Expired || !a.Expires.IsZero() && a.Expires.Before(time.Now()):
		return "expired"
	default:
		return "waiting"
	}
}

// agentOf returns the name of the agent that asks.
func agentOf(a *api.Approval) string { return cmp.Or(a.Agent, "The agent") }

// whyOf says in one sentence who asks, and why.
func whyOf(a *api.Approval) string {
	if a.Advice != nil && a.Advice.Why != "" {
		return sentence(a.Advice.Why)
	}
	return sentence(a.Reason + " (" + a.By + ")")
}

// answerOf says what a hook answered.
func answerOf(h *api.HookAnswer) string {
	switch {
	case h.Code != "":
		return "failed: " + string(h.Code)
	case h.Asked:
		return "asked for approval"
	case len(h.Contributed) == 0:
		return "no objection"
	default:
		return strings.Join(h.Contributed, ", ")
	}
}

// actionOf says what a write does to a file.
func actionOf(p *api.Preview) string {
	switch p.Action {
	case "created":
		return "new file"
	case "overwritten":
		return "overwrites the file"
	case "unchanged":
		return "changes nothing"
	default:
		return cmp.Or(p.Action, "fails")
	}
}

// zone returns how far a finding reaches, for its colour. What a protection watches is never
// shown as harmless.
func zone(f *api.Finding) string {
	if f.Protection != "" {
		return "5"
	}
	return strconv.Itoa(min(max(f.Zone, 0), 5))
}

func orElse(text, other string) string { return cmp.Or(text, other) }

// diffLine is one line of a unified diff.
type diffLine struct{ Class, Old, New, Sign, Text string }

// diffLines parses a unified diff. The lines of its header are left out: the page shows the
// path above the diff.
func diffLines(text string) []diffLine {
	var all []diffLine
	before, after, inHunk := 0, 0, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "@@"):
			inHunk = true
			before, after = hunkStart(line, '-'), hunkStart(line, '+')
			all = append(all, diffLine{Class: "hunk", Text: line})
		case !inHunk:
		case strings.HasPrefix(line, "+"):
			all = append(all, diffLine{"add", "", strconv.Itoa(after), "+", line[1:]})
			after++
		case strings.HasPrefix(line, "-"):
			all = append(all, diffLine{"del", strconv.Itoa(before), "", "−", line[1:]})
			before++
		case strings.HasPrefix(line, `\`):
			all = append(all, diffLine{Class: "hunk", Text: strings.TrimPrefix(line, `\ `)})
		default:
			all = append(all, diffLine{"", strconv.Itoa(before), strconv.Itoa(after), "", strings.TrimPrefix(line, " ")})
			before++
			after++
		}
	}
	return all
}

// hunkStart returns the first line of one side of a hunk, such as @@ -3,7 +3,9 @@.
func hunkStart(line string, side byte) int {
	_, rest, found := strings.Cut(line, " "+string(side))
	if !found {
		return 1
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	n, err := strconv.Atoi(rest[:end])
	if err != nil {
		return 1
	}
	return n
}
