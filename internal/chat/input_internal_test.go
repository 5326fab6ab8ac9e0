package chat

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestManyLines(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.keys("one", "alt+enter", "two", "ctrl+j", "three")
	shows(t, "the view", b.view(), "› one", "  two", "  three")
	b.keys("enter")
	if got := b.did[len(b.did)-1]; got != "run one\ntwo\nthree" {
		t.Errorf("sent %q", got)
	}
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "› one", "  two", "  three")
}

// A long paste is one word in the editor, and is sent in full.
func TestPaste(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.send(tea.PasteMsg{Content: "a\r\nb"})
	shows(t, "the view", b.view(), "› a", "  b")
	b.keys("enter")
	long := strings.Repeat("line\n", 40) + "end \xff"
	b.send(overMsg{})
	b.keys("see ")
	b.send(tea.PasteMsg{Content: long})
	shows(t, "the view", b.view(), "see [paste 1: 41 lines, ")
	b.keys(" please", "enter")
	want := "run see " + strings.Repeat("line\n", 40) + "end \uFFFD please"
	if got := b.did[len(b.did)-1]; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	if b.m.editor.text() != "" {
		t.Error("the editor is not empty")
	}
}

func TestHistoryKeys(t *testing.T) {
	t.Parallel()
	b := openBench(t, nil, &opening{session: "main", history: []string{"old", "two\nlines"}})
	b.keys("draft", "up")
	shows(t, "the view", b.view(), "› two", "  lines")
	b.keys("up") // moves inside the entry
	b.keys("up")
	shows(t, "the view", b.view(), "› old")
	b.keys("up", "up")
	shows(t, "the view", b.view(), "› old")
	b.keys("down", "down")
	shows(t, "the view", b.view(), "› draft")
	b.keys("enter")
	b.send(overMsg{})
	b.keys("draft", "enter") // the same text twice is one entry
	b.send(overMsg{})
	b.keys("up", "up")
	if got := b.m.editor.text(); got != "two\nlines" {
		t.Errorf("two back is %q", got)
	}
	if n := strings.Count(strings.Join(b.did, "|"), "remember draft"); n != 1 {
		t.Errorf("it was remembered %d times", n)
	}
}

func TestHistoryThatCannotBeKeptIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.fail = errors.New("no room")
	b.keys("x", "enter")
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "the input history is not saved: no room")
}

func TestHistoryFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "history")
	if got, err := readHistory(path); got != nil || err != nil {
		t.Fatalf("a file that is not there holds %q, error %v", got, err)
	}
	if got, err := readHistory(""); got != nil || err != nil {
		t.Fatalf("no file holds %q, error %v", got, err)
	}
	for _, text := range []string{"one", "two\nlines", "語 \u2028"} {
		if err := appendHistory(path, text); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readHistory(path)
	if want := []string{"one", "two\nlines", "語 \u2028"}; !slices.Equal(got, want) || err != nil {
		t.Errorf("the file holds %q, error %v; want %q", got, err, want)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("the file has the mode %o: what people type is theirs", mode)
	}
	if _, err := readHistory(filepath.Dir(path)); err == nil {
		t.Error("a directory can be read as a history")
	}
}

// The history file has a size limit. An invalid line in it does not affect the other lines.
func TestHistoryFileIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	var b strings.Builder
	b.WriteString("broken\n")
	for i := range 2*historyEntries + 1 {
		fmt.Fprintf(&b, "\"entry %d\"\n", i)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := readHistory(path)
	if err != nil || len(entries) != historyEntries || entries[len(entries)-1] != "entry 2000" {
		t.Fatalf("%d entries, the last %q, error %v", len(entries), entries[len(entries)-1], err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n"); n != historyEntries {
		t.Errorf("the file has %d lines left, want %d", n, historyEntries)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("there is %v beside the file, error %v", left, err)
	}
	h := newHistory(entries)
	h.add("new")
	if len(h.entries) != historyEntries || h.add(strings.Repeat("x", historyBytes+1)) {
		t.Errorf("%d entries are kept, and too long ones in the file", len(h.entries))
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	opts := &Options{Directives: []Directive{{"/review", "look at the change"}, {"rename", "rename it"}, {"help", "is the chat's own"}}}
	b := newBench(t, opts)
	b.keys("/")
	shows(t, "the view", b.view(), "▸ /help", "/resume")
	b.keys("re")
	shows(t, "the view", b.view(), "▸ /resume", "/review  look at the change", "/rename  rename it")
	hides(t, "the view", b.view(), "/quit", "is the chat's own")
	b.keys("down", "down", "tab")
	if got := b.m.editor.area.Value(); got != "/review " {
		t.Errorf("tab completes to %q", got)
	}
	hides(t, "the view", b.view(), "▸")
	b.keys("now", "enter")
	if got := b.did[len(b.did)-1]; got != "run /review now" {
		t.Errorf("sent %q: a directive is the agent's", got)
	}
	b.send(overMsg{})
	b.keys("/qu", "esc")
	hides(t, "the view", b.view(), "▸")
	b.keys("i")
	shows(t, "the view", b.view(), "▸ /quit")
	b.keys("enter")
	b.wait(slack)
	if !b.left {
		t.Error("enter does not do the chosen command of the chat")
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	b := newBench(t, &Options{Directives: []Directive{{"review", "look at the change"}}})
	b.keys("/help", "enter")
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "alt+enter, ctrl+j", "/resume", "/quit", "/review", "goes to the agent")
	for _, name := range []string{"resume", "abandon", "compact"} {
		b.keys("/"+name, "enter")
		if got := b.did[len(b.did)-1]; got != name {
			t.Errorf("/%s asks the host for %q", name, got)
		}
		b.keys("/"+name, "enter")
		shows(t, "the scrollback", b.printed[len(b.printed)-1], "wait for the end of the turn")
		b.send(overMsg{said: "done with " + name})
		shows(t, "the scrollback", b.printed[len(b.printed)-1], "∙ done with "+name)
	}
	b.keys("/copy", "enter")
	shows(t, "the scrollback", b.printed[len(b.printed)-1], "no answer to copy")
	for _, text := range []string{"/clear the table", "/unknown", "quit"} {
		b.keys(text, "enter")
		if text == "/unknown" { // SPEC U-02
			shows(t, "the scrollback", b.printed[len(b.printed)-2]+b.printed[len(b.printed)-1], "there is no command /unknown")
			b.keys("enter")
		}
		if got := b.did[len(b.did)-1]; got != "run "+text {
			t.Errorf("%q: the host was asked for %q, want it passed on", text, got)
		}
		b.send(overMsg{})
	}
	b.keys("enter", " ", "enter")
	if got := b.did[len(b.did)-1]; got != "run quit" {
		t.Errorf("nothing was sent as %q", got)
	}
}
