//go:build linux

package main

import (
	"bufio"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

const asksUser = `
follow_transcript: true
steps:
  - calls: [{tool: ask_user, input: {question: "Where to?", options: [staging, production]}}]
  - expect: {results: [{tool: ask_user, text: production}]}
    text: To production.
`

// Belay asks the model's questions at a terminal, and reports an invalid answer.
//
// SPEC E-07
func TestQuestionsAreAskedAtATerminal(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"asks.yaml": asksUser})
	answers := []string{"the moon\n", "2\n"}
	answer := func(string) string {
		if len(answers) == 0 {
			return "\n"
		}
		next := answers[0]
		answers = answers[1:]
		return next
	}
	seen, code := atTerminal(t, dir, "1\n", answer, []string{"NO_COLOR=1"}, "run", "--model", "scripted/asks.yaml", "--as", "first", "ship it")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"? the agent asks: Where to?\n    1. staging\n    2. production\n  your answer (press Enter for no answer): the moon\n",
		"? the agent asks: the answer is not valid: it is none of the options: staging, production, or a number from 1 to 2\n  Where to?\n    1. staging\n",
		"answered by ada (belay): production", "To production.\n",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("the screen has no %q:\n%s", want, seen)
		}
	}
}

const asksALot = `
steps:
  - calls:
      - {tool: ask_user, input: {question: "one?"}}
      - {tool: shell, input: {command: "git push"}}
      - {tool: ask_user, input: {question: "two?"}}
      - {tool: ask_user, input: {question: "three?"}}
      - {tool: ask_user, input: {question: "four?"}}
  - expect: {results: [{tool: ask_user, text: a}, {tool: shell, is_error: true}, {tool: ask_user, text: b}, {tool: ask_user, text: c}, {tool: ask_user, text: d}]}
    text: I see.
`

// Belay asks several questions of one message in the order of the calls, so that each
// answer goes to the right question.
//
// SPEC E-07, P-10
func TestQuestionsAreAskedInTheOrderOfCalls(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"asks.yaml": asksALot})
	answers := []string{"a\n", "n\n", "b\n", "c\n", "d\n"}
	answer := func(string) string {
		next := answers[0]
		answers = answers[1:]
		return next
	}
	seen, code := atTerminal(t, dir, "", answer, []string{"NO_COLOR=1"}, "run", "--model", "scripted/asks.yaml", "--as", "first", "ask me")
	if code != 0 || !strings.Contains(seen, "I see.") {
		t.Fatalf("exit code %d:\n%s", code, seen)
	}
}

// A question survives the end of its process. The test kills the process while it asks.
// Another process gives the answer, and a third one continues the turn, once.
//
// SPEC E-07
func TestAQuestionOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"asks.yaml": asksUser})
	keyboard, screen := openTerminal(t)
	cmd := command(t, dir, "run", "--model", "scripted/asks.yaml", "--as", "first", "ship it")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if err := screen.Close(); err != nil {
		t.Fatal(err)
	}
	from, seen := bufio.NewReader(keyboard), ""
	for !strings.Contains(seen, "your answer") {
		b, err := from.ReadByte()
		if err != nil {
			t.Fatalf("nobody was asked (%v), but:\n%s", err, seen)
		}
		seen += string(b)
	}
	if err := cmd.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = cmd.Wait()

	must := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		stdout, stderr, code := belay(t, dir, args...)
		if code != want {
			t.Fatalf("belay %s: exit code %d, want %d:\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
		}
		return stdout, stderr
	}
	listed, _ := must(0, "approvals", "list")
	if n := strings.Count(listed, "pending"); n != 1 {
		t.Fatalf("%d questions are pending, want 1:\n%s", n, listed)
	}
	must(0, "approvals", "answer", "ap-", "2")
	_, again := must(1, "approvals", "answer", "ap-", "1")
	if !strings.Contains(again, "was already decided by ada (belay): answered") {
		t.Errorf("a second answer is told:\n%s", again)
	}
	if out, _ := must(0, "resume", "first", "--model", "scripted/asks.yaml"); out != "To production.\n" {
		t.Errorf("the turn went on with:\n%s", out)
	}
	must(2, "resume", "first", "--model", "scripted/asks.yaml") // the turn has ended
	shown, _ := must(0, "show", "first", "--full")
	if n := len(regexp.MustCompile(`(?m)^\s*production$`).FindAllString(shown, -1)); n != 1 {
		t.Errorf("the answer is in the transcript %d times, want once:\n%s", n, shown)
	}
}

// The user answers questions inside the chat.
//
// SPEC E-07
func TestQuestionsAreAskedInAChat(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"asks.yaml": asksUser})
	c := chat(t, dir, "--model", "scripted/asks.yaml", "--as", "first")
	c.await("> ")
	c.types("ship it")
	c.await("2. production")
	c.await("your answer (press Enter for no answer): ")
	c.types("the moon")
	c.await("the answer is not valid")
	c.await("your answer (press Enter for no answer): ")
	c.types("Production")
	c.await("To production.")
	c.await("> ")
	c.types("/quit")
	_ = c.Wait()
	if state := stateOf(t, dir); state != "done" {
		t.Errorf("the session is %s", state)
	}
}
