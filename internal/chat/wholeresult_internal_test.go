package chat

import (
	"context"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/belay-run/belay"
)

// ctrl+o prints the whole last result that was shown in part, once: text or a diff.
func TestWholeResult(t *testing.T) {
	t.Parallel()
	b := begun(t)
	b.answers(b.calls("1", "shell", `{"command":"seq 9"}`), belay.Result{Text: "1\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	b.answers(b.calls("2", "read", `{"path":"x"}`), belay.Result{Text: "short"})
	before := len(b.printed)
	b.keys("ctrl+o")
	shows(t, "the scrollback", bare(strings.Join(b.printed[before:], "\n")), "✓ shell seq 9", "  │ 1\n", "  │ 8\n  │ 9")
	b.keys("ctrl+o")
	shows(t, "the scrollback", b.printed[len(b.printed)-1], "every result is shown in full")
	b.answers(b.calls("3", "write", `{"path":"x"}`), belay.Result{Text: "written", Render: []byte(`{"diff":"` + strings.Repeat(`+line\n`, diffLines+20) + `+last"}`)})
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "… 21 lines more · ctrl+o")
	before = len(b.printed)
	b.keys("ctrl+o")
	if got := strings.Join(b.printed[before:], "\n"); strings.Count(got, "+line") != diffLines+20 || !strings.Contains(got, "+last") {
		t.Errorf("ctrl+o prints\n%s", got)
	}
}

// The number of lines that follow is that of what ctrl+o shows. If the model got only a part of the
// result, the line says so, and ctrl+o names the file with the whole result.
//
// SPEC U-03
func TestResultThatTheModelGotInPart(t *testing.T) {
	t.Parallel()
	for _, left := range []string{"[... 90000 of 91000 characters left out; the full text is in /spill/1.txt ...]", "[... 3 MB left out here ...]"} {
		b := begun(t)
		b.answers(b.calls("1", "shell", `{"command":"seq 9999"}`), belay.Result{Text: "1\n2\n3\n\n" + left + "\n\n9998\n9999\n", Spilled: "/spill/1.txt"})
		shows(t, "the scrollback", strings.Join(b.printed, "\n"), "  │ 3", "… 5 lines more · ctrl+o · its middle is left out")
		before := len(b.printed)
		b.keys("ctrl+o")
		shows(t, "the scrollback", strings.Join(b.printed[before:], "\n"), "  │ 3\n  │ \n  │ [... ", "left out", "│ 9999\n", "  ∙ the whole result is in /spill/1.txt")
		if n := strings.Count(strings.Join(b.printed[before:], "\n"), "│"); n != 3+5 {
			t.Errorf("ctrl+o prints %d lines, want the 3 that were shown and the 5 that were announced", n)
		}
	}
}

// Two quick escapes arrive as one key, and close what one escape closes.
func TestQuickEscapes(t *testing.T) {
	t.Parallel()
	b, _ := controlled(t)
	b.keys("/mode", "enter")
	shows(t, "the view", b.view(), "Modes")
	b.send(tea.KeyPressMsg{Code: tea.KeyEscape, Mod: tea.ModAlt})
	hides(t, "the view", b.view(), "Modes")
}

// A command of the user is shown as it was typed, also where it comes from the store.
func TestCommandsAreShownAsTyped(t *testing.T) {
	t.Parallel()
	o := &opening{session: "main", messages: []*belay.Message{{Kind: belay.KindUser, Parts: []belay.Part{belay.Text("/sh git status")}}}}
	b := openBench(t, &Options{Controls: Controls{
		Messages: func(context.Context, string) ([]Choice, error) {
			return []Choice{{ID: "1", Name: "/sh git status"}}, nil
		},
		Rewind: func(context.Context, string, string, bool) (Session, string, error) { return nil, "", nil },
	}}, o)
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "› !git status")
	b.keys("/rewind", "enter")
	shows(t, "the view", b.view(), "▸ !git status")
	b.keys("esc")
	b.send(openedMsg{opening: &opening{session: "next"}, typed: "/sh git status"})
	shows(t, "the view", b.view(), "› !git status")
}
