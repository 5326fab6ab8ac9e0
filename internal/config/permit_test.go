package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
)

// Belay rejects settings that can never apply, or that would switch the floor off. The
// error has the line and uses the words of the file.
//
// SPEC P-01, P-05
func TestSettingsOfTheFloorThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule          string
		user, project string
		want          []string
	}{
		{
			"a stock tool is not for settings to describe", "permit:\n  tools:\n    shell: {zone: 0}\n    write: {zone: 1}\n", "",
			[]string{`belay.yaml:3: permit.tools: tool "shell" is part of Belay`, `belay.yaml:4: permit.tools: tool "write" is part of Belay`},
		},
		{"another agent's spelling", "", "permit:\n  rules:\n    - deny shell(git commit:*)\n", []string{`belay.yaml:3: permit.rules: rule "deny shell(git commit:*)"`, "write git commit *"}},
		{"several commands in one rule", "", "permit:\n  rules:\n    - deny shell(git commit && git push)\n", []string{"belay.yaml:3: permit.rules:", "one rule for each"}},
		{"a tool that is nearly one", "", "permit:\n  rules:\n    - deny Shell\n", []string{"belay.yaml:3: permit.rules:", `did you mean "shell"?`, "describe it under permit.tools"}},
		{"a guard for a tool that is nearly one", "", "permit:\n  guards:\n    - {id: a, tools: [shel], deny: x}\n", []string{`belay.yaml:3: permit.guards: guard "a": tools: there is no tool "shel": did you mean "shell"?`}},
		{"a guard without an id", "", "permit:\n  guards:\n    - {deny: x}\n", []string{"belay.yaml:3: permit.guards: the guard has no id"}},
		{"a guard that guards nothing", "", "permit:\n  guards:\n    - {id: a}\n", []string{"set deny, commands or paths"}},
		{"a word in place of protections", "permit:\n  relax: destructive.files\n", "", []string{"belay.yaml:2: permit.relax: expected a list"}},
		{"an address that allows nothing", "permit:\n  rules:\n    - allow fetch(https://example.com/*)\n", "", []string{"belay.yaml:3: permit.rules:", "describe the tool under permit.tools, such as {fetch:"}},
	} {
		_, err := config.Load(files(t, test.user, test.project))
		if err == nil {
			t.Errorf("%s: no error", test.rule)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\ndoes not say %q", test.rule, err, want)
			}
		}
		for _, name := range []string{"Options", "Deny", "Commands,", "ID", "[read, grep]"} {
			if strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v\nspeaks of %s, which is in no file", test.rule, err, name)
			}
		}
	}
	// A tool with a profile can have any name, in whatever order the settings are.
	l := load(t, files(t, "permit:\n  guards: [{id: a, tools: [Shell], deny: x}]\n  rules: [allow Shell]\n  tools: {Shell: {zone: 4}}\n", ""))
	if _, err := permit.New(l.Project, l.FloorOptions()); err != nil {
		t.Error(err)
	}
}

// The examples in docs/permit.md are valid.
func TestThePageAboutTheFloorLoads(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "permit.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 2 {
		t.Fatalf("there are %d settings on the page", len(blocks))
	}
	for _, block := range blocks {
		l, err := config.Load(files(t, string(block[1]), ""))
		if err != nil {
			t.Errorf("%s\n%v", block[1], err)
			continue
		}
		if _, err := permit.New(l.Project, l.FloorOptions()); err != nil {
			t.Errorf("%s\n%v", block[1], err)
		}
	}
}
