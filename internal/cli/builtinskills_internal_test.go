package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The built-in skills are there without files, become active by the user's words, and their
// examples work as they stand. They cost nothing in other turns.
//
// SPEC U-06
func TestBuiltinSkills(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"s.yaml": "repeat: true\nsteps:\n  - text: Done.\n"})
	d.must("skills", "list")
	contains(t, d.out.String(), "belay-denial", "belay-hook", "belay-skill")
	for task, want := range map[string]string{
		"write a belay hook against pushes":                  "belay-hook",
		"I want a hook that denies writes to deploy/prod":    "belay-hook",
		"make a skill for our release notes":                 "belay-skill",
		"why was git push denied?":                           "belay-denial",
		"explain the denial of that call":                    "belay-denial",
		"add a useEffect hook to the page and hook up a log": "",
		"which skills does the job offer ask for?":           "",
		"why does the build fail?":                           "",
	} {
		d.run("skills", "match", task)
		if got := regexp.MustCompile(`belay-[a-z]+`).FindString(d.out.String()); got != want {
			t.Errorf("the task %q activates %q, want %q:\n%s%s", task, got, want, d.out.String(), d.err.String())
		}
	}
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(d.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	example := func(skill, language string) string {
		t.Helper()
		d.must("skills", "show", skill)
		block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(d.out.String())
		if block == nil {
			t.Fatalf("the skill %s has no example in %s:\n%s", skill, language, d.out.String())
		}
		return block[1]
	}
	put(".belay/hooks/no-prod.yaml", example("belay-hook", "yaml"))
	d.must("trust", "--yes")
	d.must("hooks", "test")
	contains(t, d.out.String()+d.err.String(), "2 tests passed")
	put(".belay/skills/release-notes/SKILL.md", example("belay-skill", "markdown"))
	d.must("skills", "check", "--strict", ".belay/skills/release-notes")
	d.must("check")
	for line := range strings.SplitSeq(strings.TrimSpace(example("belay-denial", "sh")), "\n") {
		var args []string
		for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1)[1:] {
			args = append(args, strings.Trim(word, "'"))
		}
		if code := d.run(args...); code != 0 && code != 1 || d.out.Len() == 0 { // 1: it is denied
			t.Errorf("%s: exit code %d\n%s%s", line, code, d.out.String(), d.err.String())
		}
	}
}
