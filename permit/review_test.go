package permit_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
)

// SPEC P-05: options before a subcommand (git -C . push), and other spellings of a path, do
// not bypass a rule.
func TestRulesSeePastOptionsAndSpellings(t *testing.T) {
	t.Parallel()
	floor := newWorld(t).floor(t, permit.Options{
		Mode: permit.Permissive, Sandboxed: true,
		Rules: rules(t, "deny shell(git push)", "allow shell(git *)", "deny shell(npm publish)", "allow fetch(https://h.example.com/api/*)", "deny fetch(https://h.example.com/admin/*)"),
		Tools: map[string]permit.Profile{"fetch": {Zone: permit.ZoneExternal, URLs: []string{"url"}}},
	})
	for _, test := range []struct {
		tool, field, value string
		want               belay.ToolDecision
	}{
		{"shell", "command", "git push", belay.ToolDeny},
		{"shell", "command", "git -C . push", belay.ToolDeny},
		{"shell", "command", "git --no-pager push origin", belay.ToolDeny},
		{"shell", "command", "git -c user.name=x push", belay.ToolDeny},
		{"shell", "command", "npm -s publish", belay.ToolDeny},
		{"shell", "command", "git log push", belay.ToolPass},
		{"shell", "command", "git stash push", belay.ToolPass},
		{"fetch", "url", "https://h.example.com/api/x", belay.ToolPass},
		{"fetch", "url", "https://h.example.com/api/../other/x", belay.ToolAsk},
		{"fetch", "url", "https://h.example.com/api/%2e%2e/other/x", belay.ToolAsk},
		{"fetch", "url", "https://h.example.com/x/../admin/y", belay.ToolDeny},
		{"fetch", "url", "https://h.example.com/%61dmin/y", belay.ToolDeny},
		{"fetch", "url", "https://h.example.com//admin/y", belay.ToolDeny},
	} {
		if e := floor.Explain(t.Context(), test.tool, input(t, map[string]any{test.field: test.value})); e.Decision != test.want {
			t.Errorf("%s %s: %q by %s, want %q", test.tool, test.value, e.Decision, e.By, test.want)
		}
	}
}

// SPEC P-03, P-09: an approval for commands inside the sandbox does not cover commands
// outside it, because the two questions have different askers.
func TestWhatRunsOutsideIsAnotherQuestion(t *testing.T) {
	t.Parallel()
	floor := newWorld(t).floor(t, permit.Options{Mode: permit.Build, Sandboxed: true})
	inside := floor.Explain(t.Context(), "shell", input(t, map[string]any{"command": "./unknown; $X"}))
	outside := floor.Explain(t.Context(), "shell", input(t, map[string]any{"command": "crontab x"}))
	if inside.Decision != belay.ToolAsk || outside.Decision != belay.ToolAsk || inside.By == outside.By {
		t.Errorf("inside is asked by %q, outside by %q", inside.By, outside.By)
	}
}

// SPEC P-03, P-12: the floor assumes a sandbox only for Belay's own shell tool, not for
// other tools that run commands.
func TestOtherToolsThatRunCommandsAreNotConfined(t *testing.T) {
	t.Parallel()
	floor := newWorld(t).floor(t, permit.Options{Mode: permit.Build, Sandboxed: true, Tools: map[string]permit.Profile{"runner": {Command: "cmd"}}})
	if e := floor.Explain(t.Context(), "runner", input(t, map[string]any{"cmd": "./x.sh"})); e.Decision != belay.ToolAsk || e.Zone != permit.ZoneNetwork {
		t.Errorf("it is zone %d, %q", e.Zone, e.Decision)
	}
}

// SPEC P-03: a URL field with an unexpected type of value, such as an object or a nested
// list, is denied and not ignored.
func TestFieldsOfAnotherShape(t *testing.T) {
	t.Parallel()
	floor := newWorld(t).floor(t, permit.Options{Mode: permit.Permissive, Tools: map[string]permit.Profile{"fetch": {Zone: permit.ZoneNetwork, URLs: []string{"url"}}}})
	for input, want := range map[string]belay.ToolDecision{
		`{"url":"https://example.com/"}`:             belay.ToolPass,
		`{"url":["https://example.com/"]}`:           belay.ToolPass,
		`{"url":[]}`:                                 belay.ToolPass,
		`{"url":null}`:                               belay.ToolPass,
		`{"url":{"href":"http://169.254.169.254/"}}`: belay.ToolDeny,
		`{"url":[["http://169.254.169.254/"]]}`:      belay.ToolDeny,
		`{"url":["https://example.com/", 1]}`:        belay.ToolDeny,
	} {
		if e := floor.Explain(t.Context(), "fetch", []byte(input)); e.Decision != want {
			t.Errorf("%s: %q by %s, want %q", input, e.Decision, e.By, want)
		}
	}
}
