package guard_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/guard"
)

func setup(t *testing.T, agent dialect.Vendor) guard.Setup {
	t.Helper()
	s, err := guard.SetupOf(agent)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func install(t *testing.T, s guard.Setup, text string) string {
	t.Helper()
	after, err := s.Install([]byte(text), "belay")
	if err != nil {
		t.Fatalf("install into %q: %v", text, err)
	}
	if !json.Valid(after) {
		t.Fatalf("install into %q makes invalid JSON:\n%s", text, after)
	}
	if _, lacks, err := s.Installed(after); err != nil || len(lacks) > 0 {
		t.Fatalf("install into %q leaves out %v (%v)", text, lacks, err)
	}
	return string(after)
}

func uninstall(t *testing.T, s guard.Setup, text string) string {
	t.Helper()
	before, err := s.Uninstall([]byte(text))
	if err != nil {
		t.Fatalf("uninstall from %q: %v", text, err)
	}
	return string(before)
}

// Uninstall restores every byte, however the file is written.
func TestUninstallUndoesInstallExactly(t *testing.T) { // SPEC B-06
	t.Parallel()
	texts := []string{
		"", "{}", "{ }", "{}\n", "{\n  \"a\": 1\n}\n", `{"a":1}`, `{"hooks":{}}`, `{"hooks":{ }}`, "{\"hooks\":{\n}}", "{\n\t\"hooks\": {\n\t\t\"Other\": []\n\t}\n}",
		`{"hooks":{"PreToolUse":[],"BeforeTool":[ ],"preToolUse":[]},"z":[1, 2,{"hooks":{}}]}`,
		"{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"./a.sh <x> & y\"}]}\n    ],\n    \"Stop\": [{\"hooks\": []}]\n  },\n  \"env\": {\"KEY\": \"\\\"q\\\\\"}\n}\n",
		"{\"version\": 1, \"hooks\": {\"preToolUse\": [{\"command\": \"./audit.sh\"}], \"stop\": [\n{\"command\": \"x\"}\n]}}\r\n",
	}
	for i, agent := range dialect.Vendors() {
		t.Run(string(agent), func(t *testing.T) {
			t.Parallel()
			texts := slices.Clone(texts)
			random := rand.New(rand.NewPCG(1, uint64(i))) // each agent gets other texts
			for range 60 {
				texts = append(texts, randomSettings(random))
			}
			s := setup(t, agent)
			for _, text := range texts {
				after := install(t, s, text)
				if again := install(t, s, after); again != after {
					t.Fatalf("%s: a second install changes\n%s\nto\n%s", agent, after, again)
				}
				if got := uninstall(t, s, after); got != text {
					t.Fatalf("%s: install and uninstall change\n%q\nto\n%q\nby way of\n%s", agent, text, got, after)
				}
			}
		})
	}
}

// randomSettings returns a random JSON object with hooks of others, in a random layout.
func randomSettings(r *rand.Rand) string {
	space := func() string { return []string{"", " ", "\n", "\n  ", "\t", "\n    "}[r.IntN(6)] }
	list := func() string {
		var all []string
		for range r.IntN(3) {
			all = append(all, space()+[]string{`{"matcher":"Bash","hooks":[{"type":"command","command":"./check.sh"}]}`, `{"command" : "a, b] }"}`, `1`, `"x\"]"`}[r.IntN(4)]+space())
		}
		return "[" + strings.Join(all, ",") + space() + "]"
	}
	object := func(names []string, value func() string) string {
		var all []string
		for _, name := range names {
			if r.IntN(2) == 0 {
				all = append(all, space()+`"`+name+`"`+space()+":"+space()+value()+space())
			}
		}
		return "{" + strings.Join(all, ",") + space() + "}"
	}
	hooks := func() string {
		return object([]string{"PreToolUse", "Stop", "BeforeTool", "preToolUse", "stop", "Other", "agentStop"}, list)
	}
	values := []string{"permissions", "a\\\"b", "version"}
	if r.IntN(3) > 0 {
		return object(append(values, "hooks"), hooks)
	}
	return object(values, func() string { return []string{"1", "null", `"x"`, "[]", "{}"}[r.IntN(5)] })
}

// If the file was edited after Install, Uninstall removes only Belay's hooks.
func TestUninstallKeepsLaterEdits(t *testing.T) { // SPEC B-06
	t.Parallel()
	for _, agent := range dialect.Vendors() {
		s := setup(t, agent)
		var edited map[string]any
		if err := json.Unmarshal([]byte(install(t, s, `{"a": 1}`)), &edited); err != nil {
			t.Fatal(err)
		}
		hooks, _ := edited["hooks"].(map[string]any)
		var event string
		for name := range hooks {
			event = name
		}
		list, _ := hooks[event].([]any)
		mine := map[string]any{"command": "belay hooks list", "note": "not a hook command of belay hook"}
		hooks[event] = append([]any{mine}, list...)
		edited["b"] = 2.0
		text, err := json.MarshalIndent(edited, "", "    ") // an editor also changed the layout
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(uninstall(t, s, string(text))), &got); err != nil {
			t.Fatal(err)
		}
		left, _ := got["hooks"].(map[string]any)
		if got["a"] != 1.0 || got["b"] != 2.0 || !reflect.DeepEqual(left[event], []any{mine}) || strings.Contains(toJSON(t, got), "--agent") {
			t.Errorf("%s: uninstall leaves %s", agent, toJSON(t, got))
		}
	}
}

// A hook that the user has added to the group of Belay's entry stays.
func TestUninstallKeepsTheUsersHookInAGroup(t *testing.T) { // SPEC B-06
	t.Parallel()
	for _, agent := range []dialect.Vendor{dialect.ClaudeCode, dialect.Codex, dialect.GeminiCLI} {
		s := setup(t, agent)
		var edited map[string]any
		if err := json.Unmarshal([]byte(install(t, s, `{}`)), &edited); err != nil {
			t.Fatal(err)
		}
		hooks, _ := edited["hooks"].(map[string]any)
		groups := 0
		for _, list := range hooks {
			all, _ := list.([]any)
			for _, one := range all {
				if group, ok := one.(map[string]any); ok && group["hooks"] != nil {
					own, _ := group["hooks"].([]any)
					group["hooks"] = append(own, map[string]any{"type": "command", "command": "./mine.sh"})
					groups++
				}
			}
		}
		left := uninstall(t, s, toJSON(t, edited))
		if groups == 0 || strings.Count(left, "./mine.sh") != groups || strings.Contains(left, "--agent") {
			t.Errorf("%s: of %d hooks, uninstall leaves %s", agent, groups, left)
		}
	}
}

func toJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestInstallRefusesWhatItCannotKeep(t *testing.T) { // SPEC B-06
	t.Parallel()
	for _, text := range []string{"{ // note\n}", `{"a":1,}`, "[]", `{"hooks":[]}`, `{"hooks":{"PreToolUse":{}}}`, "hello"} {
		if after, err := setup(t, dialect.ClaudeCode).Install([]byte(text), "belay"); err == nil {
			t.Errorf("install into %q: %s, want an error", text, after)
		}
	}
}

// If Belay is missing or dies, the installed command still blocks.
func TestTheInstalledCommandOfAGateBlocksWithoutBelay(t *testing.T) { // SPEC B-05, B-06
	t.Parallel()
	for agent, want := range map[dialect.Vendor]string{
		dialect.ClaudeCode: `"command":"belay hook --agent claude-code || exit 2"`,
		dialect.Codex:      `"command":"belay hook --agent codex || exit 2"`,
		dialect.GeminiCLI:  `"command":"belay hook --agent gemini-cli || exit 2"`,
		dialect.Cursor:     `"command":"belay hook --agent cursor || exit 2","failClosed":true`,
		dialect.Copilot:    `"bash":"belay hook --agent copilot --event preToolUse || echo '{\"permissionDecision\":\"deny\"`,
	} {
		if text := install(t, setup(t, agent), ""); !strings.Contains(text, want) {
			t.Errorf("%s: the file has no %s:\n%s", agent, want, text)
		}
	}
}
