package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/filetest"
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
			"exits": exits, "lines": lines, "remember": remember, "serve": serve(t), "serving": serving, "alike": alike,
		},
		Condition: condition(sandbox.Find(t.Context(), nil)),
		Setup: func(env *testscript.Env) error { // each script has its own user
			env.Setenv("HOME", t.TempDir())
			filetest.AwaitForks() // scripts execute their files
			return nil
		},
	})
}

func TestMain(m *testing.M) {
	sandbox.Main() // the sandbox starts this binary to run confined commands
	if err := checkMachine(config.SystemDir()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testscript.Main(m, map[string]func(){"belay": main})
}

// checkMachine returns an error if this machine has settings for all users. They apply to the program that the tests start, and
// can name a store, which the tests would change and remove.
func checkMachine(dir string) error {
	file := filepath.Join(dir, config.Name)
	if _, err := os.Lstat(file); err == nil && dir != "" {
		return fmt.Errorf("the tests would use the store and the hooks that %s names: run them where this file does not exist", file)
	}
	return nil
}

// The tests do not start where the settings of the machine can name a store.
func TestMachineSettingsAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, none := range []string{"", dir, filepath.Join(dir, "missing")} {
		if err := checkMachine(none); err != nil {
			t.Errorf("without settings: %v", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, config.Name), []byte("store: /srv/work.db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkMachine(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("with settings: %v", err)
	}
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

// serving starts "belay serve" on a free port, until the script ends, and stores its address in
// a variable. Usage: serving NAME [ARGUMENT...].
func serving(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serving NAME [ARGUMENT...]")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "belay", append([]string{"serve", "--listen", "127.0.0.1:0"}, args[1:]...)...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "BELAY_MODE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	said, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	drained := make(chan struct{})
	ts.Defer(func() {
		cancel()
		<-drained
		_ = cmd.Wait() // ignore errors: it was killed
	})
	lines := bufio.NewReader(said)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			close(drained)
			ts.Fatalf("belay serve does not say its address: %s, %v", line, err)
		}
		if url := strings.TrimSpace(line); strings.HasPrefix(url, "http://") {
			ts.Setenv(args[0], url)
			break
		}
	}
	go func() { // ends with the process
		defer close(drained)
		_, _ = io.Copy(io.Discard, lines)
	}()
}

// ages matches how long ago something was, with the spaces around it.
var ages = regexp.MustCompile(` *(just now|\d+m ago) *`)

// alike runs belay with the server in BELAY_SERVER, and with the store of the directory. The
// output and the exit code must be the same. Usage: alike [ARGUMENT...].
func alike(ts *testscript.TestScript, neg bool, args []string) {
	server := ts.Getenv("BELAY_SERVER")
	if neg || server == "" {
		ts.Fatalf("usage: alike [ARGUMENT...], with a server in BELAY_SERVER")
	}
	var outputs [2]string
	for i, server := range []string{server, ""} {
		ts.Setenv("BELAY_SERVER", server)
		err := ts.Exec("belay", args...)
		outputs[i] = fmt.Sprintf("%s%s%v", ages.ReplaceAllString(ts.ReadFile("stdout"), " ago "), ages.ReplaceAllString(ts.ReadFile("stderr"), " ago "), err)
	}
	ts.Setenv("BELAY_SERVER", server)
	if outputs[0] != outputs[1] {
		ts.Fatalf("belay %s: with the server:\n%s\nwithout:\n%s", strings.Join(args, " "), outputs[0], outputs[1])
	}
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
