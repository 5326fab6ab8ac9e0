package vendorhook_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/vendorhook"
)

// SPEC B-02
func TestNothingInAHookFileIsIgnoredInSilence(t *testing.T) {
	t.Parallel()
	command := func(more string) string {
		return `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"true"` + more + `}]}]}}`
	}
	for name, c := range map[string]struct {
		text, want string
		hooks      int
		refused    int
	}{
		"seconds":             {command(`,"timeout":5000`), "milliseconds are probably meant", 1, 0},
		"no number":           {command(`,"timeout":"soon"`), "timeout must be a number", 1, 0},
		"an unknown key":      {command(`,"colour":"red"`), `unknown key "colour"`, 1, 0},
		"once":                {command(`,"once":true`), "once has no effect", 1, 0},
		"asyncRewake":         {command(`,"asyncRewake":"yes"`), "asyncRewake must be true or false", 1, 0},
		"async":               {command(`,"async":1`), "async must be true or false", 1, 0},
		"args":                {command(`,"args":"-v"`), "args is", 1, 0},
		"hooks as an object":  {`{"hooks":{"Stop":[{"hooks":{"type":"command","command":"true"}}]}}`, "hooks of Stop is", 0, 1},
		"no hooks":            {`{"hooks":{"Stop":[{"matcher":""}]}}`, "has no hooks", 0, 0},
		"one too many":        {`{"hooks":{"Stop":[{"type":"command","command":"true","hooks":[{"type":"command","command":"true"}]}]}}`, "not in a list hooks", 1, 1},
		"a shell":             {command(`,"shell":"fish"`), `no shell "fish"`, 0, 1},
		"if":                  {command(`,"if":"Bash("`), "no closing parenthesis", 1, 0},
		"a prompt":            {`{"hooks":{"Stop":[{"hooks":[{"type":"prompt","prompt":"done?"}]}]}}`, "type prompt does not run", 0, 1},
		"an agent":            {`{"hooks":{"Stop":[{"hooks":[{"type":"agent"}]}]}}`, "type agent does not run", 0, 1},
		"no command":          {`{"hooks":{"Stop":[{"hooks":[{"type":"command"}]}]}}`, "has no command", 0, 1},
		"no list of hooks":    {`{"hooks":{"Stop":[{"type":"command","command":"true"}]}}`, "not in a list hooks", 0, 1},
		"an unknown event":    {`{"hooks":{"PreToolUsed":[{"hooks":[{"type":"command","command":"x"},{"type":"prompt"}]}]}}`, `did you mean "PreToolUse"`, 0, 2},
		"an event of theirs":  {`{"hooks":{"TeammateIdle":[{"hooks":[{"type":"command","command":"x"}]}]}}`, "Belay has no event TeammateIdle", 0, 1},
		"no tool":             {`{"hooks":{"PreToolUse":[{"matcher":"bash","hooks":[]}]}}`, `matches no tool (Claude Code has Bash)`, 0, 0},
		"a rule as a matcher": {`{"hooks":{"PreToolUse":[{"matcher":"Bash(git *)","hooks":[]}]}}`, "write Bash, and the rest into if", 0, 0},
		"a tool of theirs":    {`{"hooks":{"PreToolUse":[{"matcher":"EnterWorktree","hooks":[]}]}}`, "Belay has no such tool, so its hooks never run", 0, 0},
		"one tool of theirs":  {`{"hooks":{"PreToolUse":[{"matcher":"Edit|EnterWorktree","hooks":[]}]}}`, "Belay has no tool EnterWorktree", 0, 0},
		"a bad pattern":       {`{"hooks":{"PreToolUse":[{"matcher":"(?!x)","hooks":[{"type":"command","command":"true"}]}]}}`, "the hooks run for everything", 1, 0},
		"a timeout too high":  {`{"hooks":{"PreToolUse":[{"matcher":"Bash","timeout":5,"hooks":[]}]}}`, "timeout belongs to a hook", 0, 0},
		"all off":             {`{"disableAllHooks":true,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}`, "disableAllHooks is set", 0, 0},
		"hooks as a list":     {`{"hooks":[]}`, "none of these hooks run", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := vendorhook.Read(profile(dialect.ClaudeCode), &vendorhook.Options{Project: t.TempDir()}, vendorhook.File{Path: "settings.json", Text: []byte(c.text)})
			if err != nil {
				t.Fatal(err)
			}
			var notes []string
			for _, n := range r.Notes {
				notes = append(notes, n.Message)
				if n.Line == 0 || n.File != "settings.json" {
					t.Errorf("the note %q has no place", n.Message)
				}
			}
			if all := strings.Join(notes, "\n"); len(r.Hooks) != c.hooks || r.Refused != c.refused || !strings.Contains(all, c.want) {
				t.Errorf("%d hooks, %d refused, notes:\n%s\nwant %d, %d and %q", len(r.Hooks), r.Refused, all, c.hooks, c.refused, c.want)
			}
		})
	}
}

// SPEC B-01
func TestEqualCommandsRunOnce(t *testing.T) {
	t.Parallel()
	text := `{"hooks":{"PostToolUse":[
		{"matcher":"Edit","hooks":[{"type":"command","command":"fmt"}]},
		{"matcher":"Write","hooks":[{"type":"command","command":"fmt"},{"type":"command","command":"lint","async":true}]}],
		"Stop":[{"hooks":[{"type":"command","command":"fmt"}]}]}}`
	r, err := vendorhook.Read(profile(dialect.ClaudeCode), &vendorhook.Options{Project: t.TempDir()}, vendorhook.File{Path: "settings.json", Text: []byte(text)})
	if err != nil || len(r.Hooks) != 3 {
		t.Fatalf("%v, %d hooks, want 3", err, len(r.Hooks))
	}
	if got := r.Hooks[0].Options.Match.When.String(); got != "PostToolUse Edit or Write" {
		t.Errorf("the matcher is %q", got)
	}
	if o := r.Hooks[0].Options; o.Failure != hook.Open || !o.Concurrent {
		t.Errorf("a hook of a vendor fails %s, concurrent %t", o.Failure, o.Concurrent)
	}
	if o := r.Hooks[1].Options; o.Execution != hook.FireAndRecord {
		t.Errorf("an async hook is %s", o.Execution)
	}
}

// SPEC B-02
func TestAHookThatBlocksOnFailure(t *testing.T) {
	t.Parallel()
	text := `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"a","onFailure":"block"},{"type":"command","command":"b","onFailure":"continue"},{"type":"command","command":"c","onFailure":"explode"}]}]}}`
	r, err := vendorhook.Read(profile(dialect.ClaudeCode), &vendorhook.Options{Project: t.TempDir()}, vendorhook.File{Path: "settings.json", Text: []byte(text)})
	if err != nil || len(r.Hooks) != 3 || len(r.Notes) != 1 {
		t.Fatalf("%v, %+v", err, r)
	}
	for i, want := range []hook.Failure{{}, hook.Open, {}} { // the zero value is the phase's own, which is closed
		if got := r.Hooks[i].Options.Failure; got != want {
			t.Errorf("hook %d fails %s, want %s", i, got, want)
		}
	}
}

// SPEC B-02: a hook that has to deny when it fails, and for which nothing waits, is a warning.
func TestAnAsyncHookCannotBlockOnFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event, keys string
		strict      bool
		want        string // of the warning, or none
	}{
		{"PreToolUse", `"async":true`, false, ""},
		{"PreToolUse", `"async":true,"onFailure":"continue"`, false, ""},
		{"PreToolUse", `"onFailure":"block"`, true, ""},
		{"PreToolUse", `"async":true,"onFailure":"block"`, false, "onFailure has no effect"},
		{"PreToolUse", `"onFailure":"block","async":true`, true, "onFailure has no effect"},
		{"PostToolUse", `"async":true,"onFailure":"block"`, false, "onFailure has no effect"},
		{"PreToolUse", `"async":true`, true, "although strict is set"},
		{"UserPromptSubmit", `"async":true`, true, "although strict is set"},
		{"Stop", `"async":true`, true, ""}, // its failures never deny
		{"SessionStart", `"async":true`, true, ""},
	} {
		text := `{"hooks":{"` + c.event + `":[{"hooks":[{"type":"command","command":"a",` + c.keys + `}]}]}}`
		r, err := vendorhook.Read(profile(dialect.ClaudeCode), &vendorhook.Options{Project: t.TempDir(), Strict: c.strict}, vendorhook.File{Path: "settings.json", Text: []byte(text)})
		if err != nil || len(r.Hooks) != 1 {
			t.Fatalf("%v, %+v", err, r)
		}
		if len(r.Notes) == 0 != (c.want == "") || c.want != "" && (!r.Notes[0].Warning || !strings.Contains(r.Notes[0].Message, c.want)) {
			t.Errorf("%s, strict %t: the notes are %+v, want %q", text, c.strict, r.Notes, c.want)
		}
	}
}

func TestAFileThatIsNotJSON(t *testing.T) {
	t.Parallel()
	_, err := vendorhook.Read(profile(dialect.Codex), &vendorhook.Options{Project: "/p"}, vendorhook.File{Path: "hooks.json", Text: []byte("{\n// no\n}")})
	if err == nil || !strings.Contains(err.Error(), "hooks.json:2: this file of Codex is not valid JSON") {
		t.Errorf("the error is %v", err)
	}
}

// SPEC B-02
func TestTheInstalledHookIsNotRunByBelay(t *testing.T) {
	t.Parallel()
	for command, own := range map[string]int{
		"belay hook --agent claude-code":                       1,
		"belay hook --agent claude-code || exit 2":             1,
		"'/opt/my tools/belay' hook --agent claude-code":       1,
		"/opt/belay hook --agent claude-code || exit 2":        1,
		"guard && belay hook --agent claude-code":              0,
		"./guard;/opt/belay hook --agent claude-code":          0,
		"$(./guard)/belay hook --agent claude-code || exit 2":  0,
		"'./guard';'/belay' hook --agent claude-code":          0,
		"./belayer hook --agent claude-code":                   0,
		"belay hook --agent codex":                             0,
		"belay hook --agent claude-code || ./guard":            0,
		"belay hook --agent claude-code; ./guard || exit 2":    0,
		"belay hook --agent claude-code || exit 2 || ./guard ": 0,
	} {
		text, err := json.Marshal(map[string]any{"hooks": map[string]any{"PreToolUse": []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": command}}}}}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := vendorhook.Read(profile(dialect.ClaudeCode), &vendorhook.Options{Project: t.TempDir()}, vendorhook.File{Path: "settings.json", Text: text})
		if err != nil || r.Own != own || len(r.Hooks) != 1-own || r.Declared != 1 {
			t.Errorf("%s: %d own, %d run, %d declared, %v", command, r.Own, len(r.Hooks), r.Declared, err)
		}
	}
}

// SPEC B-02: a hook for which nothing waits and that looks like a guard is a warning.
func TestAnAsyncGuardIsAWarning(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	if err := os.WriteFile(filepath.Join(project, "guard.py"), []byte("import sys\nprint('no', file=sys.stderr)\nsys.exit(2)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		event, command, keys string
		want                 string // what the warning quotes, or none
	}{
		{"PreToolUse", `echo no >&2; exit 2`, `,"async":true`, `\"exit 2\"`},
		{"PreToolUse", `python3 guard.py`, `,"async":true`, `exit(2`},
		{"Stop", `echo '{\"decision\": \"block\"}'`, `,"async":true`, "decision"},
		{"PreToolUse", `echo permissionDecision`, `,"async":true`, "permissionDecision"},
		{"PreToolUse", `python3 guard.py`, ``, ""},                      // it decides
		{"Stop", `python3 guard.py`, `,"asyncRewake":true`, ""},         // exit code 2 wakes the model
		{"PostToolUse", `python3 guard.py`, `,"async":true`, ""},        // there is nothing to deny
		{"PreToolUse", `echo seen >> audit.log`, `,"async":true`, ""},   // it only watches
		{"PreToolUse", `python3 missing.py`, `,"async":true`, ""},       // nothing is known of it
		{"Stop", `echo permissionDecision`, `,"async":true`, ""},        // the script of a gate, used twice
		{"Stop", `exit 20; wait for exit 25`, `,"async":true`, ""},      // another code
		{"Stop", `true`, `,"rewakeMessage":"m"`, "without asyncRewake"}, // nothing wakes the model
	} {
		text := `{"hooks":{"` + c.event + `":[{"hooks":[{"type":"command","command":"` + c.command + `"` + c.keys + `}]}]}}`
		r, err := vendorhook.Read(profile(dialect.ClaudeCode), &vendorhook.Options{Project: project}, vendorhook.File{Path: "settings.json", Text: []byte(text)})
		if err != nil || len(r.Hooks) != 1 {
			t.Fatalf("%s: %v, %+v", text, err, r)
		}
		if (c.want == "") != (len(r.Notes) == 0) || c.want != "" && !strings.Contains(strings.ReplaceAll(r.Notes[0].Message, `"`, `\"`), c.want) {
			t.Errorf("%s: the notes are %+v, want %q", text, r.Notes, c.want)
		}
	}
}

// SPEC B-01: a hook for which nothing waits and that tries to decide has failed, so that its
// author learns of it.
func TestAnAsyncHookThatDecidesFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event, keys string
		reply       declare.Reply
		want        string // of the error, or none
	}{
		{"PreToolUse", ``, declare.Reply{}, ""},
		{"PreToolUse", ``, declare.Reply{Stdout: `{"systemMessage": "hi"}`}, ""},
		{"PreToolUse", ``, declare.Reply{Code: 2, Stderr: "no"}, "nothing waits for it"},
		{"PreToolUse", ``, declare.Reply{Stdout: `{"hookSpecificOutput": {"permissionDecision": "deny"}}`}, "nothing waits for it"},
		{"PreToolUse", ``, declare.Reply{Stdout: `{"hookSpecificOutput": {"permissionDecision": "ask"}}`}, "nothing waits for it"},
		{"Stop", ``, declare.Reply{Stdout: `{"decision": "block", "reason": "r"}`}, "nothing waits for it"},
		{"Stop", ``, declare.Reply{Code: 1, Stderr: "broken"}, "exit code 1"},
		{"Stop", `"asyncRewake": true,`, declare.Reply{Code: 2, Stderr: "broken"}, "exit code 2"}, // here nothing can be woken
		{"SessionEnd", ``, declare.Reply{Code: 2, Stderr: "broken"}, "exit code 2"},
	} {
		text := `{"hooks":{"` + c.event + `":[{"hooks":[{"type":"command",` + c.keys + `"async":true,"command":"true"}]}]}}`
		r, err := vendorhook.Read(profile(dialect.ClaudeCode), &vendorhook.Options{Project: "/p"}, vendorhook.File{Path: "settings.json", Text: []byte(text)})
		if err != nil || len(r.Hooks) != 1 {
			t.Fatalf("%v, %+v", err, r)
		}
		answer, err := r.Hooks[0].Protocol.Read(t.Context(), &worker.Envelope{Phase: r.Hooks[0].Phase, Session: "s"}, &c.reply)
		if answer != nil || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %s, %v, want %q", c.event, c.reply, answer, err, c.want)
		}
	}
}
