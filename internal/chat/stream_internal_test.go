package chat

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"pgregory.net/rapid"

	"github.com/belay-run/belay/internal/visible"
)

// cutAll splits a text that arrives in pieces of n bytes into blocks.
func cutAll(text string, n int) []block {
	var s stream
	var all []block
	for piece := range slices.Chunk([]byte(text), n) {
		all = append(all, s.add(string(piece))...)
	}
	return append(all, s.flush()...)
}

func TestStreamCutsBlocks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		text string
		want []string
	}{
		{"paragraphs are apart", "one\ntwo\n\nthree", []string{"one\ntwo\n\n", "three"}},
		{"a heading is a block", "# One\ntext\n## Two\n", []string{"# One\n", "text\n", "## Two\n"}},
		{"a list stays together, loose or not", "- a\n\n- b\n\n  more\n\n1. c\n\nend", []string{"- a\n\n- b\n\n  more\n\n1. c\n\n", "end"}},
		{"code stays together", "```go\na\n\n# b\n\nc\n```\nd", []string{"```go\na\n\n# b\n\nc\n```\n", "d"}},
		{"code ends a paragraph", "see:\n```\nx\n```\n", []string{"see:\n", "```\nx\n```\n"}},
		{"a longer fence holds a shorter one", "````\n```\nx\n```\n````\ny", []string{"````\n```\nx\n```\n````\n", "y"}},
		{"code in a list belongs to it", "- a\n  ```\n  x\n\n  y\n  ```\n- b\n\nend", []string{"- a\n  ```\n  x\n\n  y\n  ```\n- b\n\n", "end"}},
		{"code that is never closed is shown", "```\nx\n\ny", []string{"```\nx\n\ny"}},
		{"a hash without a space is no heading", "a\n#b\n", []string{"a\n#b\n"}},
		{"nothing is nothing", "\n\n \n", nil},
		{"a table is a block", "| a |\n|---|\n| 1 |\n\nx", []string{"| a |\n|---|\n| 1 |\n\n", "x"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= len(test.text)+1; n++ {
				var got []string
				for _, b := range cutAll(test.text, n) {
					if b.glued {
						t.Errorf("in pieces of %d: %q is glued, and nothing was cut", n, b.text)
					}
					got = append(got, b.text)
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("in pieces of %d: blocks = %q, want %q", n, got, test.want)
				}
			}
		})
	}
}

// The blocks together are the whole text, in whatever pieces the text arrives.
func TestStreamLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.SampledFrom([]string{"", "", "text", "- item", "  more", "1. one", "# head", "```", "~~~", "````go", "> quote", "語 😀", "\t", "|a|"})).Draw(t, "lines")
		text := strings.Join(lines, "\n")
		n := rapid.IntRange(1, 7).Draw(t, "n")
		var got strings.Builder
		for _, b := range cutAll(text, n) {
			got.WriteString(b.text)
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		if squeeze(got.String()) != squeeze(text) {
			t.Errorf("in pieces of %d: %q became %q", n, text, got.String())
		}
	})
}

// The part that is drawn again with each delta is limited, so that long answers stay fast.
// No text is lost.
func TestStreamBoundsWhatIsOpen(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	code.WriteString("```go\n")
	for i := range 500 {
		fmt.Fprintf(&code, "line(%d)\n", i)
	}
	for rule, text := range map[string]string{
		"a paragraph":           strings.Repeat("word ", 20_000),
		"a word":                strings.Repeat("語", 20_000),
		"a list":                strings.Repeat("- item\n", 10_000),
		"code":                  code.String() + "```\n",
		"code in a single line": "```\n" + strings.Repeat("x", 50_000) + "\n```\n",
		"code in long lines":    "```\n" + strings.Repeat(strings.Repeat("x", 3000)+"\n", 20) + "```\n",
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			var s stream
			var all []block
			most := 0
			for piece := range slices.Chunk([]byte(text), 100) {
				all = append(all, s.add(string(piece))...)
				if rule != "code in a single line" { // a line of code is never cut
					most = max(most, len(s.open()))
				}
			}
			all = append(all, s.flush()...)
			if most > openBytes+4000 {
				t.Errorf("%d bytes were open at a time, want about %d at most", most, openBytes)
			}
			var got strings.Builder
			for i, b := range all {
				if !strings.HasPrefix(text, "`") && b.glued != (i > 0) {
					t.Errorf("block %d is glued: %t", i, b.glued)
				}
				for line := range strings.SplitAfterSeq(b.text, "\n") {
					if fenceOf(strings.TrimSpace(line)) == "" {
						got.WriteString(line)
					}
				}
			}
			want := strings.NewReplacer("```go\n", "", "```\n", "").Replace(text)
			if got.String() != want {
				t.Errorf("%d bytes became %d", len(want), got.Len())
			}
		})
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain":                "plain",
		"a\tb\r\nc":            "a    b\nc",
		"a\rb\x00c\x7f":        "a␍b␀c␡",
		"rm\u202ex\u2066":      `rm\u202ex\u2066`,
		"\x1b[31mred":          "␛[31mred",
		"\u009b31m":            `\u009b31m`,
		"👩\u200d👩\u200d👧 \xff": "👩\u200d👩\u200d👧 \uFFFD",
	} {
		if got := visible.All(text); got != want {
			t.Errorf("visible.All(%q) = %q, want %q", text, got, want)
		}
	}
}

// Ten thousand lines of one answer arrive complete and in order while the window changes its size,
// and no view is larger than its window.
//
// SPEC U-03
func TestLongOutputAndResizes(t *testing.T) {
	t.Parallel()
	const lines = 10_000
	b := begun(t)
	sizes := []tea.WindowSizeMsg{{Width: 30, Height: 10}, {Width: 200, Height: 60}, {Width: 20, Height: 3}, {Width: 80, Height: 24}}
	for i := range lines {
		b.says(fmt.Sprintf("line-%d\n\n", i))
		if i%97 == 0 {
			b.send(sizes[i/97%len(sizes)])
		}
	}
	b.send(overMsg{})
	var got []string
	for _, line := range b.printed {
		if strings.HasPrefix(line, "line-") {
			got = append(got, strings.TrimRight(line, " "))
		}
	}
	if len(got) != lines {
		t.Fatalf("%d lines of %d are printed", len(got), lines)
	}
	for i, line := range got {
		if line != fmt.Sprintf("line-%d", i) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}
