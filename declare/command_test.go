package declare_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
)

// SPEC C-02
func TestCommandIsGivenTheEnvelope(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("check.sh", "#!/bin/sh\ncat > seen.json\nread -r more || echo end >> ended\n")
	set := p.set(gate("command: [./check.sh]"), &declare.Options{Project: "/srv/work"})
	in, err := belay.ToolPre.DecodeInput(hook.Scope{Session: "s", Turn: "t", Step: 3, Agent: "main"}, []byte(write))
	if err != nil {
		t.Fatal(err)
	}
	trial := hooktest.Try(t, belay.ToolPre, only(t, set), in, nil)
	if trial.Output.Decision != belay.ToolPass || len(trial.Diagnostics) > 0 {
		t.Errorf("%v, want no opinion", trial)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(p.read("seen.json")), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]json.RawMessage{
		"v": json.RawMessage("1"), "phase": json.RawMessage(`"tool.pre"`), "session": json.RawMessage(`"s"`), "turn": json.RawMessage(`"t"`),
		"step": json.RawMessage("3"), "agent": json.RawMessage(`"main"`), "cwd": json.RawMessage(`"/srv/work"`),
		"origin": json.RawMessage(`{"kind":"operator"}`), "input": json.RawMessage(`{"id":"call-1","tool":"write","input":{"path":"/srv/prod/a.txt"}}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the envelope (-want +got):\n%s", diff)
	}
	if p.read("ended") != "end\n" {
		t.Error("standard input did not end behind the envelope")
	}
	var envelope worker.Envelope
	if err := json.Unmarshal([]byte(p.read("seen.json")), &envelope); err != nil || envelope.Scope() != (hook.Scope{Session: "s", Turn: "t", Step: 3, Agent: "main"}) {
		t.Errorf("envelope = %+v, %v", envelope, err)
	}
}

// SPEC C-02
func TestCommandNeedNotReadAMebibyte(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("check.sh", "#!/bin/sh\nexec 0<&-\necho '{\"decision\": \"ask\", \"reason\": \"unread\"}'\n")
	trial := try(t, p.set(gate("command: [./check.sh]"), nil),
		`{"id": "1", "tool": "write", "input": {"content": "`+strings.Repeat("x", 1<<20)+`"}}`)
	if trial.Output.Decision != belay.ToolAsk || len(trial.Diagnostics) > 0 {
		t.Errorf("%v, want its answer", trial)
	}
}

// SPEC C-01, C-03, C-04, C-12
func TestCommandAnswers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule   string
		script string
		want   belay.ToolDecision
		reason string     // a part of the reason
		code   codes.Code // the code of the failure; "" for none
	}{
		{"nothing is no opinion", "exit 0", belay.ToolPass, "", ""},
		{"white space is no opinion", "printf ' \\n\\t\\n'", belay.ToolPass, "", ""},
		{"an answer", `echo '{"decision": "ask", "reason": "really?"}'`, belay.ToolAsk, "really?", ""},
		{"an answer over several lines", `printf '\n{\n  "decision":\n"deny", "reason": "no"}\n\n'`, belay.ToolDeny, "no", ""},
		{"a halt", `echo '{"decision": "halt", "reason": "stop"}'`, belay.ToolHalt, "stop", ""},
		{"exit 2 denies, for the reason on standard error", "echo '{}'; echo 'not there' >&2; exit 2", belay.ToolDeny, "not there", ""},
		{"exit 2 denies whatever standard output says", `echo '{"decision": "pass"} garbage'; exit 2`, belay.ToolDeny, "exit code 2", ""},
		{"another exit code is a failure", "exit 3", belay.ToolDeny, "gate could not decide: exit code 3", codes.Error},
		{"another exit code denies, for the reason on standard error", "echo broken >&2; exit 3", belay.ToolDeny, "broken", codes.Error},
		{"a failure does not become consent by its output", `echo '{"decision": "pass"}'; exit 1`, belay.ToolDeny, "exit code 1", codes.Error},
		{"killed by a signal", "kill -9 $$", belay.ToolDeny, "the program was killed (signal 9)", codes.Error},
		{"garbage", "head -c 100 /dev/urandom; printf '\\377'", belay.ToolDeny, "neither JSON nor text", codes.OutputInvalid},
		{"zero bytes", "printf 'a\\000b'", belay.ToolDeny, "neither JSON nor text", codes.OutputInvalid},
		{"a debug line in front of an answer", `echo 'checking...'; echo '{"decision": "ask"}'`, belay.ToolDeny, "mixes JSON and text", codes.OutputInvalid},
		{"null is no opinion", "echo null", belay.ToolPass, "", ""},
		{"a number is no answer", "echo 42", belay.ToolDeny, "not an object", codes.OutputInvalid},
		{"an unknown key", `echo '{"decisio": "deny"}'`, belay.ToolDeny, `decisio`, codes.OutputInvalid},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			trial := sh(t, test.script)
			if trial.Output.Decision != test.want || !strings.Contains(trial.Output.Reason, test.reason) || code(trial) != test.code {
				t.Errorf("decision %q, reason %q, code %q; want %q, %q, %q", trial.Output.Decision, trial.Output.Reason, code(trial), test.want, test.reason, test.code)
			}
		})
	}
}

// SPEC C-03
func TestCommandTextIsShown(t *testing.T) {
	t.Parallel()
	trial := sh(t, `printf '\033[32mall good\033[0m\n'`)
	if diff := cmp.Diff([]belay.Shown{{Text: "all good", From: "gate"}}, trial.Output.Shown()); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

// SPEC C-01, C-04, H-10
func TestCommandThatCannotStart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, line, want string }{
		{"a program that PATH does not have", "command: [belay-no-such-program]", "the program was not found"},
		{"a path that does not exist", "command: [/belay/no/such/program]", "the program was not found"},
		{"a shell that does not find it", "run: belay-no-such-program --now", "the program was not found (exit code 127)"},
		{"a file that is not executable", "command: [DIR/plain]", "the program is not executable"},
		{"a shell that may not execute it", "run: DIR/plain", "the program is not executable (exit code 126)"},
		{"a script that names no interpreter", "command: [DIR/nobody]", "its first line must name the interpreter"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.put("plain", "true\n")
			if err := os.Chmod(p.put("nobody", "true\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			trial := try(t, p.set(gate(strings.ReplaceAll(test.line, "DIR", p.dir)), nil), write)
			if trial.Output.Decision != belay.ToolDeny || !strings.Contains(trial.Output.Reason, test.want) && !strings.Contains(trial.Diagnostics[0].Message, test.want) ||
				code(trial) != codes.ExecutableMissing {
				t.Errorf("%v, want a denial with hook.executable_missing: %s", trial, test.want)
			}
		})
	}
}

// If the program of a loaded hook disappears, the error names it, and the gate denies.
//
// SPEC C-04
func TestCommandWhoseDirectoryVanished(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("check.sh", "#!/bin/sh\nexit 0\n")
	set := p.set(gate("command: [./check.sh]"), nil)
	p.removeAll()
	trial := try(t, set, write)
	if trial.Output.Decision != belay.ToolDeny || !strings.Contains(trial.Diagnostics[0].Message, "no longer exists") {
		t.Errorf("%v, want a denial that says that the directory is gone", trial)
	}
}

// SPEC C-01, C-05
func TestCommandRunsInTheDirectoryOfItsFile(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("sub/check.sh", "#!/bin/sh\npwd >&2\nexit 2\n")
	for _, line := range []string{"run: ./check.sh", "run: 'true && ./check.sh'", "command: [./check.sh]", "command: [sh, ./check.sh]"} {
		declared, err := declare.Load(p.dir, p.put("sub/hooks.yaml", gate(line)))
		if err != nil {
			t.Fatal(err)
		}
		set, err := declare.New(declared, hook.Origin{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if trial := try(t, set, write); trial.Output.Reason != filepath.Join(p.dir, "sub") {
			t.Errorf("%s: ran in %q, want the directory of the declaring file", line, trial.Output.Reason)
		}
	}
}

// The error of a failed hook shows the hook's output. The output is not stored. If a gate
// fails closed, the output is the reason of the denial.
//
// SPEC C-13, C-04, C-11
func TestTheEndOfStandardErrorIsShown(t *testing.T) {
	t.Parallel()
	const secret = "sk-planted-0123"
	long := strings.Repeat("é", 3000) + "the end"
	for _, test := range []struct {
		rule, script string
		want         string // the shown error
		reason       string // the reason of the denial
	}{
		{"an exit code", "echo 'no database' >&2; exit 1", "exit code 1: no database", "no database"},
		{"an exit code alone", "exit 7", "exit code 7", "gate could not decide: exit code 7"},
		{"several lines", "echo one >&2; echo two >&2; exit 1", "exit code 1: one\ntwo", "one\ntwo"},
		{"a secret", "echo token " + secret + " >&2; exit 1", "exit code 1: token [REDACTED]", "token [REDACTED]"},
		{"colours", `printf '\033[31mred\033[0m' >&2; exit 1`, "exit code 1: red", "red"},
		{"an answer that makes no sense", "echo 'cannot think' >&2; echo 42", "not an object: print an object, or nothing: its standard error: cannot think", "cannot think"},
		{"a signal", "echo dying >&2; kill -9 $$", "the program was killed (signal 9): dying", "dying"},
		{"a command of a script that was killed", "sh -c 'kill -9 $$'", "exit code 137: a command was killed (signal 9)", "a command was killed (signal 9)"},
		{"and that said something", "echo dying >&2; sh -c 'kill -15 $$'", "exit code 143: dying\na command was killed (signal 15)", "dying\na command was killed (signal 15)"},
		{"an exit code like that of a signal", "echo Killed nobody >&2; echo dying >&2; exit 137", "exit code 137: Killed nobody\ndying", "dying"},
		{"a program that a shell does not find", "belay-no-such-program; exit $?", "belay-no-such-program", "not found"},
		{"much", "echo '" + long + "' >&2; exit 1", "é" + "the end", "é" + "the end"},
		{"too much", "head -c 100000 /dev/zero | tr '\\000' x >&2; echo ' the end' >&2; exit 1", "x the end", "x the end"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.put("check.sh", "#!/bin/sh\n"+test.script+"\n")
			opts := &declare.Options{Secrets: []string{secret}}
			for _, mode := range []string{"open", "closed"} {
				trial := try(t, p.set(gate("command: [./check.sh]", "timeout: 1m", "failure: "+mode), opts), write)
				if len(trial.Diagnostics) != 1 {
					t.Fatalf("%v, want it to fail", trial)
				}
				said := trial.Diagnostics[0].Err.Error()
				if !strings.Contains(said, test.want) || strings.Contains(said, secret) || len(said) > 2<<10+100 || !utf8.ValidString(said) {
					t.Errorf("%s: it says %q, want %q", mode, said, test.want)
				}
				stored, err := json.Marshal(trial.Runs)
				if err != nil {
					t.Fatal(err)
				}
				for _, word := range []string{"database", "two", "REDACTED", "red\"", "dying", "cannot think", "the end"} {
					if strings.Contains(string(stored), word) || strings.Contains(trial.Diagnostics[0].Message, word) {
						t.Errorf("%s: %q is stored: %s", mode, word, stored)
					}
				}
				want := test.reason
				if mode == "open" {
					want = ""
				}
				if (trial.Output.Decision == belay.ToolDeny) != (mode == "closed") || !strings.HasSuffix(trial.Output.Reason, want) {
					t.Errorf("%s: decision %q, reason %q, want the reason %q", mode, trial.Output.Decision, trial.Output.Reason, want)
				}
			}
		})
	}
}

// If a result is withheld because a hook failed, the text names the hook.
//
// SPEC C-13, H-10
func TestAWithheldResultNamesTheHook(t *testing.T) {
	t.Parallel()
	set := newPlace(t).set("hooks:\n  - { id: mask, phase: tool.post, run: 'echo broken >&2; exit 1', capabilities: [rewrite_output], failure: closed, timeout: 1m }\n", nil)
	trial := hooktest.Try(t, belay.ToolPost, only(t, set), hooktest.Input(t, belay.ToolPost, `{"id": "1", "tool": "a", "input": {}, "text": "done"}`), nil)
	if trial.Output.Result == nil || *trial.Output.Result != "[result withheld: mask: broken]" {
		t.Errorf("%v: want the hook and its reason", trial)
	}
}
