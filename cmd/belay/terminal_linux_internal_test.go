//go:build linux

package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudo-terminal. A program that reads from screen gets the text
// that the test writes to keyboard.
func openTerminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	raw := int(keyboard.Fd())
	if err := unix.IoctlSetPointerInt(raw, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(raw, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(raw, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 90}); err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return keyboard, screen
}

// answering returns the text to type when seen is on the screen, or "" for nothing.
type answering func(seen string) string

// asksFor matches the end of a prompt.
var asksFor = regexp.MustCompile(`(a reason to deny:|or another pattern:|for no answer\):)$`)

// atTerminal runs belay at a terminal. It types the text in the argument before, and then
// the answers. It returns everything on the screen, and the exit code.
func atTerminal(t *testing.T, dir, before string, answer answering, environ []string, args ...string) (string, int) {
	t.Helper()
	keyboard, screen := openTerminal(t)
	if _, err := keyboard.WriteString(before); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, dir, args...)
	cmd.Env = append(cmd.Env, environ...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if err := screen.Close(); err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	from := bufio.NewReader(keyboard)
	for {
		b, err := from.ReadByte()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EIO) { // reading ends with one of these errors when the terminal is closed
				t.Error(err)
			}
			break
		}
		seen.WriteByte(b)
		if answer != nil && b == ':' && asksFor.MatchString(seen.String()) {
			if _, err := keyboard.WriteString(answer(seen.String())); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	return strings.ReplaceAll(seen.String(), "\r\n", "\n"), cmd.ProcessState.ExitCode()
}

const asks = `
steps:
  - text: I need two things.
    calls:
      - {tool: shell, input: {command: "echo hello > made.txt"}}
      - {tool: write, input: {path: other.txt, content: "one\ntwo\n"}}
  - text: Done.
`

func TestApprovalsAreAskedAtATerminal(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"asks.yaml": asks})
	answer := func(seen string) string { // the questions come in any order
		if strings.LastIndex(seen, "shell needs") > strings.LastIndex(seen, "write needs") {
			return "y\n"
		}
		return "rather not\n"
	}
	seen, code := atTerminal(t, dir, "", answer, []string{"NO_COLOR=1"}, "run", "--model", "scripted/asks.yaml", "--mode", "strict", "--as", "first", "a task")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"? shell needs your approval: writes made.txt: zone ", ", and strict mode asks above zone 0; to avoid this question, add a rule that allows this call\n  asked by zone 1 · zone ", "\n    $ echo hello > made.txt\n",
		"  allow? [y] once, [s] for this session, ", "[n] no, or type a reason to deny:",
		"    other.txt (created)\n    + one\n    + two\n", "allowed by ada (belay)", "refused by ada (belay): rather not", "Done.\n",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("the screen has no %q:\n%s", want, seen)
		}
	}
	if strings.Contains(seen, "\x1b[3") || strings.Contains(seen, "\x1b[1m") {
		t.Errorf("NO_COLOR is set, and there are colours:\n%q", seen)
	}
	if text, err := os.ReadFile(dir + "/made.txt"); err != nil || string(text) != "hello\n" {
		t.Errorf("what was allowed did not run: %q, %v", text, err)
	}
	if _, err := os.Stat(dir + "/other.txt"); err == nil {
		t.Error("what was refused ran")
	}
}

const overtaken = `
steps:
  - calls: [{tool: read, input: {path: notes.md}}]
  - calls: [{tool: write, input: {path: notes.md, content: "one\n"}}]
  - calls: [{tool: shell, input: {command: "echo elsewhere > notes.md"}}]
  - calls: [{tool: write, input: {path: notes.md, content: "two\n"}}]
  - text: Done.
`

// A question about a file says that the file is not as the agent has seen it last, because then
// the call would be refused.
//
// SPEC V-02
func TestAQuestionSaysThatTheFileHasChanged(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"overtaken.yaml": overtaken, "notes.md": "zero\n"})
	questions := 0
	answer := func(string) string { questions++; return "y\n" }
	seen, code := atTerminal(t, dir, "", answer, []string{"NO_COLOR=1"}, "run", "--model", "scripted/overtaken.yaml", "--mode", "strict", "a task")
	before, after, asked := strings.Cut(seen, "$ echo elsewhere > notes.md")
	const says = "the file has changed since the agent read it, so the call would be refused"
	if code != 0 || questions != 3 || !asked || strings.Contains(before, says) || strings.Count(after, says) != 1 {
		t.Errorf("exit code %d, %d questions:\n%s", code, questions, seen)
	}
	if text, err := os.ReadFile(dir + "/notes.md"); err != nil || string(text) != "elsewhere\n" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

const pushes = `
steps:
  - calls: [{tool: shell, input: {command: "touch one"}}]
  - calls: [{tool: shell, input: {command: "touch two"}}]
  - calls: [{tool: write, input: {path: src/a.txt, content: "x"}}]
  - calls: [{tool: write, input: {path: docs/b.txt, content: "x"}}]
  - text: Done.
`

// An approval can be for the whole session, or for calls that a pattern covers.
//
// SPEC P-09
func TestAYesMayReachFurther(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"pushes.yaml": pushes})
	answers := []string{"p\n", "shell(ls *)\n", "shell(touch *)\n", "S\n"}
	answer := func(string) string {
		if len(answers) == 0 {
			return "no more questions\n"
		}
		next := answers[0]
		answers = answers[1:]
		return next
	}
	seen, code := atTerminal(t, dir, "", answer, []string{"NO_COLOR=1"}, "run", "--model", "scripted/pushes.yaml", "--mode", "strict", "--as", "first", "a task")
	if code != 0 || len(answers) > 0 || strings.Contains(seen, "refused") {
		t.Errorf("exit code %d, %d answers are left", code, len(answers))
	}
	for _, want := range []string{
		"[p] all like shell(touch one), [n] no", "  pattern? [enter] shell(touch one), or another pattern:", `"shell(ls *)" does not cover this call: "shell(touch one)" does`,
		"allowed like shell(touch *) by ada (belay)\n", "allowed by ada (belay): allowed before, with approval ap-", "allowed in this session by ada (belay)\n", "Done.\n",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("the screen has no %q:\n%s", want, seen)
		}
	}
	if _, err := os.Stat(dir + "/docs/b.txt"); err != nil {
		t.Error(err)
	}
}

// Text that the user typed before the question is not an approval.
func TestTypingAheadIsNoAnswer(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"asks.yaml": asks})
	seen, code := atTerminal(t, dir, "y\nyes\n", func(string) string { return "\n" }, nil,
		"run", "--model", "scripted/asks.yaml", "--mode", "strict", "a task")
	if code != 0 || strings.Count(seen, "refused") != 2 {
		t.Errorf("exit code %d; both calls must be refused:\n%s", code, seen)
	}
	if _, err := os.Stat(dir + "/made.txt"); err == nil {
		t.Error("what nobody allowed ran")
	}
}

func TestNoAnswerRefuses(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"asks.yaml": asks})
	seen, code := atTerminal(t, dir, "", func(string) string { return "\x04" }, []string{"NO_COLOR=1"}, "run", "--mode", "strict", "--model", "scripted/asks.yaml", "a task")
	if code != 0 || !strings.Contains(seen, "refused by ada (belay): no answer\n") {
		t.Errorf("exit code %d:\n%s", code, seen)
	}
}

func TestTerminalGetsColoursAndASpinner(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"script.yaml": "steps:\n  - text: An answer.\n    calls: [{tool: list, input: {}}]\n  - text: Done.\n"})
	seen, code := atTerminal(t, dir, "", nil, nil, "run", "--model", "scripted/script.yaml", "a task")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"\x1b[36mlist\x1b[0m", "waiting for the model", "\r\x1b[2K", "An answer.\n", "Done.\n"} {
		if !strings.Contains(seen, want) {
			t.Errorf("the screen has no %q:\n%q", want, seen)
		}
	}
}

// An interrupt also aborts a turn that waits for a person.
func TestInterruptWhileAsking(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"asks.yaml": asks})
	seen, code := atTerminal(t, dir, "", func(string) string { return "\x03" }, nil,
		"run", "--mode", "strict", "--model", "scripted/asks.yaml", "--as", "first", "a task")
	if code != 130 || !strings.Contains(seen, "the turn was aborted") {
		t.Errorf("exit code %d, want 130:\n%s", code, seen)
	}
	if state := stateOf(t, dir); state != "aborted" {
		t.Errorf("the turn ended %q, want aborted", state)
	}
	if _, err := os.Stat(dir + "/made.txt"); err == nil {
		t.Error("what was not answered ran")
	}
}

// The model's text cannot move the cursor or rewrite the screen.
func TestTerminalIsSafeFromTheModel(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"evil.yaml": "steps:\n  - text: \"before \\b\\e[2J\\e]0;title\\a after\"\n    calls: [{tool: read, input: {path: \"x\\e[1A\"}}]\n  - text: Done.\n"})
	seen, _ := atTerminal(t, dir, "", nil, []string{"NO_COLOR=1"}, "run", "--model", "scripted/evil.yaml", "a task")
	for _, bad := range []string{"\x1b[2J", "\x1b]0", "\x1b[1A", "\a", "\b"} {
		if strings.Contains(seen, bad) {
			t.Errorf("the screen got %q:\n%q", bad, seen)
		}
	}
	if !strings.Contains(seen, "before ") || !strings.Contains(seen, " after") {
		t.Errorf("the text is not there:\n%q", seen)
	}
}
