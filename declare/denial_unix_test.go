//go:build unix

package declare_test

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook/codes"
)

// failureModes are settings of a gate. A denial counts with all of them.
var failureModes = map[string]string{
	"closed": "failure: closed", "open": "failure: open", "fallback": "failure: { fallback: { decision: pass } }",
}

// wantDenial fails the test unless the trial denies with the reason.
func wantDenial(t *testing.T, trial *toolTrial, reason string) {
	t.Helper()
	if got := trial.Output; got.Decision != belay.ToolDeny && got.Decision != belay.ToolHalt || !strings.Contains(got.Reason, reason) {
		t.Errorf("%v, reason %q: want a denial with %q", trial, got.Reason, reason)
	}
	if trial.Output.Input != nil || len(trial.Output.Context) > 0 {
		t.Errorf("%+v: want the denial alone", trial.Output)
	}
}

// SPEC C-03, C-04, C-07, H-15
func TestADenialOfACommandStands(t *testing.T) {
	t.Parallel()
	const deny = `'{"decision":"deny","reason":"because"}'`
	for _, test := range []struct{ rule, script, reason string }{
		{"behind a title that does not end", `printf '\033]0;checking\n'; echo ` + deny, "because"},
		{"behind a control string that does not end", `printf '\033]R'; printf '\033P'; echo ` + deny, "because"},
		{"behind an escape character", `printf '{\033"decision":"deny","reason":"because"}'`, "because"},
		{"behind half a control sequence", `printf '{\033["decision":"deny","reason":"because"}'`, "because"},
		{"in colour", `printf '\033[1m{\033[0m"deci\033[34;1msion":"de\033[0mny","reason":"because"}'`, "because"},
		{"behind a debug line", "echo checking; echo " + deny, "because"},
		{"in the middle of a line", `echo 'answer: {"decision":"deny","reason":"because"}, I think'`, "because"},
		{"behind a byte order mark", `printf '\357\273\277'; printf '{"decision":"deny","reason":"because"}\r\n'`, "because"},
		{"among zero bytes", `printf '\000\000'; echo ` + deny + `; printf '\000'`, "because"},
		{"among bytes that are no text", `printf '\377\376'; echo ` + deny + `; printf '\200'`, "because"},
		{"in a list", `echo '[null, {"decision":"deny","reason":"because"}]'`, "because"},
		{"before an answer that passes", "echo " + deny + `; echo '{"decision":"pass"}'`, "because"},
		{"with a fault, and spelled otherwise", `echo '{"decision":"\u0064eny","reason":"because","x":1}'`, "because"},
		{"with a key twice", `echo '{"decision":"deny","decision":"pass","reason":"because"}'`, "because"},
		{"with an input that it may not give", `echo '{"decision":"deny","reason":"because","input":{"path":"/tmp"}}'`, "because"},
		{"with an exit code that fails", "echo " + deny + "; exit 3", "because"},
		{"without a reason, with an exit code that fails", `echo '{"blocked":true}'; echo why >&2; exit 3`, "why"},
		{"and then it is killed", "echo " + deny + "; kill -9 $$", "because"},
		{"before too much output", "echo " + deny + `; head -c 2000000 /dev/zero | tr '\000' x`, "because"},
		{"behind too much output", `head -c 2000000 /dev/zero | tr '\000' x; echo ` + deny, "because"},
		{"in the middle of too much output", `head -c 1100000 /dev/zero; echo ` + deny + "; head -c 1100000 /dev/zero", "because"},
		{"before too much on standard error", "echo " + deny + `; head -c 100000 /dev/zero | tr '\000' x >&2`, "because"},
		{"by the exit code, with too much output", `echo because >&2; head -c 2000000 /dev/zero | tr '\000' x; exit 2`, "because"},
		{"by the exit code, with too much on standard error", `echo because >&2; head -c 2000000 /dev/zero | tr '\000' x >&2; exit 2`, "because"},
		{"by the exit code, with an answer that passes", `echo '{"decision":"pass"}'; exit 2`, "exit code 2"},
		{"by the exit code, with a reason in the answer", "echo " + deny + "; exit 2", "because"},
	} {
		for mode, line := range failureModes {
			t.Run(test.rule+", "+mode, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				p.put("check.sh", "#!/bin/sh\n"+test.script+"\n")
				wantDenial(t, try(t, p.set(gate("command: [./check.sh]", "timeout: 1m", line), nil), write), test.reason)
			})
		}
	}
}

// A halt in the output is more severe than exit code 2.
//
// SPEC C-03, C-04
func TestAHaltStandsWithExitCode2(t *testing.T) {
	t.Parallel()
	if trial := sh(t, `echo '{"decision":"halt","reason":"stop"}'; exit 2`); trial.Output.Decision != belay.ToolHalt || trial.Output.Reason != "stop" {
		t.Errorf("%v, want the turn to end", trial)
	}
}

// SPEC C-03, C-09
func TestADenialOfAWebhookStands(t *testing.T) {
	t.Parallel()
	const deny = `{"decision":"deny","reason":"because"}`
	for _, test := range []struct {
		rule   string
		status int
		body   string
		breaks bool // the connection breaks after the body
	}{
		{"behind a debug line", 200, "debug\n" + deny, false},
		{"behind a title that does not end", 200, "\x1b]0;checking\n" + deny, false},
		{"in a page", 200, "<html><pre>\xff" + deny + "</pre></html>", false},
		{"in a list", 200, "[" + deny + "]", false},
		{"with a fault", 200, `{"decision":"\u0064eny","reason":"because","x":null}`, false},
		{"with an input that it may not give", 200, `{"decision":"deny","reason":"because","modified":{}}`, false},
		{"with an error of the server", 500, deny, false},
		{"with a status that forbids", 403, deny, false},
		{"with a redirect", 302, deny, false},
		{"before too much", 200, deny + strings.Repeat("x", 1<<20), false},
		{"behind too much", 200, strings.Repeat("x", 3<<20) + deny, false},
		{"before the connection breaks off", 200, deny, true},
	} {
		for mode, line := range failureModes {
			t.Run(test.rule+", "+mode, func(t *testing.T) {
				t.Parallel()
				opts := &declare.Options{Allowlist: []string{"example.com"}, Transport: transport(func(r *http.Request) (*http.Response, error) {
					var body io.Reader = strings.NewReader(test.body)
					if test.breaks {
						body = io.MultiReader(body, broken{})
					}
					return &http.Response{StatusCode: test.status, Body: io.NopCloser(body), Request: r}, nil
				})}
				wantDenial(t, try(t, newPlace(t).set(gate("webhook: https://example.com/", "timeout: 1m", line), opts), write), "because")
			})
		}
	}
}

// broken is a response body whose connection breaks.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the connection broke off") }

// SPEC C-03, C-08
func TestADenialOfAWorkerStands(t *testing.T) {
	t.Parallel()
	const deny = `{"jsonrpc":"2.0","id":ID,"result":{"decision":"deny","reason":"because"}}`
	lines := map[string]string{
		"by itself":                           deny + "\n",
		"without the end of its line":         deny,
		"behind a debug line":                 "debug\n" + deny + "\n",
		"behind a title that does not end":    "\x1b]0;checking\n" + deny + "\n",
		"in the line of a debug text":         "debug: " + deny + "\n",
		"before a debug text":                 deny + " debug\n",
		"behind what is no text":              "\xff\x00\"{" + deny + "\n",
		"before an answer that passes":        `{"jsonrpc":"2.0","id":ID,"result":{"decision":"deny","reason":"because"},"result":{}}` + "\n",
		"in a list":                           `{"jsonrpc":"2.0","id":ID,"result":[{"decision":"deny","reason":"because"}]}` + "\n",
		"in an error":                         `{"jsonrpc":"2.0","id":ID,"error":{"message":"no","data":{"decision":"deny","reason":"because"}}}` + "\n",
		"with a fault, and spelled otherwise": `{"jsonrpc":"2.0","id":ID,"result":{"decision":"\u0064eny","reason":"because","x":1}}` + "\n",
		"with an input that it may not give":  `{"jsonrpc":"2.0","id":ID,"result":{"decision":"deny","reason":"because","input":{}}}` + "\n",
		"behind a line that is too long":      strings.Repeat("x", 2<<20) + "\n" + deny + "\n",
		"in a line that is too long":          strings.Repeat("x", 2<<20) + deny + strings.Repeat("x", 2<<20) + "\n",
		"without JSON-RPC":                    `{"decision":"deny","reason":"because"}` + "\n",
		"for a call that nobody made":         `{"jsonrpc":"2.0","id":99,"result":{"decision":"deny","reason":"because"}}` + "\n",
	}
	for _, rule := range slices.Sorted(maps.Keys(lines)) {
		for mode, line := range failureModes {
			t.Run(rule+", "+mode, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				set := p.set(workerGate(t, "raw", "timeout: 1m", line), &declare.Options{Grace: time.Minute}) // long enough for the worker to end by itself
				wantDenial(t, try(t, set, call("print", p.put("line", lines[rule]))), "because")
			})
		}
	}
}

// Output without a denial is a failure, and the failure mode decides.
//
// SPEC C-03, H-10
func TestOnlyDenialsStandInEveryFailureMode(t *testing.T) {
	t.Parallel()
	for rule, script := range map[string]string{
		"a debug line in front of a question": `echo debug; echo '{"decision":"ask"}'`,
		"an unknown key":                      `echo '{"decision":"ask","x":1}'`,
		"a number":                            "echo 42",
		"too much output":                     `head -c 2000000 /dev/zero | tr '\000' x`,
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.put("check.sh", "#!/bin/sh\n"+script+"\n")
			trial := try(t, p.set(gate("command: [./check.sh]", "timeout: 1m", "failure: open"), nil), write)
			if trial.Output.Decision != belay.ToolPass || code(trial) != codes.OutputInvalid || len(trial.Output.Shown()) > 0 {
				t.Errorf("%v, want hook.output_invalid, tolerated", trial)
			}
		})
	}
}
