package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/recorded"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/toolbox"
)

// MessageLength is how many characters of the user's message an approval has.
const MessageLength = 500

// whyOf says in one sentence who asks for approval, and why.
func whyOf(a *belay.Approval, agent string) string {
	who := "a hook (" + a.By + ")"
	if a.Floor {
		who = "the floor (" + a.By + ")"
	}
	if agent == "" {
		agent = "the agent"
	} else {
		agent = "agent " + agent
	}
	reason, _, _ := strings.Cut(a.Reason, "; to avoid this question") // it is about settings, not about this call
	if reason == "" {
		return fmt.Sprintf("%s wants to call %s, and %s needs your approval.", upperFirst(agent), a.Tool, who)
	}
	return fmt.Sprintf("%s wants to call %s, and %s needs your approval: %s.", upperFirst(agent), a.Tool, who, strings.TrimRight(reason, ". "))
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// findingsOf describes what the floor has found about a call, in order. It joins findings of one
// kind about one subject.
func findingsOf(e *permit.Explanation) []api.Finding {
	var all []api.Finding
	whys := make(map[int][]string)
	for i := range e.Findings {
		f := &e.Findings[i]
		at := slices.IndexFunc(all, func(known api.Finding) bool { return known.Kind == string(f.Kind) && known.Subject == f.Subject })
		if at < 0 {
			at = len(all)
			all = append(all, api.Finding{Kind: string(f.Kind), Subject: f.Subject, Line: f.Line})
		}
		one := &all[at]
		one.Zone = max(one.Zone, int(f.Zone))
		if one.Protection == "" {
			one.Protection = f.Protection
		}
		one.Asks = one.Asks || asksAbout(e, f)
		if f.Why != "" && !slices.Contains(whys[at], f.Why) {
			whys[at] = append(whys[at], f.Why)
		}
	}
	for i := range all {
		one := &all[i]
		one.Text = findingVerbs[permit.Kind(one.Kind)] + " " + one.Subject
		if len(whys[i]) > 0 {
			one.Text += ": " + strings.Join(whys[i], "; ")
		}
		one.Text += "."
	}
	if len(all) > 1 { // the tool itself says nothing new
		all = slices.DeleteFunc(all, func(f api.Finding) bool { return f.Kind == string(permit.KindTool) })
	}
	return all
}

// asksAbout reports whether a finding is a reason why the floor asks.
func asksAbout(e *permit.Explanation, f *permit.Finding) bool {
	return slices.ContainsFunc(e.Opinions, func(o permit.Opinion) bool {
		switch {
		case o.Decision != belay.ToolAsk:
			return false
		case strings.HasPrefix(o.By, "zone "): // it names only the worst finding
			return f.Zone > e.Mode.Auto
		default:
			return o.About == f.Subject
		}
	})
}

// causeOf says in a few words why a call needs approval. Unlike whyOf, it leaves out what a
// person sees beside it: the tool, and who asks.
func causeOf(a *belay.Approval, e *permit.Explanation, findings []api.Finding) string {
	reason, _, _ := strings.Cut(a.Reason, "; to avoid this question") // it is about settings, not about this call
	switch {
	case a.By == belay.AskedByTool:
		return strings.TrimRight(reason, ". ")
	case !a.Floor:
		return "hook " + a.By + " asks: " + strings.TrimRight(reason, ". ")
	}
	at := slices.IndexFunc(findings, func(f api.Finding) bool { return f.Asks })
	for i := range findings {
		if findings[i].Asks && findings[i].Zone > findings[at].Zone {
			at = i
		}
	}
	if at < 0 {
		return strings.TrimRight(reason, ". ")
	}
	cause := strings.ToLower(findings[at].Text[:1]) + strings.TrimRight(findings[at].Text[1:], ".")
	switch by := e.By; {
	case strings.HasPrefix(by, "rule "):
		cause += "; a rule asks about it"
	case strings.HasPrefix(by, "zone "):
		cause += "; " + e.Mode.Name + " mode asks first"
	}
	return cause
}

// Advise describes a call that waits for a decision in this process. store has its session. It
// may be nil.
func Advise(ctx context.Context, settings *config.Loaded, f *assembly.Floor, store belay.Store, q belay.Question) (api.Advice, error) {
	e := f.Explained(ctx, q)
	advice, in := describe(f, e, &q.Approval, q.Agent), f.In(e.Mode)
	advice.Pattern = in.Suggest(ctx, q.Tool, q.Input)
	var err error
	advice.Preview, err = previewIn(ctx, settings, f.Roots(), in, store, &q.Approval, q.Input)
	return advice, err
}

// describe returns the part of the advice that needs no file and no record.
func describe(f *assembly.Floor, e *permit.Explanation, a *belay.Approval, agent string) api.Advice {
	findings := findingsOf(e)
	return api.Advice{Reach: e.Reach(), Run: f.Confinement(e), Why: whyOf(a, agent), Cause: causeOf(a, e, findings), Findings: findings}
}

var findingVerbs = map[permit.Kind]string{
	permit.KindTool: "Calls", permit.KindCommand: "Runs", permit.KindRead: "Reads", permit.KindWrite: "Changes", permit.KindURL: "Connects to", permit.KindUnknown: "Has an unknown effect:",
}

// previewIn returns what a call that waits for a decision would change now, and whether it would be
// refused. If store is nil, it does not know what the session has read.
func previewIn(ctx context.Context, settings *config.Loaded, others []string, in *permit.Floor, store belay.Store, a *belay.Approval, input json.RawMessage) (*api.Preview, error) {
	preview, now, err := previewOf(ctx, settings, others, in, a.Tool, input)
	if err == nil && now != "" && store != nil {
		preview.Problem, err = staleIn(ctx, store, a.Session, preview.Path, now)
	}
	return preview, err
}

// previewOf returns what a write or an edit would change now. It returns nil for other tools. If
// the floor denies reading the file, the preview does not show its content. now is the hash of the
// file as it is, or "" for a file that does not exist.
func previewOf(ctx context.Context, settings *config.Loaded, others []string, in *permit.Floor, tool string, input json.RawMessage) (preview *api.Preview, now string, err error) {
	if tool != "write" && tool != "edit" {
		return nil, "", nil
	}
	var to struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(input, &to); err != nil {
		return &api.Preview{Problem: "the input of the call is not valid"}, "", nil
	}
	read, err := json.Marshal(to)
	if err != nil {
		return nil, "", fmt.Errorf("preview: %w", err)
	}
	if e := in.Explain(ctx, "read", read); e.Decision == belay.ToolDeny {
		return &api.Preview{Path: to.Path, Problem: "the content of the file is not shown, because reading it is denied: " + e.Reason}, "", nil
	}
	var roots []*os.Root
	defer func() {
		for _, root := range roots {
			_ = root.Close() // ignore errors: the files were only read
		}
	}()
	for _, dir := range append([]string{settings.Project}, others...) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, "", fmt.Errorf("preview: %w", err)
		}
		roots = append(roots, root)
	}
	view, _, err := toolbox.Preview(roots[0], &toolbox.Options{Extra: roots[1:]}, tool, input)
	if err != nil {
		return &api.Preview{Path: to.Path, Problem: err.Error()}, "", nil
	}
	return &api.Preview{Path: view.Path, Action: view.Action, Diff: view.Diff, Cut: view.Cut, Added: view.Added, Removed: view.Removed}, view.Seen, nil
}

// staleIn returns why a change of a file would be refused although it is approved: the file is
// not what the session has seen last.
func staleIn(ctx context.Context, store belay.Store, session, path, now string) (problem string, err error) {
	seen, err := recorded.Seen(store.Read(ctx, session, 0), path)
	if err != nil || seen == "" || now == "" || seen == now {
		return "", err
	}
	return "the file has changed since the agent read it, so the call would be refused, and the agent must read the file again", nil
}

// calledIn finds the response with the call of an approval, and the user's message of its turn.
// It reads the transcript from its end. Both may be nil.
func calledIn(ctx context.Context, store belay.Store, info *belay.SessionInfo, approval *belay.Approval) (response, user *belay.Message, err error) {
	begun := false
	for before := info.Last + 1; before > 1; {
		window, err := MessagesBefore(ctx, store, info.ID, before, turnWindow)
		if err != nil {
			return nil, nil, err
		}
		if len(window) == 0 {
			break
		}
		for _, m := range window {
			before = m.Seq
			switch {
			case m.Turn == approval.Turn:
				begun = true
			case begun:
				return response, user, nil
			default:
				continue
			}
			if response == nil && slices.ContainsFunc(m.Calls(), func(c *belay.CallPart) bool { return c.ID == approval.Call }) {
				response = m
			}
			if m.Kind == belay.KindUser {
				user = m
			}
		}
	}
	return response, user, nil
}

// inputIn returns the input of a call in a response.
func inputIn(response *belay.Message, call string) (input json.RawMessage) {
	for _, c := range response.Calls() {
		if c.ID != call {
			continue
		}
		if input = c.Input; c.Final != nil {
			input = c.Final
		}
	}
	return input
}

// askedHooks returns the hooks that were asked about the call of an approval, from the journal.
// shared says that the records may be about other calls of the same response too.
func askedHooks(ctx context.Context, store belay.Store, approval *belay.Approval, response *belay.Message) (hooks []api.HookAnswer, shared bool, err error) {
	with, ok := store.(belay.JournalStore)
	if !ok {
		return nil, false, nil
	}
	journal, ok := with.Journal().(hook.ListJournal)
	if !ok {
		return nil, false, nil
	}
	askers := strings.Split(approval.By, ", ")
	var order []string // the dispatches
	runs := make(map[string][]hook.Run)
	asks := make(map[string]bool) // the dispatches in which one of the askers asked
	for r, err := range journal.List(ctx, hook.Filter{Session: approval.Session, Turn: approval.Turn, Phase: belay.ToolPre.Name()}) {
		if err != nil {
			return nil, false, err
		}
		if r.Scope.Step != response.Step {
			continue
		}
		if runs[r.Dispatch] == nil {
			order = append(order, r.Dispatch)
		}
		runs[r.Dispatch] = append(runs[r.Dispatch], r)
		if !approval.Floor && r.Severity == hook.SeverityAsk && slices.Contains(askers, r.Subscription) {
			asks[r.Dispatch] = true
		}
	}
	switch {
	case len(order) == 0:
		return nil, false, nil
	case len(response.Calls()) == 1:
		order = order[len(order)-1:] // a turn that was resumed may have asked again
	case len(asks) == 1:
		order = slices.DeleteFunc(order, func(d string) bool { return !asks[d] })
	default:
		shared = len(order) > 1
	}
	for _, dispatch := range order {
		for i := range runs[dispatch] {
			r := &runs[dispatch][i]
			one := api.HookAnswer{Hook: r.Subscription, Run: r.ID, State: r.State, Code: r.Class, Latency: r.Latency, Shadow: r.Shadow, Asked: !approval.Floor && slices.Contains(askers, r.Subscription)}
			for _, d := range r.Contributed {
				one.Contributed = append(one.Contributed, d.Kind)
			}
			if r.Severity > hook.SeverityPass {
				one.Verdict = r.Severity.String()
			}
			hooks = append(hooks, one)
		}
	}
	return hooks, shared, nil
}

// UserMessage returns what the user asked for in the open turn of a session, or in that of its
// parent if the session belongs to a subagent. It reads no message.
func UserMessage(ctx context.Context, store belay.ListStore, info *belay.SessionInfo) (string, error) {
	if IsChild(info.ID) {
		parent, found, err := FindSession(ctx, store, ParentOf(info.ID))
		if err != nil {
			return "", err
		}
		if found && parent.State.Turn != nil {
			info = &parent
		}
	}
	if info.State.Turn == nil {
		return "", nil
	}
	return Beginning(info.State.Turn.Text, MessageLength), nil
}
