package declare_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook/hooktest"
)

// SPEC C-01, P-10
func TestActionsAnswer(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]belay.ToolVerdict{
		"action: approve":                         {Decision: belay.ToolAsk, Reason: "gate asks for approval"},
		"action: { approve: look at it }":         {Decision: belay.ToolAsk, Reason: "look at it"},
		"action: deny":                            {Decision: belay.ToolDeny, Reason: "gate denies it"},
		"action: { deny: not here }":              {Decision: belay.ToolDeny, Reason: "not here"},
		"action: { remind: the tests are slow }":  {Aside: belay.Aside{Context: []belay.Reminder{{Text: "the tests are slow", From: "gate"}}}},
		"action: { save_json: calls/all.ndjson }": {},
		"action: log":                             {},
	} {
		got := try(t, newPlace(t).set(gate(line), nil), write).Output
		if got.Decision != want.Decision || got.Reason != want.Reason || len(got.Context) != len(want.Context) || len(want.Context) > 0 && got.Context[0] != want.Context[0] {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
	set := newPlace(t).set("hooks:\n  - { id: a, phase: user.prompt.submit, action: { deny: closed } }\n", nil)
	if trial := hooktest.Try(t, belay.UserPromptSubmit, only(t, set), hooktest.Input(t, belay.UserPromptSubmit, `{"text": "hi"}`), nil); trial.Output.Decision != "deny" {
		t.Errorf("%v, want the prompt denied", trial)
	}
}

// SPEC C-10
func TestSaveJSONAppends(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	set := p.set(gate("action: { save_json: logs/calls.jsonl }"), nil)
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() { try(t, set, write) })
	}
	running.Wait()
	lines := strings.Split(strings.TrimSpace(p.read("logs/calls.jsonl")), "\n")
	if len(lines) != 8 {
		t.Fatalf("%d lines, want 8", len(lines))
	}
	for _, line := range lines {
		var e envelope
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Phase != "tool.pre" || e.Input.Tool != "write" {
			t.Errorf("line = %s, %v, want the envelope", line, err)
		}
	}
}

// SPEC C-10
func TestSaveJSONStaysInItsDirectory(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		build func(t *testing.T, p *place)
	}{
		{"a link to a file outside", func(t *testing.T, p *place) { t.Helper(); link(t, p, "../outside/target", "a/calls.jsonl") }},
		{"a link to a new file outside", func(t *testing.T, p *place) { t.Helper(); link(t, p, "../outside/new", "a/calls.jsonl") }},
		{"a directory that is a link outside", func(t *testing.T, p *place) { t.Helper(); link(t, p, "../outside", "a") }},
		{"an absolute link", func(t *testing.T, p *place) {
			t.Helper()
			link(t, p, filepath.Join(filepath.Dir(p.dir), "outside", "target"), "a/calls.jsonl")
		}},
		{"a link to another sort of file inside", func(t *testing.T, p *place) {
			t.Helper()
			p.put("check.sh", "#!/bin/sh\n")
			link(t, p, "../check.sh", "a/calls.jsonl")
		}},
		{"a directory", func(t *testing.T, p *place) { t.Helper(); p.put("a/calls.jsonl/x", "") }},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			outer := newPlace(t)
			outer.put("outside/target", "before")
			p := &place{t, filepath.Join(outer.dir, "hooks")}
			p.put("x", "")
			test.build(t, p)
			trial := try(t, p.set(gate("action: { save_json: a/calls.jsonl }"), nil), write)
			if trial.Output.Decision != belay.ToolDeny || !strings.Contains(trial.Output.Reason, "save_json cannot write") {
				t.Errorf("%v, want it refused", trial)
			}
			if outer.read("outside/target") != "before" || outer.has("outside/new") || outer.has("outside/calls.jsonl") {
				t.Error("it wrote outside of its directory")
			}
			if p.has("check.sh") && p.read("check.sh") != "#!/bin/sh\n" {
				t.Error("it wrote to a script")
			}
		})
	}
}

func link(t *testing.T, p *place, to, name string) {
	t.Helper()
	path := filepath.Join(p.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// SPEC C-11
func TestSecretsDoNotLeave(t *testing.T) {
	t.Parallel()
	const provider, named, signing, short = "sk-provider-0123", `he said "4711" <&>`, "signing-key-77", "abc"
	var mu sync.Mutex
	var posted, logged bytes.Buffer
	address, host := server(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&posted, r.Body)
	})
	p := newPlace(t)
	declared := p.load(`secrets: [NAMED, SHORT, UNSET]
hooks:
  - { id: a, phase: tool.pre, action: { log: { message: seen, content: true } } }
  - { id: b, phase: tool.pre, action: { save_json: calls.jsonl } }
  - { id: c, phase: tool.pre, webhook: { url: '` + address + `', secret: SIGNING } }
`)
	set, err := declare.New(declared, operator, &declare.Options{
		Secrets: []string{provider, "x"}, Environ: []string{"NAMED=" + named, "SIGNING=" + signing, "SHORT=" + short},
		Allowlist: []string{host}, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(named)
	if err != nil {
		t.Fatal(err)
	}
	escaped := strings.ReplaceAll(provider, "p", `\u0070`)
	input := `{"id": "1", "tool": "write", "input": {"a": "x` + escaped + `y", "` + signing + `": [` + string(quoted) + `], "b": "` + short + `", "n": 12.50, "t": [true, null, {}]}}`
	for _, sub := range set.Subscriptions() {
		if trial := hooktest.Try(t, belay.ToolPre, sub, hooktest.Input(t, belay.ToolPre, input), nil); len(trial.Diagnostics) > 0 {
			t.Fatal(trial)
		}
	}
	saved := p.read("calls.jsonl")
	for where, text := range map[string]string{"webhook": posted.String(), "save_json": strings.TrimSpace(saved)} {
		const want = `"input":{"a":"x[REDACTED]y","[REDACTED]":["[REDACTED]"],"b":"abc","n":12.50,"t":[true,null,{}]}`
		if !strings.Contains(text, want) || !json.Valid([]byte(text)) {
			t.Errorf("%s = %s, want %s in it", where, text, want)
		}
	}
	if text := logged.String(); strings.Count(text, "[REDACTED]") != 3 || strings.Contains(text, "4711") || strings.Contains(text, "provider") || !strings.Contains(text, "message=seen") {
		t.Errorf("log = %s", text)
	}
}

// SPEC C-01, C-11
func TestLogWritesNoContentUnlessAskedTo(t *testing.T) {
	t.Parallel()
	const input = `{"id":"1","tool":"write","input":{"path":"/srv/planted"}}`
	for _, test := range []struct {
		action  string
		level   slog.Level
		content bool
	}{
		{"log", slog.LevelInfo, false},
		{"{ log: seen }", slog.LevelInfo, false},
		{"{ log: { level: warn } }", slog.LevelWarn, false},
		{"{ log: { level: debug, message: seen } }", slog.LevelDebug, false},
		{"{ log: { level: error, content: false } }", slog.LevelError, false},
		{"{ log: { content: true } }", slog.LevelInfo, true},
	} {
		t.Run(test.action, func(t *testing.T) {
			t.Parallel()
			var logged bytes.Buffer
			logger := slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
			try(t, newPlace(t).set(gate("action: "+test.action), &declare.Options{Logger: logger}), input)
			var line map[string]any
			if err := json.Unmarshal(logged.Bytes(), &line); err != nil {
				t.Fatalf("%s: %v", logged.String(), err)
			}
			sum := sha256.Sum256([]byte(input))
			want := map[string]any{
				"level": test.level.String(), "phase": "tool.pre", "subscription": "gate", "session": "test", "tool": "write",
				"input_size": float64(len(input)), "input_hash": "sha256:" + hex.EncodeToString(sum[:]),
			}
			for key, value := range want {
				if line[key] != value {
					t.Errorf("%s = %v, want %v, in %s", key, line[key], value, logged.String())
				}
			}
			if got := strings.Contains(logged.String(), "planted"); got != test.content {
				t.Errorf("content is in it: %t, want %t: %s", got, test.content, logged.String())
			}
		})
	}
}

// SPEC C-01, W-04
func TestLogRefusesSettingsThatItDoesNotHave(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{
		"{ log: { level: loud } }":    `level: unknown value "loud"`,
		"{ log: { level: INFO+2 } }":  `level: unknown value "INFO+2"`,
		"{ log: { contents: true } }": `unknown key "contents" (did you mean "content"?)`,
		"{ deny: { level: warn } }":   "deny is a mapping: write a text",
	} {
		_, err := declare.Parse("a.yaml", []byte(gate("action: "+action)))
		wantFault(t, err, 4, want)
	}
}
