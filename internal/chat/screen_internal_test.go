//go:build unix

package chat

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tmux is a tmux server with one window.
type tmux struct {
	t    *testing.T
	name string
	dir  string
}

// newTmux starts the program in a window of a new tmux server, which ends with the test.
// Without tmux the test fails, because a test that did not run must not look like a
// success.
func newTmux(t *testing.T, environ ...string) *tmux {
	t.Helper()
	dir, err := os.MkdirTemp("", "chat") //nolint:usetesting // the path of a socket has a limit, and the test's may be longer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x := &tmux{t, "chat", dir}
	args := []string{"new-session", "-d", "-x", "76", "-y", "26", "--", "env", asProgram + "=1", "BELAY_CHAT_TEST_HISTORY=" + filepath.Join(dir, "history")}
	t.Cleanup(func() { _, _ = x.try("kill-server") }) // ignore errors: the server may have ended
	x.do(append(append(args, environ...), binary, ";", "set-option", "-g", "remain-on-exit", "on")...)
	return x
}

func (x *tmux) try(args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "tmux", append([]string{"-u", "-L", x.name, "-f", "/dev/null"}, args...)...)
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if name != "TMUX" && name != "TMUX_TMPDIR" && name != "NO_COLOR" && !strings.HasPrefix(name, "LC_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "TMUX_TMPDIR="+x.dir, "LC_ALL=C.UTF-8", "SHELL=/bin/sh")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (x *tmux) do(args ...string) string {
	x.t.Helper()
	out, err := x.try(args...)
	if err != nil {
		x.t.Fatalf("tmux %s: %v (tmux must be installed: on Debian, apt-get install tmux)\n%s", args[0], err, out)
	}
	return out
}

// keys presses keys by the names that tmux uses.
func (x *tmux) keys(keys ...string) { x.t.Helper(); x.do(append([]string{"send-keys"}, keys...)...) }

// line types text and presses enter.
func (x *tmux) line(text string) {
	x.t.Helper()
	x.do("send-keys", "-l", text)
	x.keys("Enter")
}

// screen returns the screen and the scrollback. It replaces text that differs from run to
// run.
func (x *tmux) screen() string {
	x.t.Helper()
	text := regexp.MustCompile(`\d+\.\ds`).ReplaceAllString(bare(x.do("capture-pane", "-p", "-S", "-")), "0.0s")
	return regexp.MustCompile(`[⠙⠹⠸⠼⠴⠦⠧⠇⠏]`).ReplaceAllString(text, "⠋")
}

// until waits until ok accepts the screen.
func (x *tmux) until(what string, ok func(screen string) bool) {
	x.t.Helper()
	timeout := time.NewTimer(deadline)
	defer timeout.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		screen := x.screen()
		if ok(screen) {
			return
		}
		select {
		case <-again.C:
		case <-timeout.C:
			x.t.Fatalf("after %s the screen does not show %s:\n%s", deadline, what, screen)
		}
	}
}

func (x *tmux) sees(text string) {
	x.t.Helper()
	x.until(fmt.Sprintf("%q", text), func(screen string) bool { return strings.Contains(screen, text) })
}

// settled waits until the screen has not changed for a while.
func (x *tmux) settled() string {
	x.t.Helper()
	var last string
	for same := 0; same < 30; {
		x.until("anything", func(screen string) bool {
			if same++; screen != last {
				last, same = screen, 0
			}
			return true
		})
	}
	return last
}

// is waits until the screen equals a file in testdata. It compares only the part that
// begins at the last line with the prefix from, because the scroll position depends on
// timing. With BELAYTEST_UPDATE=1 it rewrites the file.
func (x *tmux) is(name, from string) {
	x.t.Helper()
	path := filepath.Join("testdata", name+".txt")
	cut := func(screen string) string {
		at := max(strings.LastIndex("\n"+screen, "\n"+from), 0)
		return screen[at:] + "\n"
	}
	if os.Getenv("BELAYTEST_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(cut(x.settled())), 0o644); err != nil {
			x.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		x.t.Fatalf("%v: make it with BELAYTEST_UPDATE=1", err)
	}
	x.until("what "+path+" does:\n"+string(want), func(screen string) bool { return cut(screen) == string(want) })
}

// This test runs the whole chat in a real terminal, and compares every screen.
func TestScreen(t *testing.T) {
	t.Parallel()
	x := newTmux(t)
	x.sees("/help lists commands")
	x.line("what is here?")
	x.until("the answer", func(screen string) bool {
		return strings.Contains(screen, "rm -rf build") && strings.Contains(screen, "· scripted/story ·") && !strings.Contains(screen, "aborts")
	})
	x.is("answer", "session main")
	x.line("clean up")
	x.sees("y once")
	x.is("question", "› clean up")
	x.keys("y")
	x.sees("The build is gone.")
	x.is("tools", "› clean up")
	x.do("send-keys", "-l", "/re")
	x.sees("▸ /resume")
	x.is("completion", "The notes say")
	x.keys("C-u")
	x.line("go on")
	x.sees("This will take")
	x.line("and then the tests")
	x.sees("at the next step")
	x.is("queue", "› go on")
	x.keys("C-c")
	x.sees("∎ aborted")
	x.is("aborted", "› go on")
	x.do("resize-window", "-x", "50", "-y", "20")
	x.sees("› and then the tests")
	x.keys("C-c") // clears the input
	x.until("an empty input", func(screen string) bool { return strings.Contains(screen, "› type a message") })
	x.keys("Up", "Up")
	x.until("input history", func(screen string) bool { return strings.Count(screen, "› go on") == 2 })
	x.keys("C-c", "C-c")
	x.sees("press ctrl+c again to quit")
	x.is("narrow", "› go on")
	if colours := x.do("capture-pane", "-p", "-e", "-S", "-"); !strings.Contains(colours, "\x1b[32m") {
		t.Errorf("there are no colours: %q", colours)
	}
	x.keys("C-c")
	x.sees("program: left")
	x.until("the end of the program", func(string) bool {
		return strings.TrimSpace(x.do("display-message", "-p", "#{pane_dead}")) == "1"
	})
	history, err := os.ReadFile(filepath.Join(x.dir, "history"))
	if want := "\"what is here?\"\n\"clean up\"\n\"go on\"\n\"and then the tests\"\n"; err != nil || string(history) != want {
		t.Errorf("the history holds %q, error %v; want %q", history, err, want)
	}
	// Every text is in the scrollback exactly once.
	all := x.do("capture-pane", "-p", "-S", "-")
	for _, text := range []string{"There are notes", "› clean up", "✓ shell rm -rf build", "buy milk 🥛", "This will take"} {
		if n := strings.Count(all, text); n != 1 {
			t.Errorf("%q is in the scrollback %d times:\n%s", text, n, all)
		}
	}
}

// The output is clean on a terminal without colours, and on one without any features.
func TestScreenWithoutColours(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		environ string
		ready   string
	}{
		{"NO_COLOR", "NO_COLOR=1", "type a message"},
		{"a dumb terminal", "TERM=dumb", "\n>"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			x := newTmux(t, test.environ)
			x.sees(test.ready)
			x.line("what is here?")
			x.sees("rm -rf build")
			if all := x.do("capture-pane", "-p", "-e", "-S", "-"); regexp.MustCompile(`\x1b\[[0-9;]*[34]8?[0-7;]`).MatchString(strings.ReplaceAll(all, "\x1b[39m", "")) {
				t.Errorf("there are colours: %q", all)
			}
			x.line("/quit")
			x.sees("program: left")
		})
	}
}

// The chat needs a terminal for input too, not only for output.
func TestScreenWithoutInput(t *testing.T) {
	t.Parallel()
	x := newTmux(t, "sh", "-c", `exec "$0" </dev/null`)
	x.sees("program: chat needs a terminal: without one, use `belay run")
}
