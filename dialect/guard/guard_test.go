package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/guard"
	"github.com/belay-run/belay/hook"
)

// push is the recorded call of an agent that cannot ask its user.
var push = recorded[dialect.Codex]["shell"]

var approvalID = regexp.MustCompile(`ap-[a-z0-9]+`)

// decide decides the only pending approval.
func (g *guarded) decide(t *testing.T, allow bool, reason string) {
	t.Helper()
	var pending []belay.Approval
	for a, err := range g.store.Approvals(t.Context(), belay.ApprovalFilter{Pending: true}) {
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, a)
	}
	if len(pending) != 1 {
		t.Fatalf("%d approvals are pending, want 1", len(pending))
	}
	if _, err := g.store.Decide(t.Context(), belay.Decision{Approval: pending[0].ID, Hash: pending[0].Hash, Allow: allow, By: "ada", Reason: reason, Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
}

// denies reports whether an output of Codex denies a call.
func denies(o guard.Output) bool {
	return strings.Contains(string(o.Stdout), `"permissionDecision":"deny"`)
}

func TestAnApprovalLetsTheSameCallPassOnce(t *testing.T) { // SPEC B-05
	t.Parallel()
	file := newFile(t)
	g := openEngine(t, file, asked)
	first := g.answer(t, dialect.Codex, "", push)
	id := approvalID.FindString(string(first.Stdout))
	if !denies(first) || id == "" {
		t.Fatalf("the first call gets %s: want a denial that names an approval", first.Stdout)
	}
	if again := g.answer(t, dialect.Codex, "", push); !denies(again) || approvalID.FindString(string(again.Stdout)) != id {
		t.Fatalf("the call gets %s before a decision: want a denial that names %s", again.Stdout, id)
	}
	g.decide(t, true, "")
	other := strings.Replace(push, "git push", "git push --force", 1)
	if out := g.answer(t, dialect.Codex, "", other); !denies(out) {
		t.Fatalf("another call gets %s: want a denial", out.Stdout)
	}
	if out := g.answer(t, dialect.Codex, "", strings.Replace(push, `"c1"`, `"c2"`, 1)); !denies(out) {
		t.Fatalf("the call of another session gets %s: want a denial", out.Stdout)
	}
	g = openEngine(t, file, asked) // another process
	if out := g.answer(t, dialect.Codex, "", push); len(out.Stdout) > 0 || out.Code != 0 {
		t.Fatalf("the approved call gets %s: want no objection", out.Stdout)
	}
	if out := g.answer(t, dialect.Codex, "", push); !denies(out) || approvalID.FindString(string(out.Stdout)) == id {
		t.Fatalf("the next call gets %s: want a denial with a new approval", out.Stdout)
	}
}

func TestTwoRetriesAtTheSameTimeUseAnApprovalOnce(t *testing.T) { // SPEC B-05
	t.Parallel()
	file := newFile(t)
	g := openEngine(t, file, asked)
	g.answer(t, dialect.Codex, "", push)
	g.decide(t, true, "")
	outs := make(chan guard.Output)
	for range 4 {
		each := openEngine(t, file, asked)
		go func() {
			outs <- guard.Answer(context.WithoutCancel(t.Context()), each.Engine, guard.Request{Agent: dialect.Codex, Stdin: []byte(push), Dir: project})
		}()
	}
	passed := 0
	for range 4 {
		if out := <-outs; !denies(out) {
			passed++
		}
	}
	if passed != 1 {
		t.Errorf("%d calls passed with one approval, want 1", passed)
	}
}

func TestADeniedApprovalDeniesWithTheReason(t *testing.T) { // SPEC B-05
	t.Parallel()
	g := newEngine(t, asked)
	g.answer(t, dialect.Codex, "", push)
	g.decide(t, false, "use the release branch")
	if out := g.answer(t, dialect.Codex, "", push); !denies(out) || !strings.Contains(string(out.Stdout), "use the release branch") {
		t.Errorf("the call gets %s: want a denial with the person's reason", out.Stdout)
	}
}

func TestHooksMayApproveInPlaceOfAPerson(t *testing.T) { // SPEC B-05
	t.Parallel()
	for _, allow := range []bool{true, false} {
		approver := belay.ApprovalRequest.On("approver", func(context.Context, belay.ApprovalAsked) (belay.ApprovalVerdict, error) {
			if allow {
				return belay.Allow("known"), nil
			}
			return belay.DenyApproval("unknown"), nil
		}, &hook.Options{Capabilities: hook.CanApprove})
		out := newEngine(t, asked, approver).answer(t, dialect.Codex, "", push)
		if denies(out) == allow {
			t.Errorf("a hook that decides allow=%v: %s", allow, out.Stdout)
		}
	}
}

func TestOneGuardSeesAllSpellings(t *testing.T) { // SPEC B-03, B-05
	t.Parallel()
	pre := func(tool, input string) string {
		return `{"session_id":"s1","cwd":"/srv/shop/web","hook_event_name":"PreToolUse","tool_name":"` + tool + `","tool_input":` + input + `}`
	}
	for _, c := range []struct {
		name, stdin string
		agent       dialect.Vendor
		want        []string
	}{
		{"Write", pre("Write", `{"file_path":"/srv/shop/web/a.ts","content":"x"}`), dialect.ClaudeCode, []string{`write {"content":"x","path":"web/a.ts"}`}},
		{"Edit", pre("Edit", `{"file_path":"/srv/shop/a.go","old_string":"a","new_string":"b"}`), dialect.ClaudeCode, []string{`edit {"new_string":"b","old_string":"a","path":"a.go"}`}},
		{"MultiEdit", pre("MultiEdit", `{"file_path":"/srv/shop/a.go","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":"d"}]}`), dialect.ClaudeCode, []string{`edit {"new_string":"b","old_string":"a","path":"a.go"}`, `edit {"new_string":"d","old_string":"c","path":"a.go"}`}},
		{"a file outside the project", pre("Read", `{"file_path":"/etc/passwd"}`), dialect.ClaudeCode, []string{`read {"path":"/etc/passwd"}`}},
		{"a search in the working directory", pre("Grep", `{"pattern":"x"}`), dialect.ClaudeCode, []string{`grep {"path":"web","pattern":"x"}`}},
		{"a command in another directory", pre("Bash", `{"command":"ls"}`), dialect.ClaudeCode, []string{`shell {"command":"cd -- '/srv/shop/web' \u0026\u0026 ls"}`}},
		{"apply_patch", pre("apply_patch", `{"command":"*** Begin Patch\n*** Add File: a.ts\n+x\n*** Delete File: ../b.go\n*** End Patch"}`), dialect.Codex, []string{`write {"content":"x\n","path":"web/a.ts"}`, `edit {"new_string":"","old_string":"","path":"b.go"}`}},
		{"write_file", strings.Replace(pre("write_file", `{"file_path":"/srv/shop/a.go","content":"x"}`), "PreToolUse", "BeforeTool", 1), dialect.GeminiCLI, []string{`write {"content":"x","path":"a.go"}`}},
		{"beforeReadFile", recorded[dialect.Cursor]["read"], dialect.Cursor, []string{`read {"path":".env"}`}},
		{"an MCP tool", pre("mcp__db__query", `{"sql":"select 1"}`), dialect.ClaudeCode, []string{`db__query {"sql":"select 1"}`}},
		{"an MCP tool of Cursor", recorded[dialect.Cursor]["mcp"], dialect.Cursor, []string{`cursor__query {"sql":"select 1"}`}},
		{"a tool that only the agent has", pre("EnterWorktree", `{"name":"x"}`), dialect.ClaudeCode, []string{`EnterWorktree {"name":"x"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			newEngine(t, passes, seen(&got)).answer(t, c.agent, "", c.stdin)
			if !slices.Equal(got, c.want) {
				t.Errorf("the guard sees\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestOneFileOfAPatchDeniesThePatch(t *testing.T) { // SPEC B-03, B-05
	t.Parallel()
	floor := floorFunc(func(call belay.ToolCall) belay.Authorization {
		if strings.Contains(string(call.Input()), "prod/") {
			return belay.Authorization{Decision: belay.ToolDeny, Reason: "prod is closed", By: "guard prod"}
		}
		return belay.Authorization{Decision: belay.ToolAsk, Reason: "may it?", By: "zone 2"}
	})
	patch := `{"session_id":"c1","cwd":"/srv/shop","hook_event_name":"PreToolUse","tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Add File: a.ts\n+x\n*** Add File: prod/b.ts\n+x\n*** End Patch"}}`
	g := newEngine(t, floor)
	if out := g.answer(t, dialect.Codex, "", patch); !denies(out) || !strings.Contains(string(out.Stdout), "prod is closed") {
		t.Errorf("the patch gets %s: want the denial", out.Stdout)
	}
	for a, err := range g.store.Approvals(t.Context(), belay.ApprovalFilter{}) {
		t.Errorf("a denied patch left an approval: %v %v", a, err)
	}
}

// A gate that cannot be checked denies, in the form that the agent obeys.
func TestFailuresDeny(t *testing.T) { // SPEC B-05
	t.Parallel()
	broken := errors.New("the settings have a mistake")
	for _, c := range []struct {
		name   string
		agent  dialect.Vendor
		event  string
		stdin  string
		stdout string // a part of it; the empty string means no output
		code   int
	}{
		{"no input", dialect.ClaudeCode, "", "", "", 2},
		{"no JSON", dialect.ClaudeCode, "", "hello", "", 2},
		{"null", dialect.Codex, "", "null", "", 2},
		{"a list", dialect.GeminiCLI, "", "[]", "", 2},
		{"no event", dialect.Cursor, "", "{}", "", 2},
		{"no event", dialect.Copilot, "", "{}", `"permissionDecision":"deny"`, 0},
		{"no JSON", dialect.Copilot, "preToolUse", "hello", `"permissionDecision":"deny"`, 0},
		{"no tool", dialect.ClaudeCode, "", `{"hook_event_name":"PreToolUse"}`, "", 2},
		{"no command", dialect.Codex, "", `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}`, "", 2},
		{"no path", dialect.ClaudeCode, "", `{"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"content":"x"}}`, "", 2},
		{"an unknown agent", "emacs", "", `{}`, "", 2},
		{"a call", dialect.ClaudeCode, "", recorded[dialect.ClaudeCode]["shell"], `"permissionDecision":"deny","permissionDecisionReason":"Belay could not check this: the settings have a mistake"`, 0},
		{"a call", dialect.Codex, "", push, `"permissionDecision":"deny"`, 0},
		{"a call", dialect.GeminiCLI, "", recorded[dialect.GeminiCLI]["shell"], `"decision":"deny"`, 0},
		{"a call", dialect.Cursor, "", recorded[dialect.Cursor]["tool"], `"permission":"deny"`, 0},
		{"a call", dialect.Copilot, "preToolUse", recorded[dialect.Copilot]["preToolUse"], `"permissionDecision":"deny"`, 0},
		{"a prompt", dialect.ClaudeCode, "", recorded[dialect.ClaudeCode]["prompt"], `"decision":"block"`, 0},
		{"a prompt", dialect.Cursor, "", recorded[dialect.Cursor]["prompt"], `"continue":false`, 0},
		{"the end of a turn may happen", dialect.ClaudeCode, "", recorded[dialect.ClaudeCode]["stop"], "", 0},
	} {
		t.Run(string(c.agent)+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			out := guard.Refuse(guard.Request{Agent: c.agent, Event: c.event, Stdin: []byte(c.stdin), Dir: project}, broken)
			if out.Code != c.code || c.stdout == "" && len(out.Stdout) > 0 || !strings.Contains(string(out.Stdout), c.stdout) {
				t.Errorf("exit code %d and %s: want %d and %s", out.Code, out.Stdout, c.code, c.stdout)
			}
			if c.stdout == "" && len(out.Stderr) == 0 {
				t.Error("the reason is missing on standard error")
			}
		})
	}
}

func TestAPanicDenies(t *testing.T) { // SPEC B-05
	t.Parallel()
	floor := floorFunc(func(belay.ToolCall) belay.Authorization { panic("bad floor") })
	if out := newEngine(t, floor).answer(t, dialect.Codex, "", push); !denies(out) {
		t.Errorf("the call gets %s: want a denial", out.Stdout)
	}
}

func TestEventsAreRecorded(t *testing.T) { // SPEC B-05
	t.Parallel()
	g := openEngine(t, newFile(t), denied)
	g.answer(t, dialect.ClaudeCode, "", recorded[dialect.ClaudeCode]["shell"])
	journal, ok := g.store.Journal().(hook.ListJournal)
	if !ok {
		t.Fatal("the journal cannot be read")
	}
	var runs []hook.Run
	for run, err := range journal.List(t.Context(), hook.Filter{Session: "claude-code-s1"}) {
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	if len(runs) != 1 || runs[0].Subscription != guard.FloorID || runs[0].Severity != hook.SeverityDeny || runs[0].State != hook.Completed {
		t.Errorf("the records are %v: want one of the floor, with its denial", runs)
	}
	var labels []map[string]string
	for info, err := range g.store.Sessions(t.Context(), belay.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		labels = append(labels, info.Labels)
	}
	if len(labels) != 1 || labels[0][guard.Label] != "claude-code" {
		t.Errorf("the sessions have the labels %v: want one session of claude-code", labels)
	}
}

// Whatever the agent writes, a call that the floor denies is denied: the output says so in
// the agent's form, or the exit code does.
func FuzzADeniedCallIsDenied(f *testing.F) { // SPEC B-05
	for agent, events := range recorded {
		for event, stdin := range events {
			if agent != dialect.Copilot {
				event = ""
			}
			f.Add(string(agent), event, stdin)
		}
	}
	f.Fuzz(func(t *testing.T, agent, event, stdin string) {
		g := newEngine(t, denied)
		out := g.answer(t, dialect.Vendor(agent), event, stdin)
		var asked struct {
			Name string `json:"hook_event_name"`
		}
		_ = json.Unmarshal([]byte(stdin), &asked) // without a name, event is the name
		name := event
		if name == "" {
			name = asked.Name
		}
		if !slices.Contains([]string{"PreToolUse", "preToolUse", "BeforeTool", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile"}, name) || !knownEvent(agent, name) {
			return
		}
		text := string(out.Stdout)
		if out.Code != 2 && !strings.Contains(text, `"permissionDecision":"deny"`) && !strings.Contains(text, `"decision":"deny"`) && !strings.Contains(text, `"permission":"deny"`) {
			t.Errorf("%s %s %q: exit code %d and %s: want a denial", agent, name, stdin, out.Code, text)
		}
	})
}

// knownEvent reports whether an agent has a gate with this name.
func knownEvent(agent, name string) bool {
	switch dialect.Vendor(agent) {
	case dialect.ClaudeCode, dialect.Codex:
		return name == "PreToolUse"
	case dialect.GeminiCLI:
		return name == "BeforeTool"
	case dialect.Cursor:
		return name != "PreToolUse" && name != "BeforeTool"
	case dialect.Copilot:
		return name == "PreToolUse" || name == "preToolUse"
	default:
		return false
	}
}
