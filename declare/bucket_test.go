package declare_test

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
)

// In buckets, hooks may be flat: the keys of an action are on the same level as the key
// action.
//
// SPEC W-03, C-01
func TestBucketsTakeTheFlatForm(t *testing.T) {
	t.Parallel()
	declared, err := declare.Parse("agent.json", []byte(`{"hooks": {
	"onStart": [{"action": "log"}],
	"onToolCall": [
		{"action": "webhook", "url": "https://ops.example.com/audit"},
		{"action": "approve", "tools": ["send_*", "shell"]},
		{"id": "mine", "action": "webhook", "url": "https://ops.example.com/", "secret": "KEY", "tools": ["write"], "failure": "open"},
		{"action": "command", "command": "./check.sh --strict"},
		{"action": "command", "command": ["./check.sh", "--strict"]},
		{"action": {"deny": "not here"}, "match": {"tools": ["rm"]}}
	],
	"onToolEnd": [{"action": "log", "level": "warn", "content": true, "message": "seen"}],
	"onComplete": [{"action": "save_json", "path": "runs/log.jsonl"}],
	"onError": {"action": "log", "level": "error"},
	"turn.stop": [{"run": "make test"}]
}}`))
	if err != nil {
		t.Fatal(err)
	}
	type brief struct {
		ID, Phase string
		Kind      hook.HandlerKind
		Argv      []string
		Webhook   *declare.Endpoint
		Action    *declare.Action
		Tools     []string
		Failure   string
	}
	got := map[string]brief{}
	for _, d := range declared {
		got[d.ID] = brief{d.ID, d.Phase, d.Kind, d.Argv, d.Webhook, d.Action, d.Options.Match.Tools, d.Options.Failure.String()}
	}
	want := map[string]brief{}
	for _, b := range []brief{
		{ID: "onStart.1", Phase: "session.start", Kind: hook.HandlerAction, Action: &declare.Action{Name: "log"}},
		{ID: "onToolCall.1", Phase: "tool.pre", Kind: hook.HandlerWebhook, Webhook: &declare.Endpoint{URL: "https://ops.example.com/audit"}},
		{ID: "onToolCall.2", Phase: "tool.pre", Kind: hook.HandlerAction, Action: &declare.Action{Name: "approve"}, Tools: []string{"send_*", "shell"}},
		{ID: "mine", Phase: "tool.pre", Kind: hook.HandlerWebhook, Webhook: &declare.Endpoint{URL: "https://ops.example.com/", Secret: "KEY"}, Tools: []string{"write"}, Failure: "open"},
		{ID: "onToolCall.4", Phase: "tool.pre", Kind: hook.HandlerCommand, Argv: []string{"sh", "-c", "./check.sh --strict"}},
		{ID: "onToolCall.5", Phase: "tool.pre", Kind: hook.HandlerCommand, Argv: []string{"./check.sh", "--strict"}},
		{ID: "onToolCall.6", Phase: "tool.pre", Kind: hook.HandlerAction, Action: &declare.Action{Name: "deny", Text: "not here"}, Tools: []string{"rm"}},
		{ID: "onToolEnd.1", Phase: "tool.post", Kind: hook.HandlerAction, Action: &declare.Action{Name: "log", Text: "seen", Level: slog.LevelWarn, Content: true}},
		{ID: "onComplete.1", Phase: "turn.post_turn", Kind: hook.HandlerAction, Action: &declare.Action{Name: "save_json", Text: "runs/log.jsonl"}},
		{ID: "onError.1", Phase: "error", Kind: hook.HandlerAction, Action: &declare.Action{Name: "log", Level: slog.LevelError}},
		{ID: "turn.stop.1", Phase: "turn.stop", Kind: hook.HandlerCommand, Argv: []string{"sh", "-c", "make test"}},
	} {
		if b.Failure == "" {
			b.Failure = "default"
		}
		want[b.ID] = b
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("declared (-want +got):\n%s", diff)
	}
}

// SPEC W-03, W-04
func TestMistakesInTheFlatForm(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, text string
		line       int
		want       string
	}{
		{"a webhook without an address", "onToolCall:\n    - { action: webhook }", 3, "the webhook has no url"},
		{"a key of another action", "onToolCall:\n    - { action: approve, url: 'https://example.com/' }", 3, `unknown key "url"`},
		{"a file of another action", "onToolCall:\n    - { action: log, path: a.jsonl }", 3, `unknown key "path"`},
		{"a file that may not be written", "onToolCall:\n    - { action: save_json, path: ../a.jsonl }", 3, "outside the directory of the hook file"},
		{"save_json without a file", "onComplete:\n    - action: save_json", 3, "save_json has no file"},
		{"a level that there is not", "onError:\n    - { action: log, level: loud }", 3, `level: unknown value "loud"`},
		{"tools beside match", "onToolCall:\n    - { action: deny, tools: [a], match: { tools: [b] } }", 3, "it belongs to match"},
		{"tools where there are none", "onStart:\n    - { action: log, tools: [a] }", 3, "inputs of session.start have no tool"},
		{"an approval of what has begun", "onToolEnd:\n    - { action: approve }", 3, "use phase tool.pre"},
		{"a command that is missing", "onToolCall:\n    - { action: command }", 3, `unknown value "command"`},
		{"the flat form elsewhere", "\n  - { id: a, phase: tool.pre, action: deny, tools: [a] }", 3, "it belongs to match"},
		{"no id elsewhere", "\n  - { phase: tool.pre, action: deny }", 3, "the hook has no id"},
		{"a bucket that is no list", "onToolCall: log", 2, "onToolCall is a text: write a list of hooks"},
		{"an id that is taken", "onToolCall:\n    - { action: log }\n    - { id: onToolCall.1, action: log }", 4, `the id "onToolCall.1" is already used`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			_, err := declare.Parse("a.yaml", []byte("hooks:\n  "+test.text+"\n"))
			wantFault(t, err, test.line, test.want)
		})
	}
}

// Hooks in the flat form run like other hooks.
//
// SPEC W-03
func TestTheFlatFormRuns(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	set := p.set("hooks:\n  onToolCall:\n    - { action: save_json, path: calls.jsonl }\n    - { action: approve, tools: [write] }\n", nil)
	subs := set.Subscriptions()
	ids := []string{subs[0].ID(), subs[1].ID()}
	if want := []string{"onToolCall.1", "onToolCall.2"}; !slices.Equal(ids, want) {
		t.Errorf("ids = %q, want %q", ids, want)
	}
}
