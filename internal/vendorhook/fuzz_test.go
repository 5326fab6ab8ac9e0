package vendorhook_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/internal/vendorhook"
)

// profile returns the smallest profile of a vendor.
func profile(v dialect.Vendor) *vendorhook.Profile {
	return &vendorhook.Profile{
		Vendor: v, Unit: time.Second, Timeout: func(dialect.Kind) time.Duration { return time.Minute },
		Env: func(*vendorhook.Options, *vendorhook.Event) []string { return nil },
	}
}

// gate returns the protocol of a hook at an event.
func gate(t testing.TB, v dialect.Vendor, event string, grants ...string) declare.Protocol {
	t.Helper()
	text := fmt.Sprintf(`{"hooks": {%q: [{"hooks": [{"type": "command", "command": "true"}]}]}}`, event)
	r, err := vendorhook.Read(profile(v), &vendorhook.Options{Project: "/p", Grants: grants}, vendorhook.File{Path: "settings.json", Text: []byte(text)})
	if err != nil || len(r.Hooks) == 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	return r.Hooks[0].Protocol
}

// decision returns the decision of an answer at tool.pre.
func decision(t testing.TB, p declare.Protocol, input string, r *declare.Reply) string {
	t.Helper()
	answer, err := p.Read(t.Context(), &worker.Envelope{Phase: "tool.pre", Session: "s", Input: json.RawMessage(input)}, r)
	var said struct {
		Decision string `json:"decision"`
	}
	if err == nil && answer != nil {
		if err := json.Unmarshal(answer, &said); err != nil {
			t.Fatalf("the answer is not JSON: %v\n%s", err, answer)
		}
	}
	return said.Decision
}

// SPEC B-01: an output that means a denial never becomes another answer.
func FuzzDenialStays(f *testing.F) {
	for _, seed := range []struct {
		before, after, key, value string
		code                      int
	}{
		{"", "", "", "", 0},
		{"checking\n", "\ndone", "x", "y", 1},
		{"\x1b[31m", "\x1b[0m", "permissionDecision", "allow", 0},
		{"{\"a\":", "}", "continue", "true", 127},
		{"[", "]", "decision", "approve", 255},
		{"\ufeff", "\x00", "hookSpecificOutput", "{}", -1},
		{`{"hookSpecificOutput":{"permissionDecision":"allow"}}`, "", "suppressOutput", "1", 0},
		{`"`, `"`, "\\", "\"", 2},
	} {
		f.Add(seed.before, seed.after, seed.key, seed.value, seed.code)
	}
	f.Fuzz(func(t *testing.T, before, after, key, value string, code int) {
		k, _ := json.Marshal(key)   // a string always has a JSON form
		v, _ := json.Marshal(value) // a string always has a JSON form
		for _, denial := range []string{
			`{"hookSpecificOutput":{"permissionDecision":"deny"}}`,
			`{"decision":"block","reason":"r"}`,
			`{"decision" : "deny"}`,
			fmt.Sprintf(`{"hookSpecificOutput":{%s:%s,"permissionDecision":"deny"}}`, k, v),
			fmt.Sprintf(`{"hookSpecificOutput":{"permissionDecision":"deny",%s:%s}}`, k, v),
			fmt.Sprintf(`{%s:%s,"decision":"block",%s:%s}`, k, v, k, v),
			`{"hookSpecificOutput":{"permissionDecision":"deny"},"hookSpecificOutput":{"permissionDecision":"allow"}}`,
			`{"continue":false}`,
		} {
			for _, vendor := range []dialect.Vendor{dialect.ClaudeCode, dialect.Codex, dialect.GeminiCLI} {
				event := "PreToolUse"
				if vendor == dialect.GeminiCLI {
					event = "BeforeTool"
				}
				p := gate(t, vendor, event, "approve", "rewrite_input")
				const call = `{"id":"c","tool":"shell","input":{"command":"x"}}`
				if d := decision(t, p, call, &declare.Reply{Code: code, Stdout: denial}); d != "deny" && d != "halt" {
					t.Fatalf("%s: %s with exit code %d became %q", vendor, denial, code, d)
				}
				around := before + denial + after
				if json.Valid([]byte(strings.TrimSpace(around))) {
					continue // another JSON value: its own meaning counts
				}
				if d := decision(t, p, call, &declare.Reply{Code: code, Stdout: around}); d != "deny" && d != "halt" {
					t.Fatalf("%s: %q with exit code %d became %q", vendor, around, code, d)
				}
			}
		}
		p := gate(t, dialect.ClaudeCode, "PreToolUse", "approve")
		if d := decision(t, p, `{"id":"c","tool":"shell","input":{"command":"x"}}`, &declare.Reply{Code: 2, Stdout: before + after, Stderr: value}); d != "deny" && d != "halt" {
			t.Fatalf("exit code 2 with %q became %q", before+after, d)
		}
	})
}

func TestOutputThatIsTooLongDenies(t *testing.T) {
	t.Parallel()
	p := gate(t, dialect.ClaudeCode, "PreToolUse")
	if d := decision(t, p, `{"id":"c","tool":"shell","input":{"command":"x"}}`, &declare.Reply{Stdout: "{", Cut: true}); d != "deny" {
		t.Errorf("the decision is %q", d)
	}
}

// SPEC B-01: permissionDecision allow answers a question only with the grant.
func TestAnAllowedCallIsApprovedOnce(t *testing.T) {
	t.Parallel()
	text := `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}`
	r, err := vendorhook.Read(profile(dialect.ClaudeCode), &vendorhook.Options{Project: "/p", Grants: []string{"approve"}}, vendorhook.File{Path: "settings.json", Text: []byte(text)})
	if err != nil || len(r.Hooks) != 2 {
		t.Fatalf("%v, %d hooks", err, len(r.Hooks))
	}
	ask := func(call string) string {
		q, err := r.Hooks[1].Protocol.Ask(t.Context(), &worker.Envelope{Session: "s", Input: json.RawMessage(`{"floor":true,"call":"` + call + `"}`)})
		if err != nil || !q.Known {
			t.Fatalf("%v, %+v", err, q)
		}
		return string(q.Answer)
	}
	if a := ask("c1"); a != "" {
		t.Errorf("a call that no hook allowed got %s", a)
	}
	reply := &declare.Reply{Stdout: `{"hookSpecificOutput":{"permissionDecision":"allow","permissionDecisionReason":"safe"}}`}
	if d := decision(t, r.Hooks[0].Protocol, `{"id":"c1","tool":"shell","input":{"command":"x"}}`, reply); d != "" {
		t.Errorf("the decision is %q", d)
	}
	if a := ask("c2"); a != "" {
		t.Errorf("another call got %s", a)
	}
	if a := ask("c1"); !strings.Contains(a, `"decision":"allow"`) {
		t.Errorf("the allowed call got %q", a)
	}
	if a := ask("c1"); a != "" {
		t.Errorf("the allowed call got %s twice", a)
	}
}
