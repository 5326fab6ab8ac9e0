package chat

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// A terminal that cannot move its cursor gets plain lines.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	if !dumb([]string{"A=b", "TERM=dumb"}) || dumb([]string{"TERM=xterm"}) || dumb(nil) {
		t.Error("a dumb terminal is not told from others")
	}
	steps := []scripted.Step{
		{Text: "Use **this**:\n\n- a\n- b", Calls: []scripted.Call{{Tool: "shell", Input: `{"command":"rm -rf build"}`}}},
		{Text: "Done."},
		{Calls: []scripted.Call{{Tool: "shell", Input: `{"command":"ls"}`}}},
		{Text: "Then not."},
		{Calls: []scripted.Call{{Tool: "shell", Input: `{"command":"rm x"}`}}},
		{Calls: []scripted.Call{{Tool: "shell", Input: `{"command":"rm y"}`}}},
		{Text: "All gone."},
	}
	c := New(&Options{Advise: func(_ context.Context, q belay.Question) Advice {
		if !strings.Contains(string(q.Input), "rm x") {
			return Advice{}
		}
		return Advice{Pattern: "shell(rm *)", Check: func(pattern string) error {
			if pattern != "shell" {
				return errors.New("it is too narrow")
			}
			return nil
		}}
	}})
	opts := asks()
	opts.Approver, opts.Store, opts.SpillDir = c, memstore.New(nil), t.TempDir()
	agent, err := belay.New(scripted.New(steps, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	in, typed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, written := io.Pipe()
	done := make(chan error, 1)
	go func() {
		session := agent.Session("main")
		done <- errors.Join(c.lines(t.Context(), session, open(t.Context(), session, nil), in, written), written.Close())
	}()
	var all strings.Builder
	read := func() {
		t.Helper()
		buf := make([]byte, 1024)
		n, err := out.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			t.Fatalf("%v after:\n%s", err, all.String())
		}
	}
	expect := func(want string) {
		t.Helper()
		for !strings.Contains(all.String(), want) {
			read()
		}
	}
	line := func(text string) {
		t.Helper()
		if _, err := typed.WriteString(text + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	expect("> ")
	line("clean")
	expect("any other text denies and is the reason: ")
	line("y")
	expect("Done.")
	line("again")
	expect("$ ls")
	for strings.Count(all.String(), "any other text denies") < 2 {
		read()
	}
	line("not now")
	expect("Then not.")
	line("more")
	expect("p allow all like shell(rm *); any other")
	line("p")
	expect("type another pattern, or press Enter for shell(rm *): ")
	line("")
	expect("it is too narrow\npattern: ")
	line("shell")
	expect("All gone.")
	line("/quit")
	rest, err := io.ReadAll(out)
	all.Write(rest)
	if err = errors.Join(err, <-done, typed.Close()); err != nil {
		t.Error(err)
	}
	if err := agent.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if text := all.String(); ansi.Strip(text) != text {
		t.Errorf("there are sequences in %q", text)
	}
	shows(t, "the terminal", all.String(), "session main", "› clean", "Use this:", "• a", "it removes files (asked by floor)",
		"$ rm -rf build", "✓ shell allowed by you", "│ removed build", "Done.",
		"✗ shell denied by you: not now", "Then not.",
		"✓ shell allowed like shell by you", "✓ shell allowed by you: allowed before")
	if n := strings.Count(all.String(), "allowed before"); n != 1 {
		t.Errorf("one call that an earlier approval covers has %d lines about it:\n%s", n, all.String())
	}
}
