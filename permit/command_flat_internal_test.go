package permit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// commands.txt has no mistakes, and names no command twice.
func TestFlatCommands(t *testing.T) {
	t.Parallel()
	flat, err := parseFlat(flatText)
	if err != nil {
		t.Fatal(err)
	}
	code := table{}
	for _, topic := range commandTopics() {
		topic(code)
	}
	for name := range flat.judges {
		if code[name] != nil {
			t.Errorf("%s is in commands.txt and in a Go file: the line in commands.txt has no effect", name)
		}
	}
	for name := range flat.answersAlone {
		if code[name] == nil && flat.judges[name] == nil {
			t.Errorf("%s is in the section answers-alone, but has no judge: the name has no effect there", name)
		}
	}
	for name := range strings.FieldsSeq("echo cat ls diff nm uniq mkdir bison ninja perl nice chroot tflint govulncheck mail useradd jshell") {
		if flat.judges[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestFlatCommandsReportMistakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"a section that does not exist":   {"[raeder]\ncat | *\n", `section "raeder": "cat | *": this section does not exist`},
		"a line before the first section": {"cat | *\n", "this section does not exist"},
		"a command that is there twice":   {"[reader]\ncat tac | *\n[harmless]\ntac\n", "tac is there twice"},
		"a field too many":                {"[reader]\ncat | * | x\n", "it has 2 fields after the names, want 1"},
		"a field too few":                 {"[machine]\nuseradd\n", "it has 0 fields after the names, want 1"},
		"a word in place of a number":     {"[wrapper]\nnice | +* | one\n", `"one" is not a number`},
	} {
		if _, err := parseFlat(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want %q", name, err, c.want)
		}
	}
}

// A command that is always judged like an unlisted program needs no entry. The test
// compares the zone, who decides, and whether the approved command runs outside the
// sandbox. It ignores the text of the reason.
func TestEveryEntryHasAnEffect(t *testing.T) {
	t.Parallel()
	known, _ := workshop(t)
	unlisted := *known
	unlisted.commands = &commands{}
	judged := func(f *Floor, line string) string {
		input, err := json.Marshal(map[string]string{"command": line})
		if err != nil {
			t.Fatal(err)
		}
		e := f.Explain(context.Background(), shellTool, input)
		text := fmt.Sprint(e.Decision, e.By, e.Outside(nil), e.Network(), e.Agent())
		for i := range e.Findings {
			found := &e.Findings[i]
			text += fmt.Sprint(found.Kind, found.Subject, found.Zone, found.Protection, found.opaque, found.code)
		}
		return text
	}
	differs := func(name string) bool {
		for _, words := range []string{
			"", "x", "--version", "--help", "version", "help", "list", "status", "show", "-l", "-V", "-x", "a b", "src", "/etc/passwd", "-o /etc/passwd",
			"-n 1", "-e code", "-f a.txt", "run x", "https://example.com/x", "user@host:path", "*.txt", "$X", "ls", "< a.txt",
		} {
			// "command" also runs names that the shell would parse as a declaration, such
			// as export and let
			if line := "command " + name + " " + words; judged(known, line) != judged(&unlisted, line) {
				return true
			}
		}
		return false
	}
	unlisted.commands.judges = table{"command": commandCommand}
	for name := range known.commands.judges {
		if name != "command" && !differs(name) {
			t.Errorf("%s is judged like a program that has no entry: remove the entry", name)
		}
	}
}
