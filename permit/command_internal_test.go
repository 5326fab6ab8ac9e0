package permit

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// lineCase has the expected result for a command line: its zone, and the protections that
// apply, separated by blanks, in any order.
type lineCase struct {
	line       string
	zone       Zone
	protection string
}

// workshop returns the floor of a project with some files, and a function that fills in
// placeholders in lines. OUT stands for a directory next to the project, and TMP for the
// temporary directory. The home directory (~) is elsewhere.
func workshop(t testing.TB) (*Floor, func(string) string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"project/main.go": "package main\n", "project/src/a.txt": "a\n", "project/src/b.txt": "b\n", "project/belay.yaml": "mode: standard\n",
		"project/other/belay.yml": "mode: standard\n",
		"project/.git/config":     "[core]\n", "project/.git/HEAD": "ref: refs/heads/main\n", "project/script.sh": "echo x\n", "project/Makefile": "all:\n",
		"project/good.patch": "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1 +1 @@\n-a\n+b\n",
		"project/evil.patch": "--- a/belay.yaml\n+++ b/belay.yaml\n@@ -1 +1 @@\n-a\n+b\n",
		"project/sub/.git":   "gitdir: ../.git/modules/sub\n", "project/bare/HEAD": "ref: x\n", "project/bare/objects/x": "", "project/bare/refs/x": "",
		"project/nested/.git/config": "[core]\n", "project/cmd/belay/main.go": "package main\n",
		"outside/secret": "secret\n", "outside/run.sh": "echo x\n", "home/.profile": "", "temp/x.sh": "echo x\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := New(filepath.Join(dir, "project"), &Options{Home: filepath.Join(dir, "home"), Temp: filepath.Join(dir, "temp"), Sandboxed: true})
	if err != nil {
		t.Fatal(err)
	}
	return f, strings.NewReplacer("OUT", filepath.Join(dir, "outside"), "TMP", filepath.Join(dir, "temp")).Replace
}

// verdict returns the zone and the protections of findings.
func verdict(found []Finding) (Zone, string) {
	zone := ZoneSafe
	var ids []string
	for i := range found {
		zone = max(zone, found[i].Zone)
		if id := found[i].Protection; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return zone, strings.Join(ids, " ")
}

// judgeLines checks that the floor's result for each line is the expected one.
func judgeLines(t *testing.T, cases []lineCase) {
	t.Helper()
	f, fill := workshop(t)
	for _, c := range cases {
		found := f.analyse(fill(c.line))
		zone, ids := verdict(found)
		want := strings.Fields(c.protection)
		slices.Sort(want)
		if zone == c.zone && ids == strings.Join(want, " ") {
			continue
		}
		e := Explanation{Findings: found, Zone: zone, Mode: Standard}
		t.Errorf("%s\n  is zone %d [%s], want zone %d [%s]\n%s", c.line, zone, ids, c.zone, strings.Join(want, " "), e.String())
	}
}

// hostile returns difficult arguments. The test runs every command with them.
func hostile() map[string][]arg {
	many := make([]arg, 1000)
	for i := range many {
		if many[i] = literal(""); i%10 == 0 {
			many[i] = literal("word")
		}
	}
	return map[string][]arg{
		"no words":          nil,
		"an unknown word":   {{text: `"$x"`}},
		"unknown words":     {{text: "$a"}, {text: "$b"}, {text: "$c"}, {text: "$d"}, {text: "$e"}},
		"a pattern":         {{text: "*", known: true, pattern: true}},
		"patterns":          {{text: "-*", known: true, pattern: true}, {text: "[a-z]*", known: true, pattern: true}, {text: "/*", known: true, pattern: true}},
		"an empty word":     {literal("")},
		"empty words":       {literal(""), literal(""), literal(""), literal("")},
		"a pipe":            {{text: "<(x)", pipe: true}},
		"a thousand words":  many,
		"a dash":            {literal("-")},
		"two dashes":        {literal("--")},
		"three dashes":      {literal("---")},
		"a dash and equals": {literal("--="), literal("-="), literal("=")},
		"all letters":       {literal("-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")},
		"all one by one":    letterOptions(),
		"not text":          {literal("\xff\xfe"), literal("-\xff"), literal("--\xff=\xfe"), literal("\x00")},
		"a colon":           {literal(":"), literal("::"), literal("@"), literal("+"), literal("%"), literal("{}"), literal(";"), literal("!")},
		"a verb, unknown":   {literal("run"), {text: "$x"}},
	}
}

func letterOptions() []arg {
	var all []arg
	for _, letter := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		all = append(all, literal("-"+string(letter)))
	}
	return all
}

// SPEC P-02
func TestEveryCommandSurvivesAnyWords(t *testing.T) {
	t.Parallel()
	f, _ := workshop(t)
	for name, words := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := map[uintptr]bool{}
			for command, judge := range f.commands.judges {
				code := reflect.ValueOf(judge).Pointer()
				if len(words) > 100 && seen[code] {
					continue // the same judge was already tested with another list
				}
				seen[code] = true
				a := &analysis{floor: f, state: state{dirs: []string{f.project.path}}}
				a.call(append([]arg{literal(command)}, words...), arg{known: len(words)%2 == 0}, true) // the test fails if this panics
				if len(a.found) == 0 {
					t.Errorf("%s: nothing was found", command)
				}
			}
		})
	}
}

// harmlessAnyway are commands that are harmless even with unknown arguments.
var harmlessAnyway = strings.Fields(`echo true false : pwd tty whoami id groups logname users who w uptime uname arch nproc hostid getconf locale basename dirname realpath readlink which
	whereis seq yes factor expr numfmt tr sleep usleep tput clear reset stty cal ncal printenv envsubst gettext ngettext sync pathchk getopt df free vmstat
	iostat mpstat lscpu lsblk lsusb lsmod sw_vers lsb_release ps pgrep pidof pstree top htop lsof netstat last [ test exit return
	break continue shift logout times type help caller fg bg disown wait umask ulimit dirs compopt set suspend unalias dpkg-query uuidgen pwgen xkcdpass
	busybox toybox popd trap getopts alias`)

// SPEC P-02
func TestUnknownWordsAreZoneFive(t *testing.T) {
	t.Parallel()
	f, _ := workshop(t)
	for command := range f.commands.judges {
		if slices.Contains(harmlessAnyway, command) {
			continue
		}
		for _, words := range [][]arg{{{text: "$x"}}, {{text: "$x"}, literal("y")}} {
			a := &analysis{floor: f, state: state{dirs: []string{f.project.path}}}
			a.call(append([]arg{literal(command)}, words...), arg{}, false)
			if zone, _ := verdict(a.found); zone < ZoneMachine {
				t.Errorf("%s is zone %d, want 5: the value of $x is unknown", joined(append([]arg{literal(command)}, words...)), zone)
			}
		}
	}
}

// SPEC P-02, P-03
func TestManyWordsAreNotFollowed(t *testing.T) {
	t.Parallel()
	f, _ := workshop(t)
	many := strings.Repeat("a ", 3_000)
	for line, want := range map[string]Zone{
		"rm " + many:                                   ZoneMachine,
		"rm -rf " + many + "/":                         ZoneNever,
		"rm -rf " + many + "/*":                        ZoneNever,
		"chmod -R 777 " + many + "~":                   ZoneNever,
		"cat " + strings.Repeat("* ", 3_000):           ZoneMachine,
		"cp " + strings.Repeat("* ", 3_000) + "src":    ZoneMachine,
		"ln -s " + many + "src":                        ZoneMachine,
		"find " + many + "-exec echo " + many + "{} ;": ZoneMachine,
		"parallel " + many + "::: " + many:             ZoneMachine,
		"xargs -I{} cat " + many + "<<'EOF'\n" + strings.Repeat("b\n", 10_000) + "EOF": ZoneMachine,
		"tar cf x " + strings.Repeat("-C a ", 3_000) + many:                            ZoneMachine,
		"python x.py " + many: ZoneMachine,
		"patch <<'EOF'\n" + numbered("+++ b/%d\n", 5_000) + "EOF": ZoneMachine,
	} {
		if zone, _ := verdict(f.analyse(line)); zone != want {
			t.Errorf("%.30s… is zone %d, want %d", line, zone, want)
		}
	}
}

// numbered repeats a text n times, each time with another number.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestNoCommandIsInTwoTopics(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i, topic := range commandTopics() {
		one := table{}
		topic(one)
		if len(one) == 0 {
			t.Errorf("topic %d has no commands", i)
		}
		for name := range one {
			if other, ok := seen[name]; ok {
				t.Errorf("%s is in topics %d and %d: the later one counts", name, other, i)
			}
			seen[name] = i
		}
	}
	if len(seen) < 900 {
		t.Errorf("the table has %d commands", len(seen))
	}
}
