//go:build linux

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serveProject starts "belay serve" in a directory, and returns its address.
func serveProject(t *testing.T, dir, script string) string {
	t.Helper()
	_, url := serveAt(t, dir, "127.0.0.1:0", script)
	return url
}

// serveAt starts "belay serve" at an address.
func serveAt(t *testing.T, dir, listen, script string) (server *child, url string) {
	t.Helper()
	c := start(t, dir, "serve", "--listen", listen, "--mode", "strict", "--model", "scripted/"+script)
	_, rest, _ := strings.Cut(c.await(c.stderr, "http://"), "http://")
	c.await(c.stderr, "your token is in ")
	return c, "http://" + strings.TrimSpace(rest)
}

// If the server is killed in the middle of a turn and started again, "belay run" connects again.
// It shows the rest of the turn, and nothing twice.
//
// SPEC V-03, V-04, V-07
func TestRunAtAServerThatIsKilled(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"s.yaml": hangs})
	server, url := serveAt(t, dir, "127.0.0.1:0", "s.yaml")
	c := start(t, dir, "--server", url, "run", "--as", "first", "a task")
	c.await(c.stderr, "  list")
	server.signal(syscall.SIGKILL)
	server.ended()
	put(t, dir, "s.yaml", goesOn)
	serveAt(t, dir, strings.TrimPrefix(url, "http://"), "s.yaml")
	out, err := io.ReadAll(c.stdout)
	if err != nil {
		t.Fatal(err)
	}
	if rest, code := c.ended(); code != 0 || string(out) != "Let me look.\nI have looked.\n" {
		t.Errorf("exit code %d, %q, %s", code, out, rest)
	}
}

// "belay run" with a server asks the person at the terminal, sends the decisions, and shows how
// the turn continues on the server.
//
// SPEC V-04
func TestRunAtAServerAsksAtTheTerminal(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"asks.yaml": asks})
	url := serveProject(t, dir, "asks.yaml")
	answer := func(seen string) string {
		if strings.LastIndex(seen, "shell needs") > strings.LastIndex(seen, "write needs") {
			return "y\n"
		}
		return "rather not\n"
	}
	seen, code := atTerminal(t, dir, "", answer, []string{"NO_COLOR=1", "BELAY_SERVER=" + url}, "run", "--as", "first", "a task")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"? shell needs your approval: writes made.txt: zone ", "\n    $ echo hello > made.txt\n", "  asked by zone 1 · zone ",
		"    other.txt (created)\n    + one\n    + two\n", "allowed by token local", "refused by token local: rather not", "Done.\n",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("the screen has no %q:\n%s", want, seen)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "made.txt")); err != nil || string(text) != "hello\n" {
		t.Errorf("what was allowed did not run: %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "other.txt")); err == nil {
		t.Error("what was refused ran")
	}
}

// "belay run" with a server lets the person answer a question of the model, and name a pattern.
// The server checks the pattern.
//
// SPEC V-04, E-07
func TestRunAtAServerAnswersQuestions(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"asks.yaml": `
steps:
  - calls: [{tool: ask_user, input: {question: "Where to?", options: [staging, production]}}]
  - calls: [{tool: write, input: {path: src/a.txt, content: "x"}}]
  - calls: [{tool: write, input: {path: src/b.txt, content: "x"}}]
  - text: Shipped.
`})
	url := serveProject(t, dir, "asks.yaml")
	answers := []string{"2\n", "p\n", "nonsense(\n", "p\n", "write(src/**)\n"}
	answer := func(string) string {
		if len(answers) == 0 {
			return "n\n"
		}
		next := answers[0]
		answers = answers[1:]
		return next
	}
	seen, code := atTerminal(t, dir, "", answer, []string{"NO_COLOR=1", "BELAY_SERVER=" + url}, "run", "--as", "first", "ship it")
	if code != 0 || len(answers) > 0 {
		t.Errorf("exit code %d, and these answers were not asked for: %q", code, answers)
	}
	for _, want := range []string{"? the agent asks: Where to?\n    1. staging\n    2. production\n", "answered by token local: production", "allowed like write(src/**) by token local", "Shipped.\n"} {
		if !strings.Contains(seen, want) {
			t.Errorf("the screen has no %q:\n%s", want, seen)
		}
	}
	for _, file := range []string{"a.txt", "b.txt"} {
		if _, err := os.Stat(filepath.Join(dir, "src", file)); err != nil {
			t.Error(err)
		}
	}
}

// Ctrl-C aborts the turn on the server, and the command ends as with a local turn.
//
// SPEC V-04, L-05
func TestInterruptAbortsTheTurnOnAServer(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"hangs.yaml": hangs})
	url := serveProject(t, dir, "hangs.yaml")
	c := start(t, dir, "--server", url, "run", "--as", "first", "a task")
	c.await(c.stderr, "  list")
	c.signal(syscall.SIGINT)
	rest, code := c.ended()
	if code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	for _, want := range []string{"stopping: ending the turn; press Ctrl-C again", "the turn was aborted", `next:    belay run --session first --server ` + url + ` "continue"`} {
		if !strings.Contains(rest, want) {
			t.Errorf("standard error has no %q:\n%s", want, rest)
		}
	}
	if state := stateOf(t, dir); state != "aborted" {
		t.Errorf("the turn ended %q, want aborted", state)
	}
}

// A chat with a server streams text, asks about approvals, aborts a turn, continues the session
// later, and summarizes it.
//
// SPEC V-04
func TestChatAtAServer(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"chat.yaml": `
steps:
  - text: Let me write it.
    calls: [{tool: write, input: {path: made.txt, content: "x\n"}}]
  - text: It is written.
  - fault: {hang: true}
  - text: I am back.
  - text: A summary.
`})
	url := serveProject(t, dir, "chat.yaml")
	c := chat(t, dir, "--server", url, "--as", "first")
	c.await("> ")
	c.types("write it")
	c.await("Let me write it.")
	c.await("Allow write to create made.txt?")
	c.await("is the reason: ")
	c.types("y")
	c.await("allowed by token local")
	c.await("It is written.")
	c.await("> ")
	c.types("and now")
	for deadline := time.Now().Add(hanging); stateOf(t, dir) != "running"; {
		if time.Now().After(deadline) {
			t.Fatal("the second turn does not begin")
		}
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // ignore the exit code: it was interrupted
	if state := stateOf(t, dir); state != "aborted" {
		t.Errorf("the turn ended %q, want aborted", state)
	}
	c = chat(t, dir, "--server", url, "--session", "fir")
	c.await("It is written.")
	c.await("> ")
	c.types("hello")
	c.await("I am back.")
	c.await("> ")
	c.types("/compact")
	c.await("the conversation was summarized; the session keeps everything")
	c.await("> ")
	c.types("/quit")
	c.await("session first; to continue: belay chat --session first --server " + url)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "made.txt")); err != nil || string(text) != "x\n" {
		t.Errorf("what was allowed did not run: %q, %v", text, err)
	}
}

// The server answers the questions of an audit as the store does, and its records can be replayed
// against the files here.
//
// SPEC O-02, O-03
func TestAuditAndBacktestAtAServer(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"calls.yaml": "follow_transcript: true\nsteps:\n  - calls: [{tool: read, input: {path: calls.yaml}}, {tool: write, input: {path: /srv/prod/x, content: hi}}]\n  - text: done\n"})
	for name, text := range map[string]string{
		".belay/hooks/hooks.yaml": "hooks:\n  - id: no-prod\n    phase: tool.pre\n    match: {tools: [write]}\n    action: {deny: production is off limits}\n",
		"stricter/hooks/h.yaml":   "hooks:\n  - id: no-reading\n    phase: tool.pre\n    match: {tools: [read]}\n    action: {deny: reading is over}\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url := serveProject(t, dir, "calls.yaml")
	if _, errs, code := belay(t, dir, "--server", url, "run", "a task"); code != 0 {
		t.Fatal(errs)
	}
	for _, question := range []string{"denials", "slow", "failures", "approvals", "grants", "cost", "tools", "touched"} {
		there, errs, code := belay(t, dir, "--server", url, "audit", question, "--format", "jsonl")
		if code != 0 {
			t.Fatalf("%s: %s", question, errs)
		}
		here, errs, code := belay(t, dir, "audit", question, "--format", "jsonl")
		if code != 0 || here != there {
			t.Errorf("%s: the server says\n%s\nand the store\n%s%s", question, there, here, errs)
		}
	}
	out, errs, code := belay(t, dir, "--server", url, "backtest")
	if code != 0 || !strings.Contains(out, "nothing differs") || !strings.Contains(out, "2 calls") {
		t.Errorf("the same files: exit code %d: %s%s", code, out, errs)
	}
	out, errs, code = belay(t, dir, "--server", url, "backtest", "--hooks", "stricter")
	if code != 1 || !strings.Contains(out, "denied by project/no-reading: reading is over") || !strings.Contains(out, "1 would differ") {
		t.Errorf("other files: exit code %d: %s%s", code, out, errs)
	}
	if _, errs, code := belay(t, dir, "--server", url, "run", "--as", "second", "a task"); code != 0 {
		t.Fatal(errs)
	}
	for flags, want := range map[string]string{"": "2 sessions · 2 messages · 4 calls", "--session second": "1 session · 1 message · 2 calls", "--since 2999-01-01": "0 sessions · 0 messages · 0 calls"} {
		out, errs, code := belay(t, dir, append([]string{"--server", url, "backtest"}, strings.Fields(flags)...)...)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("with %q: exit code %d, want %s: %s%s", flags, code, want, out, errs)
		}
	}
	if _, errs, code := belay(t, dir, "--server", url, "backtest", "--session", "second", "--since", "2999-01-01"); code == 0 || !strings.Contains(errs, `session "second" was last changed at 20`) {
		t.Errorf("a session before --since: exit code %d: %s", code, errs)
	}
}

// A turn that fails at the server says why.
//
// SPEC V-04
func TestRunAtAServerSaysWhyItFailed(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"short.yaml": "steps:\n  - calls: [{tool: list}]\n"})
	url := serveProject(t, dir, "short.yaml")
	if _, errs, code := belay(t, dir, "--server", url, "run", "a task"); code != 1 || !strings.Contains(errs, "the turn ended: error: model scripted/short: invalid: the script ends after step 1") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
