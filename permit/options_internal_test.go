package permit

import (
	"fmt"
	"strings"
	"testing"
)

// words splits a text into words. A word that begins with $ is unknown, and a word with *
// is a pattern.
func words(text string) []arg {
	var all []arg
	for w := range strings.FieldsSeq(text) {
		all = append(all, arg{text: strings.Trim(w, "'"), known: !strings.HasPrefix(w, "$"), pattern: strings.Contains(w, "*") && !strings.HasPrefix(w, "'")})
	}
	return all
}

// told returns parsed options as text: the options with their values, then the other
// arguments.
func told(o *options) string {
	var b strings.Builder
	for _, g := range o.given {
		fmt.Fprintf(&b, "%s ", g.name)
		if g.value != (arg{}) {
			fmt.Fprintf(&b, "(%s) ", g.value.text)
		}
	}
	b.WriteString("|")
	for _, a := range o.rest {
		fmt.Fprintf(&b, " %s", a.text)
	}
	return b.String()
}

// SPEC P-02
func TestOptionsAreTakenApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, list, words, want string }{
		{"letters may be joined", "r f v", "-rf x -v", "r f v | x"},
		{"a value may be joined to its letter", "o= r", "-ox -o y -rov z", "o (x) o (y) r o (v) | z"},
		{"a value may look like an option", "o= r", "-o -r x", "o (-r) | x"},
		{"two dashes can be a value", "o=", "-o -- x", "o (--) | x"},
		{"an optional value must be joined", "i=? x", "-i x -ibak -xi", "i i (bak) x i | x"}, //nolint:dupword // what is told
		{"long options have values after = or after a blank", "output= all", "--output=x --output y --all z", "output (x) output (y) all | z"},
		{"an optional value of a long option must be joined", "color=?", "--color x --color=y", "color color (y) | x"}, //nolint:dupword // what is told
		{"a value may be empty", "o= output=", "--output= -o", "output () o ((nothing)) |"},
		{"long options may be shortened", "output= all", "--outp=x --al", "output (x) all |"},
		{"the whole name wins over longer ones", "in= inter=", "--in=x", "in (x) |"},
		{"an ambiguous abbreviation counts as each option, and the next word stays a word", "include= inplace=", "--in x", "in include (x) inplace (x) | x"},
		{"two dashes end the options", "r", "-r -- -r --x", "r | -r --x"},
		{"a dash is a word", "r", "- -r", "r | -"},
		{"options may be after words", "r", "x -r y", "r | x y"},
		{"with + the first word ends the options", "+r", "-r x -r", "r | x -r"},
		{"with + two dashes end the options too", "+r", "-r -- -r", "r | -r"},
		{"an unknown word is a word", "r", "$x -r", "r | $x"},
		{"with + an unknown word ends the options", "+r", "$x -r", "| $x -r"},
		{"an option can end the options", "+c=. v", "-v -c x -v y", "v c (x) | -v y"},
		{"a joined option can end the options", "+c=. I", "-Icx -v y", "I c (x) | -v y"},
		{"with * every unknown option is accepted, without a value", "*o=", "-zo x --strange y --odd=z", "z o (x) strange odd (z) | y"},
		{"with * an abbreviation may be another option, and the next word stays a word", "*output=", "--out x", "out output (x) | x"},
		{"with - one dash makes a long option", "-o= race", "-o x -race --o=y -o=z", "o (x) race o (y) o (z) |"},
		{"with - letters are not joined", "*-o=", "-ox", "ox |"},
		{"with - names are not shortened", "*-output=", "-out x", "out | x"},
		{"lists may be broken over lines", "a\n\tb=\n c", "-a -b x -c", "a b (x) c |"},
		{"a pattern is a word", "r", "*.go -r", "r | *.go"},
		{"nothing at all", "r", "", "|"},
		{"an empty list", "", "x", "| x"},
	} {
		if got := told(parseOptions(words(c.words), c.list)); got != c.want {
			t.Errorf("%s: %q with %q is %q, want %q", c.rule, c.words, c.list, got, c.want)
		}
	}
}

// SPEC P-02
func TestStrangeOptionsAreTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, list, words, want string }{
		{"a letter", "r", "-rz x", "-z"},
		{"a long option", "recursive", "--nothing=x", "--nothing=x"},
		{"the first of several", "r", "-x --y", "-x"},
		{"an ambiguous abbreviation", "include inplace", "--in", "--in"},
		{"none if every option is accepted", "*r", "-x --y", ""},
		{"none after two dashes", "r", "-- -x", ""},
		{"none of another command", "+r", "x -z", ""},
		{"not a value", "o=", "-o -z", ""},
		{"not a number that is a value", "n=", "-n -5", ""},
	} {
		if got := parseOptions(words(c.words), c.list).strange; got != c.want {
			t.Errorf("%s: %q with %q is %q, want %q", c.rule, c.words, c.list, got, c.want)
		}
	}
}

// SPEC P-02
func TestPatternsThatCouldBecomeOptionsAreTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, words, want string }{
		{"a star may match a name that begins with a dash", "x *.go", "*.go"},
		{"a pattern that begins with a letter or a dot cannot", "x a*.go ./*", ""},
		{"a pattern that begins with a dash can", "-*", "-*"},
		{"a pattern in a value cannot", "--exclude=*.o", ""},
		{"not after two dashes", "-- *", ""},
		{"not a value", "-o *", ""},
		{"not a quoted star", "'*'", ""},
	} {
		if got := parseOptions(words(c.words), "*o=").wild; got != c.want {
			t.Errorf("%s: %q is %q, want %q", c.rule, c.words, got, c.want)
		}
	}
}

func TestOptionsAreFoundAgain(t *testing.T) {
	t.Parallel()
	o := parseOptions(words("-a 1 --bee=2 -a 3 x y"), "a= bee= c")
	if !o.has("z", "bee") || o.has("c") || o.has() {
		t.Error("has does not say what was given")
	}
	if got := o.values("a", "bee"); len(got) != 3 || got[1].text != "2" {
		t.Errorf("values are %v, want 1, 2, 3 in the order of the line", got)
	}
	if got, ok := o.value("a"); !ok || got.text != "3" {
		t.Errorf("value is %v, want the last one", got)
	}
	if got, ok := o.value("c"); ok || got != (arg{}) {
		t.Errorf("value is %v, want none", got)
	}
	if len(o.from(1)) != 1 || len(o.from(2)) != 0 || len(o.from(9)) != 0 {
		t.Error("from does not stop at the end")
	}
}

// SPEC P-02
func TestVariablesThatChangeCommandsAreHazards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set string
		bad bool
	}{
		{"PATH=/x", true},
		{"IFS=x", true},
		{"LD_PRELOAD=x", true},
		{"LD_ANYTHING=x", true},
		{"DYLD_INSERT_LIBRARIES=x", true},
		{"BASH_ENV=x", true},
		{"ENV=x", true},
		{"PS4=x", true},
		{"PROMPT_COMMAND=x", true},
		{"BASH_FUNC_ls%%=() { id; }", true},
		{"HOME=/", true},
		{"BELAY_DISABLE_HOOKS=1", true},
		{"BELAY_=", true},
		{"PYTHONPATH=x", true},
		{"PYTHONSTARTUP=x", true},
		{"PERL5OPT=x", true},
		{"RUBYOPT=x", true},
		{"LUA_INIT_5_4=x", true},
		{"NODE_PATH=x", true},
		{"NODE_OPTIONS=--require x", true},
		{"NODE_OPTIONS=--max-old-space-size=4096", false},
		{"NODE_OPTIONS=--max-old-space-size 4096", false},
		{"NODE_OPTIONS=$x", true},
		{"JAVA_TOOL_OPTIONS=-javaagent:x", true},
		{"JAVA_TOOL_OPTIONS=-Xmx1g", false},
		{"_JAVA_OPTIONS=x", true},
		{"GOFLAGS=-mod=mod", false},
		{"GOFLAGS=-toolexec=x", true},
		{"GOFLAGS=$x", true},
		{"GOOS=linux", false},
		{"CGO_ENABLED=0", false},
		{"GOTOOLCHAIN=local", false},
		{"GOROOT=x", true},
		{"RUSTFLAGS=-C target-cpu=native", false},
		{"RUSTFLAGS=-C linker=x", true},
		{"RUSTC_WRAPPER=x", true},
		{"CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=x", true},
		{"CARGO_TARGET_DIR=x", false},
		{"CC=gcc", false},
		{"CC=ccache gcc", false},
		{"CC=gcc -m32", false},
		{"CC=sh -c id", true},
		{"CC=gcc;id", true},
		{"CC=$x", true},
		{"CFLAGS=-O2 -g", false},
		{"CFLAGS=-fplugin=x", true},
		{"MAKEFLAGS=-j4", true},
		{"PAGER=cat", false},
		{"PAGER=less", false},
		{"PAGER=sh x", true},
		{"GIT_PAGER=", false},
		{"MANPAGER=$x", true},
		{"EDITOR=true", false},
		{"EDITOR=vim", true},
		{"EDITOR=sh x", true},
		{"GIT_SEQUENCE_EDITOR=:", false},
		{"GIT_SEQUENCE_EDITOR=sed -i x", true},
		{"VISUAL=x", true},
		{"LESSOPEN=|x", true},
		{"BROWSER=x", true},
		{"GIT_SSH=x", true},
		{"GIT_SSH_COMMAND=x", true},
		{"GIT_DIR=x", true},
		{"GIT_CONFIG_COUNT=1", true},
		{"GIT_CONFIG_GLOBAL=/dev/null", false},
		{"GIT_CONFIG_GLOBAL=x", true},
		{"GIT_EXTERNAL_DIFF=x", true},
		{"GIT_AUTHOR_NAME=x", false},
		{"GIT_COMMIT=abc", false},
		{"GIT_TERMINAL_PROMPT=0", false},
		{"GIT_TRACE=1", false},
		{"GIT_TRACE=/x", true},
		{"http_proxy=x", true},
		{"HTTPS_PROXY=x", true},
		{"https_proxy=", false},
		{"no_proxy=x", false},
		{"DOCKER_HOST=x", true},
		{"KUBECONFIG=x", true},
		{"npm_config_registry=x", true},
		{"FOO=bar", false},
		{"LANG=C", false},
		{"LC_ALL=C", false},
		{"TZ=UTC", false},
		{"DEBUG=*", false},
		{"path=x", false},
		{"MYPATH=x", false},
		{"x=$y", false},
		{"CI=1", false},
		{"PORT=80", false},
	} {
		name, text, _ := strings.Cut(c.set, "=")
		h := hazardOf(name, arg{text: text, known: !strings.HasPrefix(text, "$")})
		if bad := h.zone > ZoneSafe; bad != c.bad || bad && h.why == "" {
			t.Errorf("%s: hazardous is %t (%s), want %t", c.set, bad, h.why, c.bad)
		}
	}
}
