package permit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// looker returns the floor of a small project, and the path of the project.
func looker(t testing.TB) (*Floor, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(dir, "project")
	for _, d := range []string{"src/deep", "other"} {
		if err := os.MkdirAll(filepath.Join(project, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f, err := New(project, &Options{Home: filepath.Join(dir, "home"), Temp: filepath.Join(dir, "temp"), Sandboxed: true})
	if err != nil {
		t.Fatal(err)
	}
	return f, project
}

// commandsOf returns the commands that a text runs, after variables are resolved. A ?
// marks unknown parts.
func commandsOf(f *Floor, text string) []string {
	var found []string
	for _, one := range f.analyse(text) {
		switch {
		case one.Kind == KindUnknown:
			found = append(found, "?")
		case one.Kind == KindCommand && one.words != nil:
			found = append(found, strings.Join(one.words, "|"))
		case one.Kind == KindCommand && one.Protection == "":
			found = append(found, one.Subject+"?")
		}
	}
	return found
}

// SPEC P-02
func TestCommandsAreResolved(t *testing.T) {
	t.Parallel()
	f, _ := looker(t)
	for _, c := range []struct {
		rule, text string
		want       []string
	}{
		{"words", `echo a  b`, []string{"echo|a|b"}},
		{"quotes", `ec'h'"o" a\ b 'c d' "e $ f" ''`, []string{"echo|a b|c d|e $ f|"}},
		{"escapes of C", `$'\x65cho' $'a\tb'`, []string{"echo|a\tb"}},
		{"comments are not commands", "echo a # ; rm x", []string{"echo|a"}},
		{"lists", "echo a; echo b && echo c || echo d &", []string{"echo|a", "echo|b", "echo|c", "echo|d"}},
		{"newlines", "echo a\necho b \\\n c", []string{"echo|a", "echo|b|c"}},
		{"pipes", "echo a | wc | sort", []string{"echo|a", "wc", "sort"}},
		{"groups", "{ echo a; }; (echo b)", []string{"echo|a", "echo|b"}},
		{"a condition, both ways", "if echo a; then echo b; elif echo c; then echo d; else echo e; fi", []string{"echo|a", "echo|b", "echo|c", "echo|d", "echo|e"}},
		{"a loop while", "while echo a; do echo b; done", []string{"echo|a", "echo|b"}},
		{"a loop over words", "for x in a b; do echo $x; done", []string{"echo|a", "echo|b"}},
		{"a loop over what is not known", "for x in $Y; do echo $x; done", []string{"echo $x?"}},
		{"cases", "case $X in a) echo a;; *) echo b;; esac", []string{"echo|a", "echo|b"}},
		{"a variable", "X=a; echo $X ${X}b", []string{"echo|a|ab"}},
		{"a variable with blanks is split", "X='a b'; echo $X \"$X\"", []string{"echo|a|b|a b"}},
		{"a variable that is not set here", "echo $X", []string{"echo $X?"}},
		{"a default for one that is not known", "echo ${X:-a}", []string{"echo ${X:-a}?"}},
		{"parts of a variable", "X=abc; echo ${X%c} ${X#a} ${X/b/x} ${X:1:1} ${#X}", []string{"echo|ab|bc|axc|b|3"}},
		{"a variable in one branch", "X=a; if true; then X=b; fi; echo $X", []string{"true", "echo $X?"}},
		{"a variable that a loop sets", "X=a; while true; do echo $X; X=b; done; echo $X", []string{"true", "echo $X?", "echo $X?"}},
		{"a variable of a subshell", "X=a; (X=b); echo $X", []string{"echo|a"}},
		{"a variable of one command", "X=a Y=b echo $X", []string{"echo $X?"}},
		{"a variable that read sets", "X=a; read X; echo $X", []string{"read|X", "echo $X?"}},
		{"numbers", "echo $((1+2))", []string{"echo|3"}},
		{"a variable that arithmetic sets", "X=1; (( X = 2 )); echo $X", []string{"echo $X?"}},
		{"export", "export X=a; echo $X", []string{"echo|a"}},
		{"appending", "X=a; X+=b; echo $X", []string{"echo|ab"}},
		{"home", "echo ~ ~/a '~'", []string{"echo|HOME|HOME/a|~"}},
		{"braces", "echo {a,b}c {1..3}", []string{"echo|ac|bc|1|2|3"}},
		{"too many braces", "echo {1..1000000000}", []string{"echo {1..1000000000}?"}},
		{"nested braces beyond bounds", "echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", []string{"echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}?"}},
		{"a substitution is run", "echo $(echo a) `echo b`", []string{"echo|a", "echo|b", "echo|a|b"}},
		{"a substitution that is not known", "echo $(date)", []string{"date", "echo $(date)?"}},
		{"a substitution inside quotes", `echo "a $(sort b)"`, []string{"sort|b", `echo "a $(sort b)"?`}},
		{"a substitution inside a substitution, once", `echo $(echo $(sort a))`, []string{"sort|a", "echo $(sort a)?", "echo $(echo $(sort a))?"}},
		{"a substitution in an assignment", "X=$(sort a)", []string{"sort|a"}},
		{"a substitution in arithmetic", "(( X = $(sort a) ))", []string{"?", "sort|a"}},
		{"a substitution in a test", "[[ -n $(sort a) ]]", []string{"sort|a"}},
		{"a substitution in a here-document", "cat <<E\n$(sort a)\nE", []string{"sort|a", "cat"}},
		{"none in a quoted here-document", "cat <<'E'\n$(sort a)\nE", []string{"cat"}},
		{"a substitution in a redirection", "echo a > $(sort a)", []string{"sort|a", "echo|a"}},
		{"a process substitution", "diff <(sort a) <(sort b)", []string{"sort|a", "sort|b", "diff <(sort a) <(sort b)?"}},
		{"a function is analysed when it is called", "f() { echo a; }; f; f", []string{"echo|a", "echo|a"}},
		{"a function that is not called", "f() { sort a; }; echo b", []string{"echo|b"}},
		{"a function that takes the name of a command", "sort() { echo a; }; sort x", []string{"echo|a"}},
		{"the words of a function", "f() { echo $1 \"$2\" $# \"$@\"; }; f a 'b c'; echo $1", []string{"echo|a|b c|2|a|b c", "echo $1?"}},
		{"the words of a function that shifts", "f() { shift; echo $1; }; f a b", []string{"shift", "echo $1?"}},
		{"a loop over files", "for f in src/*.go; do wc \"$f\"; echo $f.bak; done; echo $f", []string{"wc|src/*.go", "echo $f.bak?", "echo $f?"}},
		{"a name that is declared in quotes", "x=a; declare \"x=b\"; echo $x", []string{"echo $x?"}},
		{"a value that is expanded again", "x='$(sort a)'; echo ${x@P}", []string{"?", "echo ${x@P}?"}},
		{"a variable that may be set", "x=a; true && x=b; echo $x; x=c && true; echo $x", []string{"true", "echo $x?", "true", "echo|c"}},
		{"a value that arithmetic evaluates", "x='a[$(sort a)]'; echo $((x))", []string{"?", "echo $((x))?"}},
		{"an indirect variable", "x=y; y=a; echo ${!x}", []string{"echo ${!x}?"}},
		{"a function that calls itself", "f() { echo a; f; }; f", []string{"echo|a", "?"}},
		{"a command that is a variable", "X=sort; $X a", []string{"sort|a"}},
		{"a command that is not known", "$X a", []string{"?"}},
		{"a command that is a pattern", "/bin/s?rt a", []string{"?"}},
		{"a shell", "sh -c 'echo a; echo b'", []string{"sh|-c|echo a; echo b", "echo|a", "echo|b"}},
		{"a shell in a shell", `bash -c "sh -c 'echo a'"`, []string{"bash|-c|sh -c 'echo a'", "sh|-c|echo a", "echo|a"}},
		{"a shell that reads a here-document", "sh <<E\necho a\nE", []string{"sh", "echo|a"}},
		{"a shell that reads a here-string", "sh <<< 'echo a'", []string{"sh", "echo|a"}},
		{"a shell that reads an echo", "echo 'sort a' | sh", []string{"echo|sort a", "sh", "sort|a"}},
		{"a shell that reads something else", "cat a | sh", []string{"cat|a", "sh"}},
		{"eval", "X='echo a'; eval $X", []string{"eval|echo|a", "echo|a"}},
		{"eval of what is not known", "eval $X; echo a", []string{"eval $X?", "?", "echo|a"}},
		{"what cannot be parsed", "echo 'a", []string{"?"}},
		{"a coprocess", "coproc sort a", []string{"sort|a"}},
		{"time", "time sort a", []string{"sort|a"}},
		{"negation", "! sort a", []string{"sort|a"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			for i := range c.want {
				c.want[i] = strings.ReplaceAll(c.want[i], "HOME", f.home.path)
			}
			if got := commandsOf(f, c.text); !slices.Equal(got, c.want) {
				t.Errorf("%s\ngot  %q\nwant %q", c.text, got, c.want)
			}
		})
	}
}

// SPEC P-02, P-06
func TestPathsAreSeenFromWhereTheLineIs(t *testing.T) {
	t.Parallel()
	f, project := looker(t)
	if err := os.Symlink("..", filepath.Join(project, "src", "up")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ rule, text, want string }{
		{"where it starts", "cat a", "a"},
		{"after a cd", "cd src && cat a", "src src/a"},
		{"after a cd that certainly works", "cd src; cat a", "src src/a"},
		{"after a cd that may fail", "cd new; cat ../a", "new OUT/a a"},
		{"after a cd that must have worked", "cd new && cat ../a", "new a"},
		{"after a cd in a subshell", "(cd src); cat a", "src a"},
		{"after a cd in a pipe", "cd src | cat a", "src a"},
		{"after two cd commands", "cd src && cd deep && cat ../a", "src src/deep src/a"},
		{"after one of two cd commands", "if true; then cd src; else cd other; fi; cat ../a", "src other a"},
		{"after a cd to an unknown directory", "cd $X; cat a", "?"},
		{"after cd -", "cd src; cd -; cat a", "src ?"},
		{"after a cd and a cd back", "cd src; cd ..; cat a", "src . a"},
		{"a link is followed before ..", "cat src/up/../a", "OUT/a"},
		{"an absolute path", "cat " + project + "/a", "a"},
		{"a pattern", "cat src/*.go", "src/*"},
		{"a pattern further up", "cat ../*.go", "OUT OUT/*"},
		{"a redirection", "sort < a > src/b", "a src/b"},
		{"a here-document is no path", "cat <<a\nx\na", ""},
		{"descriptors are no paths", "echo a >&2 2>&1 3<&-", ""},
		{"PWD", "cat $PWD/a", "a"},
		{"$(pwd)", "cat $(pwd)/../a \"$(pwd)\"", "? ."},
		{"a loop that goes up", "while true; do cd ..; done; cat a", "?"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var found []string
			for _, one := range f.analyse(c.text) {
				switch one.Kind {
				case KindRead, KindWrite:
					found = append(found, strings.ReplaceAll(one.Subject, filepath.ToSlash(filepath.Dir(project)), "OUT"))
				case KindUnknown:
					found = append(found, "?")
				case KindTool, KindCommand, KindURL:
				}
			}
			got := strings.Join(slices.Compact(found), " ")
			if strings.HasPrefix(c.want, "?") || strings.HasSuffix(c.want, " ?") {
				if !strings.Contains(got, "?") && !strings.Contains(got, "$") {
					t.Errorf("%s: got %q, and not that it is unknown", c.text, got)
				}
				return
			}
			if got != c.want {
				t.Errorf("%s: got %q, want %q", c.text, got, c.want)
			}
		})
	}
}

// SPEC P-02
func TestWhatIsTooMuchIsNotUnderstood(t *testing.T) {
	t.Parallel()
	f, _ := looker(t)
	for rule, text := range map[string]string{
		"too long":                  "echo " + strings.Repeat("a", longestScript),
		"too many brackets":         strings.Repeat("(", mostBrackets+1),
		"too many commands":         strings.Repeat("ls;", mostFindings+2),
		"shells too deep":           nestedShells(deepest + 2),
		"substitutions too deep":    strings.Repeat("$(", deepest+2) + "ls" + strings.Repeat(")", deepest+2),
		"functions too deep":        chain(deepest + 2),
		"a zero byte":               "echo a\x00b",
		"functions that double":     repeating(24, 2, "ls"),
		"functions that do nothing": repeating(11, 10, "X=1"),
		"loops in loops":            strings.Repeat("for x in 1 2 3 4 5 6 7 8 9 10; do ", 8) + "X=1" + strings.Repeat("; done", 8),
	} {
		found := f.analyse(text)
		if !slices.ContainsFunc(found, func(one Finding) bool { return one.Zone >= ZoneMachine }) || len(found) > mostFindings+2 {
			t.Errorf("%s: %d findings, and none of zone 5", rule, len(found))
		}
	}
}

func nestedShells(n int) string {
	text := "ls"
	for range n {
		text = "sh -c '" + strings.ReplaceAll(text, "'", `'\''`) + "'"
		if len(text) > longestScript/4 {
			break
		}
	}
	return text
}

// chain returns n functions, each of which calls the next one.
func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "f%d() { f%d; }; ", i, i+1)
	}
	return b.String() + fmt.Sprintf("f%d() { ls; }; f0", n)
}

// repeating returns n functions, each of which calls the next one several times.
func repeating(n, times int, last string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "f%d() { %s }; ", i, strings.Repeat(fmt.Sprintf("f%d; ", i+1), times))
	}
	return b.String() + fmt.Sprintf("f%d() { %s; }; f0", n, last)
}
