package permit_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
)

// The floor knows what the tools of package toolbox do. Settings that describe them
// otherwise would switch off the floor.
//
// SPEC P-03, P-05
func TestStockToolsAreNotForSettingsToDescribe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tool := range []string{"read", "list", "glob", "grep", "write", "edit", "shell"} {
		for _, p := range []permit.Profile{{}, {Zone: permit.ZoneMachine}, {Command: "command"}} {
			_, err := permit.New(w.project, &permit.Options{Tools: map[string]permit.Profile{tool: p}})
			if err == nil || !strings.Contains(err.Error(), `tool "`+tool+`" is part of Belay`) {
				t.Errorf("%s: error %v does not refuse it", tool, err)
			}
		}
	}
	floor := w.floor(t, permit.Options{Sandboxed: true, Tools: map[string]permit.Profile{"*": {}, "s*": {}, "[sw]*": {}}})
	expect(t, shell(t, floor, "rm -rf /"), belay.ToolDeny, "zone 6")
	expect(t, file(t, floor, "write", ".git/config"), belay.ToolDeny, "protection")
}

// A rule or a guard that can never match gives false security. So New returns an error
// that says what to write.
//
// SPEC P-01, P-05
func TestWhatCanNeverHoldIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tools := map[string]permit.Profile{"deploy": {Zone: permit.ZoneExternal}, "Read": {Zone: permit.ZoneSafe}}
	for text, want := range map[string]string{
		"deny shell(git commit:*)":           "write git commit *",
		"deny shell(git:* push)":             "write git *",
		"deny shell(git commit && git push)": "one rule for each",
		"deny shell(git|hg commit)":          "one rule for each",
		"deny shell(git add; git push)":      "one rule for each",
		"deny shell(make &)":                 "one rule for each",
		"deny shell(echo x > y)":             "about the path",
		"deny shell(make 2>log)":             "about the path",
		"deny shell(sh <x)":                  "about the path",
		`deny shell("git push")`:             "without quotes",
		"deny *(command:git push:*)":         "write git push *",
		"deny Shell":                         `did you mean "shell"?`,
		"deny shel":                          `did you mean "shell"?`,
		"deny shlel(ls)":                     `did you mean "shell"?`,
		"allow writee":                       `did you mean "write"?`,
		"ask deplooy(to=prod)":               `did you mean "deploy"?`,
		"allow fetch(https://example.com/*)": "describe the tool under permit.tools",
		"allow fetch(url:example.com)":       "describe the tool under permit.tools",
		"deny fetch(https://example.com/*)":  "",
		"deny shell(https://example.com/*)":  "",
		"deny Read":                          "",
		"deny lint":                          "",
		"ask list_issues":                    "",
		"deny sh*":                           "",
		"deny shell(kubectl get a:b)":        "",
		"deny shell(sed s?a?b?)":             "",
	} {
		r, err := permit.ParseRule(text)
		if err == nil {
			_, err = permit.New(dir, &permit.Options{Rules: []permit.Rule{r}, Tools: tools})
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v does not say %q", text, err, want)
		}
	}
	for _, c := range []struct {
		guard permit.Guard
		want  string
	}{
		{permit.Guard{ID: "a", Tools: []string{"shel"}, Deny: "x"}, `guard "a": tools: there is no tool "shel": did you mean "shell"?`},
		{permit.Guard{ID: "a", Commands: []string{"git push"}}, `guard "a": commands: "git push" is not the name of a command`},
		{permit.Guard{Deny: "x"}, "guard 1: the guard has no id"},
		{permit.Guard{ID: "a"}, "set deny, commands or paths"},
	} {
		_, err := permit.New(dir, &permit.Options{Guards: []permit.Guard{c.guard}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v does not say %q", c.guard, err, c.want)
		}
	}
}

// SPEC P-04
func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		opts permit.Options
		want string
	}{
		{permit.Options{Roots: []string{"nope"}}, `the root "nope" is not the absolute path of a directory`},
		{permit.Options{Mode: permit.Mode{Auto: 5}}, "the mode has no name"},
		{permit.Options{Mode: permit.Mode{Name: "mine", Auto: 5}}, "Auto must not be above Ask"},
		{permit.Options{Mode: permit.Mode{Name: "mine", Auto: 5, Ask: 6}}, "zone 6 never runs"},
		{permit.Options{Mode: permit.Mode{Name: "mine", Auto: -1, Ask: 5}}, "zones 0 to 5"},
	} {
		if _, err := permit.New(dir, &c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v does not say %q", c.opts, err, c.want)
		}
	}
	for _, mode := range permit.Modes() {
		for _, other := range permit.Modes() {
			if _, err := permit.New(dir, &permit.Options{Mode: mode.Tighter(other)}); err != nil {
				t.Error(err)
			}
		}
	}
}

// An approval depends on the text of the rule that asks, not on its line number. It stays
// valid when a line is added above the rule.
//
// SPEC P-09
func TestAskersHaveNoLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := rules(t, "ask write(migrations/**)")[0]
	rule.Where = "belay.yaml:3"
	e := file(t, w.floor(t, permit.Options{Rules: []permit.Rule{rule}}), "write", "migrations/1.sql")
	if e.By != "rule ask write(migrations/**)" {
		t.Errorf("asked by %q", e.By)
	}
	if !strings.Contains(e.Reason, "belay.yaml:3") || e.Opinions[0].Where != "belay.yaml:3" || !strings.Contains(e.String(), "(belay.yaml:3)") {
		t.Errorf("nobody is told where the rule stands:\n%s", e)
	}
}

// Without a sandbox the zone rises by one. The reason still describes what the call does.
//
// SPEC P-12
func TestReasonsWithoutASandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	floor := w.floor(t, permit.Options{})
	for command, want := range map[string][]string{
		"go test ./...":          {"go test ./... is zone 2 build (builds or runs the project), one higher because commands run without a sandbox", "zone 2 build: runs code"},
		"echo a > hello.txt":     {"writes hello.txt: zone 1 workspace, one higher because commands run without a sandbox", "zone 1 workspace: changes files"},
		"curl https://a.example": {"is zone 3 network (fetches from the network), one higher", "zone 3 network: fetches"},
		"nosuchprogram":          {"is zone 5 machine (an unknown program), and standard mode", "zone 5 machine: uses or changes"},
	} {
		e := shell(t, floor, command)
		expect(t, e, belay.ToolAsk, "zone")
		if !strings.Contains(e.Reason, want[0]) {
			t.Errorf("%s: %q does not say %q", command, e.Reason, want[0])
		}
		if !strings.HasPrefix(e.Reach(), want[1]) {
			t.Errorf("%s: reaches %q, want %q", command, e.Reach(), want[1])
		}
	}
}
