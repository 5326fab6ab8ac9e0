package chat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/belay-run/belay"
)

// widthScreens are what TestWidths draws. Each function leads a chat to the screen, and returns what
// to compare: the view, or what was printed.
var widthScreens = map[string]func(*testing.T, *bench) string{
	"approval": func(t *testing.T, b *bench) string {
		t.Helper()
		b.keys("mend it", "enter")
		input := json.RawMessage(`{"path":"docs/notes.md","old_string":"buy milk","new_string":"buy oat milk"}`)
		b.event(belay.Event{Kind: belay.EventToolUse, Call: &belay.CallPart{ID: "c", Tool: "edit", Input: input}})
		b.wait(quiet)
		b.send(askMsg{belay.Question{
			Approval: belay.Approval{ID: "1", Call: "c", Tool: "edit", Reason: "strict mode asks before every change"}, Input: input,
		}, Advice{Reach: "zone 1 workspace: changes files of the project", Pattern: "edit(docs/notes.md)", Change: &Change{
			Path: "docs/notes.md", Action: "edited", Added: 1, Removed: 1, Diff: "--- a/docs/notes.md\n+++ b/docs/notes.md\n@@ -1,3 +1,3 @@\n one\n-buy milk\n+buy oat milk\n five\n",
		}}, make(chan belay.Decision, 1)})
		b.wait(quiet)
		return b.m.View().Content
	},
	"modes": func(t *testing.T, b *bench) string {
		t.Helper()
		for i, about := range []string{"only reads, until you approve the plan", "asks before every change", "changes files of the project, asks before everything else", "also builds and tests without asking"} {
			b.m.controls.Modes[i].About = about
		}
		b.keys("/mode", "enter", "down")
		return b.m.View().Content
	},
	"sessions": func(t *testing.T, b *bench) string {
		t.Helper()
		b.keys("/resume", "enter")
		return b.m.View().Content
	},
	"plan": func(t *testing.T, b *bench) string {
		t.Helper()
		b.keys("mend it", "enter")
		b.wait(quiet)
		b.question("1", "present_plan", `{"plan":"# Mend the login\n\n1. write **session.go**: one place that makes and checks tokens, with their ages\n2. test it with an expired token"}`)
		b.wait(quiet)
		return b.m.View().Content
	},
	"result": func(t *testing.T, b *bench) string {
		t.Helper()
		b.keys("test it", "enter")
		before := len(b.raw)
		b.answers(b.calls("1", "shell", `{"command":"go test ./internal/login/... ./internal/session/..."}`), belay.Result{Text: "ok  \tlogin\t0.1s\nok  \tsession\t0.2s with a line that does not fit a narrow screen\nok  \ttoken\t0.1s\n4\n5\n6\n"})
		b.answers(b.calls("2", "edit", `{"path":"docs/notes.md"}`), belay.Result{Text: "edited", Render: []byte(`{"diff":"@@ -1,2 +1,2 @@\n one\n-buy milk\n+buy oat milk"}`)})
		return strings.Join(b.raw[before:], "\n")
	},
}

// SPEC U-01
// SPEC U-02
// SPEC U-03
// The screens fit 30, 80 and 200 columns. With NO_COLOR they have the same words, and no colours.
// With BELAYTEST_UPDATE=1 the test writes its files.
func TestWidths(t *testing.T) {
	t.Parallel()
	colours := regexp.MustCompile(`\x1b\[(?:[0-9:]*;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:[;:][0-9;:]*)?m`)
	for name, screen := range widthScreens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all strings.Builder
			for _, width := range []int{30, 80, 200} {
				draw := func(profile colorprofile.Profile) string {
					b, _ := controlled(t)
					b.m.look.profile, b.m.md.profile = profile, profile
					b.send(tea.WindowSizeMsg{Width: width, Height: 48})
					return b.m.toned(screen(t, b))
				}
				coloured, plain := draw(colorprofile.ANSI), draw(colorprofile.ASCII)
				if bare(coloured) != bare(plain) {
					t.Errorf("at %d columns the text without colours differs:\n%s\n\nand with them:\n%s", width, bare(plain), bare(coloured))
				}
				if !colours.MatchString(coloured) || colours.MatchString(plain) {
					t.Errorf("at %d columns there are no colours in\n%q\nor there are some in\n%q", width, coloured, plain)
				}
				for line := range strings.SplitSeq(plain, "\n") {
					if w := ansi.StringWidth(line); w >= width {
						t.Errorf("at %d columns a line has %d: %q", width, w, ansi.Strip(line))
					}
				}
				fmt.Fprintf(&all, "%d columns:\n\n%s\n\n", width, bare(plain))
			}
			path := filepath.Join("testdata", "widths", name+".txt")
			if os.Getenv("BELAYTEST_UPDATE") == "1" {
				if err := os.WriteFile(path, []byte(all.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v: make it with BELAYTEST_UPDATE=1", err)
			}
			if all.String() != string(want) {
				t.Errorf("%s differs. It is now:\n%s", path, all.String())
			}
		})
	}
}
