package vendorhook_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/internal/vendorhook"
)

// A hook of Claude Code that ends with an error and prints JSON has failed, if its failure
// counts. Only an answer that is at least as severe as the failure counts.
//
// SPEC B-02
func TestJSONOfAHookThatFailed(t *testing.T) {
	t.Parallel()
	const fault = "fault"
	pre, post := `{"id":"c","tool":"shell","input":{"command":"x"}}`, `{"id":"c","tool":"shell","input":{"command":"x"},"text":"secret","is_error":false,"class":"","latency_ns":1}`
	denied := `{"decision":"deny","reason":"the hook pre-tool-use-1 of Claude Code gave no reason"}`
	told := `{"context":[{"text":"A hook found a problem after this call: the hook post-tool-use-1 of Claude Code gave no reason"}]}`
	for _, c := range []struct {
		event, output                 string
		passes, open, strict, blocked string // with exit code 0, with 1 if open and if strict, and with 2
	}{
		{"PreToolUse", ``, ``, fault, fault, denied},
		{"PreToolUse", `{}`, ``, ``, fault, denied},
		{"PreToolUse", `{"systemMessage":"crashed"}`, `{"output":"crashed"}`, `{"output":"crashed"}`, fault, `{"output":"crashed",` + denied[1:]},
		{"PreToolUse", `{"hookSpecificOutput":{"permissionDecision":"allow"}}`, `{"audit":[{"code":"allow_ignored","message":"the hook allowed the call, but its directory has no grant approve: the usual questions are asked"}]}`, ``, fault, denied},
		{"PreToolUse", `{"hookSpecificOutput":{"updatedInput":{"command":"y"}}}`, `{"input":{"command":"y"}}`, ``, fault, denied},
		{"PreToolUse", `{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"r"}}`, `{"decision":"ask","reason":"r"}`, `{"decision":"ask","reason":"r"}`, `{"decision":"ask","reason":"r"}`, denied},
		{"PreToolUse", `{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"r"}}`, `{"decision":"deny","reason":"r"}`, `{"decision":"deny","reason":"r"}`, `{"decision":"deny","reason":"r"}`, `{"decision":"deny","reason":"r"}`},
		{"PreToolUse", `{"continue":false,"stopReason":"r"}`, `{"decision":"halt","reason":"r"}`, `{"decision":"halt","reason":"r"}`, `{"decision":"halt","reason":"r"}`, `{"decision":"halt","reason":"r"}`},
		{"PostToolUse", `{}`, ``, ``, fault, told},
		{"PostToolUse", `{"systemMessage":"crashed"}`, `{"output":"crashed"}`, `{"output":"crashed"}`, fault, `{"output":"crashed",` + told[1:]},
		{"PostToolUse", `{"hookSpecificOutput":{"updatedToolOutput":"hidden"}}`, `{"result":"hidden"}`, ``, fault, told},
		{"PostToolUse", `{"hookSpecificOutput":{"permissionDecision":"ask"}}`, ``, ``, fault, told}, // there is nothing to ask about
		{"PostToolUse", `{"decision":"block","reason":"r","hookSpecificOutput":{"updatedToolOutput":"hidden"}}`, `{"result":"hidden","context":[{"text":"A hook found a problem after this call: r"}]}`, `{"result":"hidden","context":[{"text":"A hook found a problem after this call: r"}]}`, `{"result":"hidden","context":[{"text":"A hook found a problem after this call: r"}]}`, `{"context":[{"text":"A hook found a problem after this call: r"}]}`},
	} {
		for _, how := range []struct {
			name, key string
			strict    bool
		}{{"open", ``, false}, {"strict", ``, true}, {"onFailure", `,"onFailure":"block"`, false}} {
			text := fmt.Sprintf(`{"hooks": {%q: [{"hooks": [{"type": "command", "command": "true"%s}]}]}}`, c.event, how.key)
			opts := &vendorhook.Options{Project: "/p", Strict: how.strict, Grants: []string{"rewrite_input", "rewrite_output"}}
			r, err := vendorhook.Read(profile(dialect.ClaudeCode), opts, vendorhook.File{Path: "settings.json", Text: []byte(text)})
			if err != nil || len(r.Hooks) != 1 {
				t.Fatalf("%v, %+v", err, r)
			}
			input, failed := pre, c.open
			if c.event == "PostToolUse" {
				input = post
			}
			if how.name != "open" {
				failed = c.strict
			}
			for code, want := range map[int]string{0: c.passes, 1: failed, 127: failed, 2: c.blocked} {
				answer, err := r.Hooks[0].Protocol.Read(t.Context(), &worker.Envelope{Phase: r.Hooks[0].Phase, Session: "s", Input: json.RawMessage(input)}, &declare.Reply{Code: code, Stdout: c.output})
				got := sorted(t, string(answer))
				if err != nil {
					got = fault
				}
				if want != fault {
					want = sorted(t, want)
				}
				if got != want {
					t.Errorf("%s, %s, exit code %d, output %s:\n%s\nwant\n%s", c.event, how.name, code, c.output, got, want)
				}
			}
		}
	}
}

// sorted returns a JSON object with its keys in order. No text is an empty object.
func sorted(t *testing.T, text string) string {
	t.Helper()
	v := map[string]any{}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatalf("not JSON: %v\n%s", err, text)
		}
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
