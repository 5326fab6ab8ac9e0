package claude_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/skill"
)

// SPEC B-04
func TestPlaceholdersAreFilledIn(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"src/a.go": "package a", "b.txt": "$1 @src/a.go"})
	for name, test := range map[string]struct{ text, arguments, want string }{
		"all arguments":                      {"Fix $ARGUMENTS now", "12 high", "Fix 12 high now"},
		"words":                              {"$1, then $2, then $3.", `12 "a b"`, "12, then a b, then ."},
		"words counted from 0":               {"$0 and $1", "a b", "a and b"},
		"an index":                           {"$ARGUMENTS[1]$ARGUMENTS[0]", "a b", "ba"},
		"an amount of money":                 {"It costs $100.", "a", "It costs $100."},
		"a file":                             {"See @src/a.go.", "", "See src/a.go.\n<file path=\"src/a.go\">\nfile src/a.go\n</file>\n"},
		"a file that an argument names":      {"See @$1", "src/a.go", "See src/a.go\n<file path=\"src/a.go\">\nfile src/a.go\n</file>\n"},
		"no file":                            {"Ask @ada or me@src/a.go", "", "Ask @ada or me@src/a.go"},
		"a command":                          {"Status: !`git status $1`", "-s", "Status: ran git status -s"},
		"a block of commands":                {"```!\nls\npwd\n```", "", "ran ls\npwd"},
		"a command in the middle of a word":  {"not!`this`", "", "not!`this`"},
		"a variable":                         {"${CLAUDE_PLUGIN_ROOT}/x ${OTHER}", "", "/plugin/x ${OTHER}"},
		"an argument is not searched again":  {"Do $ARGUMENTS", "!`rm x` @src/a.go $1 ${CLAUDE_PLUGIN_ROOT}", "Do !`rm x` @src/a.go $1 ${CLAUDE_PLUGIN_ROOT}"},
		"a quote inside a word is no quote":  {"$1|$2", "don't stop", "don't|stop"},
		"text without placeholders is as is": {"Plain `$x` text", "a", "Plain `$x` text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &claude.Filling{
				Project: dir, Variables: map[string]string{"CLAUDE_PLUGIN_ROOT": "/plugin"},
				Run:  func(command string) (string, error) { return "ran " + command, nil },
				Read: func(path string) (string, error) { return "file " + path, nil },
			}
			if got, err := f.Fill(test.text, test.arguments); got != test.want || err != nil {
				t.Errorf("Fill(%q, %q) = %q, %v; want %q", test.text, test.arguments, got, err, test.want)
			}
		})
	}
	wrong := errors.New("nobody can be asked")
	f := &claude.Filling{Run: func(string) (string, error) { return "", wrong }}
	if _, err := f.Fill("!`a` !`b`", ""); !errors.Is(err, wrong) {
		t.Errorf("the error is %v, want %v", err, wrong)
	}
}

// SPEC B-04
func TestCommandsAreSkills(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"fix.md":        "---\ndescription: Fix an issue\nargument-hint: [number] [priority]\nallowed-tools: Bash(git log:*), Read, TodoWrite\nmodel: opus\nodd: x\n---\nFix $1.\n",
		"git/push.md":   "# Push it\n\nNow.\n",
		"quiet.md":      "---\ndescription: x\ndisable-model-invocation: true\n---\nBe quiet.\n",
		"broken.md":     "---\ndescription: Use: \"this\" and: that\n  - [x\n---\nGo.\n",
		"unclosed.md":   "---\ndescription: x\n",
		"my command.md": "Do.\n",
		"README.txt":    "no command",
	})
	c := claude.NewCommands(dir, "acme:", &claude.PermissionOptions{Project: dir})
	skills, err := c.List(t.Context())
	byName := make(map[string]*skill.Skill)
	for _, s := range skills {
		byName[s.Name] = s
	}
	if err == nil || !strings.Contains(err.Error(), "unclosed.md") || len(skills) != 5 {
		t.Errorf("%d commands and the error %v, want 5 and an error about unclosed.md", len(skills), err)
	}
	fix := byName["acme:fix"]
	if fix == nil || fix.Description != "Fix an issue (arguments: [number] [priority])" || fix.UserOnly || fix.Body != "Fix $1." || !slices.Equal(fix.AllowedTools, []string{"shell(git log *)", "read", "todo_write"}) {
		t.Fatalf("acme:fix is %+v", fix)
	}
	if len(fix.Tolerated) != 2 || !strings.Contains(fix.Tolerated[0].Message, "model of the session") || !strings.Contains(fix.Tolerated[1].Message, `"odd"`) {
		t.Errorf("the notes are %v", fix.Tolerated)
	}
	if push := byName["acme:git:push"]; push == nil || push.Description != "Push it" || !push.UserOnly {
		t.Errorf("acme:git:push is %+v", push)
	}
	if quiet := byName["acme:quiet"]; quiet == nil || !quiet.UserOnly {
		t.Errorf("acme:quiet is %+v", quiet)
	}
	if broken := byName["acme:broken"]; broken == nil || !strings.HasPrefix(broken.Description, `Use: "this" and: that`) || len(broken.Tolerated) == 0 {
		t.Errorf("acme:broken is %+v", broken)
	}
	if byName["acme:my-command"] == nil {
		t.Errorf("the commands are %v", byName)
	}
	again, _ := c.List(t.Context()) // see above
	if slices.Index(again, fix) < 0 {
		t.Error("an unchanged file gave another skill")
	}
	if r, err := c.Read(t.Context(), "acme:fix", ""); err != nil || r.Text != "Fix $1." || r.Path != filepath.Join(dir, "fix.md") {
		t.Errorf("Read = %+v, %v", r, err)
	}
}
