package serve_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
)

// asksBeforeWrites is a project with a hook that asks before every write, and a file that nobody
// may read.
func asksBeforeWrites() map[string]string {
	return map[string]string{
		".belay/hooks/careful.yaml": "hooks:\n  - {id: careful, phase: tool.pre, match: {tools: [write, shell]}, action: {approve: look at it first}}\n  - {id: quiet, phase: tool.pre, match: {tools: [write]}, action: log}\n",
		"belay.yaml":                "permit:\n  rules:\n    - deny read(secret.txt)\n",
		"notes.md":                  "old\nsame\n",
		"secret.txt":                "the launch code\n",
	}
}

// The list of approvals says what the user asked for, and an approval says who asks and why, what
// the floor found, what each hook answered, and what would change in the file as it is now.
//
// SPEC V-02
func TestWhatAnApprovalShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksBeforeWrites(), nil)
	w.token("reader", nil, serve.RoleRead)
	id := w.newSession()
	w.turn("admin", id, `call write {"path": "notes.md", "content": "new\nsame\n"}`)
	var list api.ApprovalList
	w.call("admin", "GET", "/v1/approvals", nil, &list)
	if len(list.Approvals) != 1 {
		t.Fatalf("there are %d approvals, want 1", len(list.Approvals))
	}
	row := list.Approvals[0]
	if row.Agent != "main" || !strings.HasPrefix(row.Title, "call write") || !strings.HasPrefix(row.Message, "call write") || row.Expired {
		t.Errorf("the row is %+v", row)
	}
	var one api.Approval
	w.call("admin", "GET", "/v1/approvals/"+row.ID, nil, &one)
	advice := one.Advice
	if one.Message != row.Message || advice == nil {
		t.Fatalf("the approval is %+v", one)
	}
	if want := "Agent main wants to call write, and a hook (project/careful) needs your approval: look at it first."; advice.Why != want {
		t.Errorf("the reason is %q, want %q", advice.Why, want)
	}
	if len(advice.Findings) != 1 || advice.Findings[0].Subject != "notes.md" || advice.Findings[0].Text != "Changes notes.md." {
		t.Errorf("the findings are %+v", advice.Findings)
	}
	if p := advice.Preview; p == nil || p.Action != "overwritten" || !strings.Contains(p.Diff, "-old\n+new\n same\n") || p.Added != 1 || p.Removed != 1 {
		t.Errorf("the preview is %+v", p)
	}
	if h := advice.Hooks; len(h) != 2 || h[0].Hook != "project/careful" || !h[0].Asked || h[0].Verdict != "ask" || h[1].Asked || h[1].Verdict != "" || advice.SharedHooks {
		t.Errorf("the hooks are %+v", h)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "notes.md"), []byte("changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.call("admin", "GET", "/v1/approvals/"+row.ID, nil, &one)
	if p := one.Advice.Preview; !strings.Contains(p.Diff, "-changed") {
		t.Errorf("the preview is not about the file as it is now: %+v", p)
	}
	var read api.Approval
	w.call("reader", "GET", "/v1/approvals/"+row.ID, nil, &read)
	if read.Advice.Preview != nil {
		t.Errorf("a token that may not decide sees the file: %+v", read.Advice.Preview)
	}
	w.call("admin", "POST", "/v1/approvals/"+row.ID+"/decision", map[string]any{"hash": row.Hash, "allow": false}, nil)
	var decided api.Approval
	w.call("admin", "GET", "/v1/approvals/"+row.ID, nil, &decided)
	if decided.Advice.Pattern != "" || decided.Advice.Preview != nil || !strings.HasPrefix(decided.Message, "call write") {
		t.Errorf("the decided approval is %+v %+v", decided, decided.Advice)
	}
}

// A preview says that the file has changed since the agent read it: then the call would be refused
// although it is approved.
//
// SPEC V-02, U-01
func TestPreviewOfAChangedFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksBeforeWrites(), nil)
	id := w.newSession()
	w.turn("admin", id, `call read {"path": "notes.md"}`)
	approval := w.turn("admin", id, `call write {"path": "notes.md", "content": "new"}`).Result.Approvals[0]
	preview := func() *api.Preview {
		var one api.Approval
		w.call("admin", "GET", "/v1/approvals/"+approval, nil, &one)
		return one.Advice.Preview
	}
	if p := preview(); p.Problem != "" || p.Diff == "" {
		t.Errorf("the preview of the file that was read is %+v", p)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "notes.md"), []byte("changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p := preview(); !strings.Contains(p.Problem, "has changed since the agent read it") || p.Diff == "" {
		t.Errorf("the preview of the changed file is %+v", p)
	}
}

// A preview shows a new file, says why an edit would fail, and hides a file that may not be read.
//
// SPEC V-02, V-05
func TestPreviews(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksBeforeWrites(), nil)
	w.token("tenant", map[string]string{"tenant": "a"}, serve.RoleAdmin)
	for _, test := range []struct {
		rule, call, want string
	}{
		{"a new file is shown whole", `write {"path": "new.md", "content": "first\n"}`, "created +first"},
		{"a file that may not be read is not shown", `write {"path": "secret.txt", "content": "x\n"}`, "reading it is denied"},
	} {
		id := w.labelled()
		approval := w.turn("admin", id, "call "+test.call).Result.Approvals[0]
		var one api.Approval
		w.call("admin", "GET", "/v1/approvals/"+approval, nil, &one)
		p := one.Advice.Preview
		text := p.Action + " " + p.Problem + " " + p.Diff
		for want := range strings.FieldsSeq(test.want) {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the preview is %+v, want %s", test.rule, p, test.want)
			}
		}
		body := string(w.send("tenant", "GET", "/v1/approvals/"+approval, nil, nil).body)
		if strings.Contains(text+body, "launch code") || strings.Contains(body, w.dir) {
			t.Errorf("%s: the response shows too much: %s", test.rule, body)
		}
	}
}

// A shell command is shown with its parts.
//
// SPEC V-02
func TestParsedCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksBeforeWrites(), nil)
	approval := w.turn("admin", w.newSession(), `call shell {"command": "ls && curl https://example.com/x"}`).Result.Approvals[0]
	var one api.Approval
	w.call("admin", "GET", "/v1/approvals/"+approval, nil, &one)
	var texts []string
	for _, f := range one.Advice.Findings {
		texts = append(texts, f.Text)
	}
	said := strings.Join(texts, "\n")
	for _, want := range []string{"Runs ls", "Runs curl", "Connects to https://example.com/x"} {
		if !strings.Contains(said, want) {
			t.Errorf("the findings have no %q:\n%s", want, said)
		}
	}
	if one.Advice.Preview != nil {
		t.Errorf("a command has a preview: %+v", one.Advice.Preview)
	}
}

// The count is the length of the list, for each token. It does not count what is decided.
//
// SPEC V-02, V-06
func TestCountApprovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksBeforeWrites(), nil)
	w.token("shop", map[string]string{"team": "shop"}, serve.RoleRun, serve.RoleApprove)
	var mine api.Session
	w.call("shop", "POST", "/v1/sessions", map[string]any{}, &mine)
	w.turn("shop", mine.ID, `call write {"path": "notes.md", "content": "new"}`)
	first := w.turn("admin", w.newSession(), `call write {"path": "notes.md", "content": "new"}`).Result.Approvals[0]
	w.turn("admin", w.newSession(), `call write {"path": "other.md", "content": "new"}`)
	check := func(as string, want int) {
		t.Helper()
		var count api.ApprovalCount
		var list api.ApprovalList
		w.call(as, "GET", "/v1/approval-count", nil, &count)
		w.call(as, "GET", "/v1/approvals", nil, &list)
		if count.Waiting != want || len(list.Approvals) != want {
			t.Errorf("the token %s counts %d and lists %d, want %d", as, count.Waiting, len(list.Approvals), want)
		}
	}
	check("admin", 3)
	check("shop", 1)
	var one api.Approval
	w.call("admin", "GET", "/v1/approvals/"+first, nil, &one)
	w.call("admin", "POST", "/v1/approvals/"+first+"/decision", map[string]any{"hash": one.Hash, "allow": false}, nil)
	check("admin", 2)
}
