package assembly

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main() // the sandbox starts this test binary to run confined commands
	os.Exit(m.Run())
}

// load loads the settings of a new user and a new project.
func load(t *testing.T, user string, environ ...string) *config.Loaded {
	t.Helper()
	dir := t.TempDir()
	o := &config.Options{Dir: filepath.Join(dir, "project"), UserDir: filepath.Join(dir, "user"), Environ: environ}
	for path, text := range map[string]string{filepath.Join(o.Dir, "go.mod"): "module x\n", config.UserPath(o.UserDir): user} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := config.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// floorFor makes a floor from settings.
func floorFor(t *testing.T, s *config.Loaded) *Floor {
	t.Helper()
	f, err := New(nil).NewFloor(t.Context(), s, SpillDir(s))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// toolCall returns a call that the floor can check.
func toolCall(t *testing.T, id, tool string, input any) belay.ToolCall {
	t.Helper()
	data, err := json.Marshal(map[string]any{"id": id, "tool": tool, "input": input})
	if err != nil {
		t.Fatal(err)
	}
	call, err := belay.ToolPre.DecodeInput(hook.Scope{Session: "s", Turn: "t", Step: 1}, data)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// The mode of a turn decides which of its calls run.
//
// SPEC P-04
func TestModes(t *testing.T) {
	t.Parallel()
	calls := []struct {
		tool  string
		input map[string]string
	}{
		{"read", map[string]string{"path": "go.mod"}},
		{"write", map[string]string{"path": "x.go", "content": "package x\n"}},
		{"fetch", map[string]string{}}, // its effects are unknown
	}
	want := map[string]string{
		"read-only":  "pass/deny/deny",
		"plan":       "pass/deny/deny",
		"strict":     "pass/ask/ask",
		"standard":   "pass/pass/ask",
		"build":      "pass/pass/ask",
		"permissive": "pass/pass/ask",
		"unattended": "pass/pass/deny",
	}
	if len(want) != len(permit.Modes()) {
		t.Fatalf("there are %d modes, want %d", len(permit.Modes()), len(want))
	}
	for _, mode := range permit.Modes() {
		f := floorFor(t, load(t, "", "BELAY_MODE="+mode.Name))
		var got []string
		for _, c := range calls {
			a, err := f.Authorize(t.Context(), toolCall(t, "1", c.tool, c.input))
			if err != nil {
				t.Fatal(err)
			}
			word := string(a.Decision)
			if word == "" {
				word = "pass"
			} else if !strings.HasPrefix(a.By, "zone ") || !strings.Contains(a.Reason, mode.Name+" mode") {
				t.Errorf("%s in %s mode: by %q for the reason %q: it must say which zone and which mode", c.tool, mode.Name, a.By, a.Reason)
			}
			got = append(got, word)
		}
		if all := strings.Join(got, "/"); all != want[mode.Name] {
			t.Errorf("%s mode does %s, want %s", mode.Name, all, want[mode.Name])
		}
	}
}

// The floor uses the user's settings.
//
// SPEC P-01, P-05, P-06
func TestFloorHeedsSettings(t *testing.T) {
	t.Parallel()
	s := load(t, `
permit:
  rules: ["deny write(vendor/**)", "allow deploy(target=test)"]
  guards: [{id: no-prod, deny: prod}]
  relax: [self.git]
  roots: [../shared, ../missing]
  tools: {deploy: {zone: 4}, look: {zone: 0, reads: [at]}}
`)
	shared := filepath.Join(filepath.Dir(s.Project), "shared")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	f := floorFor(t, s)
	for _, test := range []struct {
		rule, tool, input string
		want              belay.ToolDecision
		by                string
	}{
		{"a rule denies", "write", `{"path": "vendor/x"}`, belay.ToolDeny, "rule deny write(vendor/**)"},
		{"a user's rule allows", "deploy", `{"target": "test"}`, belay.ToolPass, ""},
		{"it allows nothing else", "deploy", `{"target": "live"}`, belay.ToolAsk, "zone 4"},
		{"a guard denies what a rule allows", "deploy", `{"target": "test", "note": "like prod"}`, belay.ToolDeny, "guard no-prod"},
		{"a tool that was described is known", "look", `{"at": "x"}`, belay.ToolPass, ""},
		{"its paths are judged", "look", `{"at": "/etc/passwd"}`, belay.ToolDeny, "protection files.outside"},
		{"a root can be used", "write", fmt.Sprintf(`{"path": %q}`, filepath.Join(shared, "x")), belay.ToolPass, ""},
		{"what is beside it cannot", "write", fmt.Sprintf(`{"path": %q}`, shared+"2/x"), belay.ToolDeny, "protection files.outside"},
		{"the user's own settings are protected wherever they are", "write", fmt.Sprintf(`{"path": %q}`, filepath.Join(s.UserDir, "belay.yaml")), belay.ToolDeny, "protection self.files"},
		{"a protection that holds", "write", `{"path": ".claude/x"}`, belay.ToolDeny, "protection self.files"},
		{"a protection that is relaxed", "write", `{"path": ".git/hooks/pre-commit"}`, belay.ToolAsk, "zone 5"},
	} {
		a, err := f.Authorize(t.Context(), toolCall(t, "1", test.tool, json.RawMessage(test.input)))
		if err != nil {
			t.Fatal(err)
		}
		if a.Decision != test.want || a.By != test.by {
			t.Errorf("%s: %s %s is %q by %q: %s; want %q by %q", test.rule, test.tool, test.input, a.Decision, a.By, a.Reason, test.want, test.by)
		}
	}
	if line := f.relaxed(); line != "relaxed: self.git ("+s.UserFile+":5)" {
		t.Errorf("what is relaxed is told so: %q", line)
	}
}

// The sandbox uses the findings of the check. After two checks it uses the stricter
// findings.
//
// SPEC P-12
func TestJudgementsAreRemembered(t *testing.T) {
	t.Parallel()
	f := floorFor(t, load(t, ""))
	input := json.RawMessage(`{"command":"echo x > link/there"}`)
	link := filepath.Join(f.settings.Project, "link")
	call := toolCall(t, "1", "shell", input)
	name := judgedCall{"s", "t", "1", string(call.Input())}
	judge := func() judgements {
		t.Helper()
		if _, err := f.Authorize(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		return f.recall(name)
	}
	if judge().strictest.Outside(nil) {
		t.Fatal("it is in the project")
	}
	if err := os.Symlink("/usr", link); err != nil {
		t.Fatal(err)
	}
	if e := f.Explain(t.Context(), "shell", input); !e.Outside(nil) {
		t.Fatal("the link leads outside")
	}
	switch now := judge(); {
	case now.strictest.Outside(nil):
		t.Error("the link was made after the call was judged, and lets it out")
	case !now.last.Outside(nil):
		t.Error("a person who is asked again is shown the first judgement")
	}
	for i := range mostJudged + 1 {
		f.remember(judgedCall{id: fmt.Sprint("other", i)}, new(permit.Explanation))
	}
	if len(f.judged) > mostJudged || f.recall(name) != (judgements{}) {
		t.Errorf("%d calls are remembered, the oldest too", len(f.judged))
	}
}

// SPEC U-02
// A mode that a person chooses counts at once for the session and its subagents, and for no
// other session.
func TestSessionModes(t *testing.T) {
	t.Parallel()
	f := floorFor(t, load(t, ""))
	before := f.ModeOf("s").Name
	decide := func(session string) belay.ToolDecision {
		call, err := belay.ToolPre.DecodeInput(hook.Scope{Session: session}, []byte(`{"id":"1","tool":"write","input":{"path":"x","content":"y"}}`))
		if err != nil {
			t.Fatal(err)
		}
		a, err := f.Authorize(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		return a.Decision
	}
	if decide("s") != belay.ToolPass {
		t.Fatalf("%s mode asks about a change of the project", before)
	}
	if err := f.SetMode("s", "strict"); err != nil {
		t.Fatal(err)
	}
	for session, want := range map[string]belay.ToolDecision{"s": belay.ToolAsk, "s/1": belay.ToolAsk, "other": belay.ToolPass} {
		if got := decide(session); got != want {
			t.Errorf("in session %s the floor says %q, want %q", session, got, want)
		}
	}
	if f.ModeOf("s").Name != "strict" {
		t.Errorf("the mode is %s", f.ModeOf("s").Name)
	}
	if name, from, after := f.modeToRemember("s", f.settings); name != "strict" || from != "flag" || after != "strict" {
		t.Errorf("a turn remembers %s from %s, and %s after a plan", name, from, after)
	}
	if err := f.SetMode("s", "strikt"); err == nil {
		t.Error("a mode that does not exist is accepted")
	}
	if err := f.SetMode("s", ""); err != nil || decide("s") != belay.ToolPass {
		t.Errorf("the session does not follow the settings again: %v", err)
	}
}

// A pattern must cover the call that a person decides about.
func TestCheckPattern(t *testing.T) {
	t.Parallel()
	f := floorFor(t, load(t, ""))
	q := belay.Question{Approval: belay.Approval{Session: "s", Turn: "t", Call: "1", Tool: "shell"}, Input: json.RawMessage(`{"command":"git push origin main"}`)}
	in := f.In(f.Explained(t.Context(), q).Mode)
	for pattern, want := range map[string]string{
		"shell(git push *)":           "",
		"shell(git push origin main)": "",
		"shell(ls *)":                 `"shell(ls *)" does not cover this call: "shell(git push origin main)" does`,
		"shell(":                      "the parenthesis is not closed",
	} {
		if err := CheckPattern(t.Context(), in, pattern, q.Tool, q.Input); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: the error is %v, want %q in it", pattern, err, want)
		}
	}
}
