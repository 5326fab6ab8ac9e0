package main

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belay-run/belay/sandbox"
)

// The scripts in testdata/script run belay as a user would.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "lines": lines, "remember": remember, "serve": serve(t),
		},
		Condition: condition(sandbox.Find(t.Context(), nil)),
		Setup: func(env *testscript.Env) error { // each script has its own user
			env.Setenv("HOME", t.TempDir())
			return nil
		},
	})
}

func TestMain(m *testing.M) {
	sandbox.Main() // the sandbox starts this binary to run confined commands
	testscript.Main(m, map[string]func(){"belay": main})
}

// exits runs a command that must end with this exit code, such as "exits 2 belay --nonsense".
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s ended with exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// lines counts the lines of the last output: lines 1 stderr.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines COUNT stdout|stderr")
	}
	if got := strconv.Itoa(strings.Count(ts.ReadFile(args[1]), "\n")); got != args[0] {
		ts.Fatalf("%s has %s lines, want %s", args[1], got, args[0])
	}
}

// remember stores the first word of the last standard output in a variable, or the first
// match of an expression. Usage: remember NAME [EXPRESSION].
func remember(ts *testscript.TestScript, neg bool, args []string) {
	expression := `(\S+)`
	if len(args) == 2 {
		expression = args[1]
	}
	caught := regexp.MustCompile(expression).FindStringSubmatch(ts.ReadFile("stdout"))
	if neg || len(args) == 0 || len(args) > 2 || len(caught) != 2 {
		ts.Fatalf("usage: remember NAME [EXPRESSION], behind a command that printed what it catches")
	}
	ts.Setenv(args[0], caught[1])
}

// condition lets scripts test whether the machine has a sandbox.
func condition(found *sandbox.Sandbox) func(string) (bool, error) {
	return func(word string) (bool, error) {
		if word != "sandbox" {
			return false, fmt.Errorf("there is no condition %q", word)
		}
		return found.Holds(sandbox.Missing), nil
	}
}
