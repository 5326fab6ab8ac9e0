package chat

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

// Every construct has exactly this output on a terminal of 30 columns without colours.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	md := &markdown{}
	md.fit(30, false)
	for _, test := range []struct {
		rule, text string
		want       []string
	}{
		{"nothing is nothing", " \n\n", nil},
		{"headings keep their marks", "# One", []string{"# One"}},
		{"headings with a line below get marks", "One\n---", []string{"## One"}},
		{"text in a heading is rendered", "### A *b* `c`", []string{"### A b `c`"}},
		{"lines stay lines", "one\ntwo", []string{"one", "two"}},
		{"hard breaks are lines", "a\\\nb  \nc", []string{"a", "b", "c"}},
		{"text is wrapped between words", "one two three four five six seven", []string{"one two three four five six", "seven"}},
		{"a word that is too long is broken", strings.Repeat("x", 40), []string{strings.Repeat("x", 30), strings.Repeat("x", 10)}},
		{"a long word begins on a line of its own", "a " + strings.Repeat("x", 40), []string{"a", strings.Repeat("x", 30), strings.Repeat("x", 10)}},
		{"emphasis and strong text", "*a* _b_ **c** ***d***", []string{"a b c d"}},
		{"struck text keeps its marks", "a ~~b *c*~~", []string{"a ~~b c~~"}},
		{"a single tilde is text", "~/a and ~/b~", []string{"~/a and ~/b~"}},
		{"marks of nothing are text", "2 * 3 * 4 and a_b_c and ** d", []string{"2 * 3 * 4 and a_b_c and ** d"}},
		{"code spans keep everything", "`a *b* &amp; \\` ``c`d``", []string{"`a *b* &amp; \\` `c`d`"}},
		{"code spans over two lines", "`a\nb`", []string{"`a b`"}},
		{"escapes and references are resolved", `\*a\* &lt;b&gt; &amp;lt; \&amp; &non; &co`, []string{"*a* <b> &lt; &amp; &non; &co"}},
		{"what looks like a tag stays", "a <T> and <b>c</b> and `<d>`", []string{"a <T> and <b>c</b> and `<d>`"}},
		{"blocks of HTML stay", "<details>\n<summary>a</summary>\n</details>", []string{"<details>", "<summary>a</summary>", "</details>"}},
		{"comments stay", "<!-- a -->", []string{"<!-- a -->"}},
		{"addresses in brackets stay", "<https://a.b> vector<std::string>", []string{"<https://a.b>", "vector<std::string>"}},
		{"links show their address", "see [a *b*](https://c.d)", []string{"see a b (https://c.d)"}},
		{"an address as text is shown once", "[https://c.d](https://c.d)", []string{"https://c.d"}},
		{"links without text show their address", "[](https://c.d)", []string{"https://c.d"}},
		{"links without address show their text", "[a]()", []string{"a"}},
		{"titles of links are shown", `[a](b "c \"d")`, []string{`a (b "c "d")`}},
		{"images are text", "![alt *text*](img.png)", []string{"image: alt text (img.png)"}},
		{"definitions and their uses stay", "[a][1]\n\n[1]: https://c.d", []string{"[a][1]", "", "[1]: https://c.d"}},
		{"rules", "***", []string{"────────"}},
		{"blocks are apart", "a\n\n***\n\nb", []string{"a", "", "────────", "", "b"}},

		{"code is indented and keeps its spaces", "```go\nfunc a() {\n    b()\n\n}\n```", []string{"  func a() {", "      b()", "", "  }"}},
		{"code without a fence", "    a\n      b", []string{"  a", "    b"}},
		{"code that is not closed yet", "```\na", []string{"  a"}},
		{"code without lines", "```\n```", nil},
		{"long code keeps its spaces", "```\n  " + strings.Repeat("x", 30) + "\n```", []string{"    " + strings.Repeat("x", 26), "  xxxx"}},
		{"spaces in long code are kept", "```\n" + strings.Repeat("x", 26) + "    y\n```", []string{"  " + strings.Repeat("x", 26), "    y"}},
		{"code in tildes", "~~~\n```\n~~~", []string{"  ```"}},

		{"lists", "- a\n* b\n+ c", []string{"• a", "", "• b", "", "• c"}},
		{"items are tight", "- a\n- b", []string{"• a", "• b"}},
		{"items with blank lines between them keep these", "- a\n\n- b", []string{"• a", "", "• b"}},
		{"paragraphs of an item stay apart", "- a\n\n  b", []string{"• a", "", "  b"}},
		{"numbers go on", "3. c\n4. d", []string{"3. c", "4. d"}},
		{"numbers keep their sign", "1) a\n2) b", []string{"1) a", "2) b"}},
		{"long items are indented", "- one two three four five six seven", []string{"• one two three four five six", "  seven"}},
		{"lists in lists", "1. a\n   - b\n     - c\n2. d", []string{"1. a", "   • b", "     • c", "2. d"}},
		{"code in items", "- a\n  ```\n  b\n  ```\n- c", []string{"• a", "    b", "• c"}},
		{"tasks", "- [ ] a\n- [x] b\n- [X] c\n- [y] d", []string{"[ ] a", "[x] b", "[X] c", "• [y] d"}},
		{"empty items", "-\n- a", []string{"•", "• a"}},
		{"text in deep lists stays readable", "- a\n  - b\n    - c\n      - d\n        - e\n          - f\n            - g\n              - h\n                - i\n                  - j\n                    - k", []string{
			"• a", "  • b", "    • c", "      • d", "        • e", "          • f", "            • g", "              • h", "                • i",
			"                  • j", "                  • k",
		}},

		{"quotes", "> a *b*\n> c\n>\n> d", []string{"│ a b", "│ c", "│", "│ d"}},
		{"quotes in quotes", "> a\n>> b", []string{"│ a", "│", "│ │ b"}},
		{"lists in quotes", "> - a\n>   b", []string{"│ • a", "│   b"}},

		{"tables", "| a | b |\n|---|---|\n| one | 2 |\n| x | `c` |", []string{"a   │ b", "────┼────", "one │ 2", "x   │ `c`"}},
		{"tables without outer bars", "a | b\n--|--\n1 | 2", []string{"a │ b", "──┼──", "1 │ 2"}},
		{"columns are aligned", "| a | b | c |\n|:--|:-:|--:|\n| 123 | 123 | 123 |\n| 4 | 5 | 6 |", []string{"a   │  b  │   c", "────┼─────┼────", "123 │ 123 │ 123", "4   │  5  │   6"}},
		{"bars with a backslash are text", "| a |\n|---|\n| b \\| `c\\|d` |", []string{"a", "─────────", "b | `c|d`"}},
		{"short and long rows", "| a | b |\n|---|---|\n| 1 |\n| 1 | 2 | 3 |", []string{"a │ b │", "──┼───┼──", "1 │   │", "1 │ 2 │ 3"}},
		{"long cells are wrapped", "| a | b |\n|---|---|\n| x | one two three four five six seven |", []string{"a │ b", "──┼───────────────────────────", "x │ one two three four five", "  │ six seven"}},
		{"tables that are too wide become lists", "| name | b |\n|---|---|\n| aaaaaaaaaaaaaaaaaaaa | bbbbbbbbbbbbbbbbbbbb |\n| c | d |", []string{
			"name: aaaaaaaaaaaaaaaaaaaa", "b: bbbbbbbbbbbbbbbbbbbb", "", "name: c", "b: d",
		}},
		{"text above a table stays text", "x\na | b\n--|--\n1 | 2", []string{"x", "", "a │ b", "──┼──", "1 │ 2"}},
		{"bars without a line of dashes are text", "| a | b |\n| c |", []string{"| a | b |", "| c |"}},
		{"a line of dashes with other columns is text", "| a | b |\n|---|", []string{"| a | b |", "|---|"}},
		{"tables in lists", "- | a |\n  |---|\n  | 1 |", []string{"• a", "  ─", "  1"}},

		{"wide characters are counted", strings.Repeat("語", 20), []string{strings.Repeat("語", 15), strings.Repeat("語", 5)}},
		{"lines break between wide characters", "ab " + strings.Repeat("語", 15), []string{"ab " + strings.Repeat("語", 13), "語語"}},
		{"joined characters stay together", strings.Repeat("👩\u200d👩\u200d👧", 16), []string{strings.Repeat("👩\u200d👩\u200d👧", 15), "👩\u200d👩\u200d👧"}},
		{"bad bytes are shown as such", "a\xffb", []string{"a\uFFFDb"}},
		{"half a sequence for the terminal does nothing", "a \x1b]0;title b", []string{"a ␛]0;title b"}},
		{"colours are left out", "a \x1b[31mred\x1b[0m b", []string{"a red b"}},
		{"references to control characters are shown", "a &#27;[31m &#x202e; [b](c&#7;d)", []string{`a ␛[31m \u202e b (c␇d)`}},
	} {
		if got := bareLines(md.lines(test.text)); !slices.Equal(got, test.want) {
			t.Errorf("%s: lines of %q = %q, want %q", test.rule, test.text, got, test.want)
		}
	}
}

// bareLines returns lines without styles.
func bareLines(lines []string) []string {
	var bare []string
	for _, l := range lines {
		bare = append(bare, ansi.Strip(l))
	}
	return bare
}

// Each line ends its own styles. The styles depend on the background.
func TestMarkdownStyles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, text, dark, light string
	}{
		{"strong", "**a**", "\x1b[1ma\x1b[m", ""},
		{"emphasis in strong", "**a *b***", "\x1b[1ma \x1b[m\x1b[1;3mb\x1b[m", ""},
		{"struck", "~~a~~", "\x1b[9ma\x1b[m", ""},
		{"code has a colour instead of backticks", "`a`", "\x1b[96ma\x1b[m", "\x1b[36ma\x1b[m"},
		{"headings", "# a `b`", "\x1b[1;94m# a \x1b[m\x1b[1;96mb\x1b[m", "\x1b[1;34m# a \x1b[m\x1b[1;36mb\x1b[m"},
		{"each line has its style", "**a\nb**", "\x1b[1ma\x1b[m\n\x1b[1mb\x1b[m", ""},
		{"links", "[a](b)", "\x1b[4;94ma\x1b[m\x1b[2m (b)\x1b[m", "\x1b[4;34ma\x1b[m\x1b[2m (b)\x1b[m"},
		{"quotes", "> a", "\x1b[2m│ \x1b[ma", ""},
		{"code in a known language", "```go\nreturn 1 // x\n```", "  \x1b[95mreturn\x1b[m \x1b[96m1\x1b[m \x1b[2;3m// x\x1b[m", "  \x1b[35mreturn\x1b[m \x1b[36m1\x1b[m \x1b[2;3m// x\x1b[m"},
		{"code in another language", "```elvish\nreturn 1 // x\n```", "  return 1 // x", ""},
	} {
		for _, light := range []bool{false, true} {
			md := &markdown{profile: colorprofile.ANSI}
			md.fit(30, light)
			want := test.dark
			if light && test.light != "" {
				want = test.light
			}
			if got := strings.Join(md.lines(test.text), "\n"); got != want {
				t.Errorf("%s (light: %t): %q, want %q", test.rule, light, got, want)
			}
		}
	}
}

// A new width or background renders the last block again.
func TestMarkdownFit(t *testing.T) {
	t.Parallel()
	md := &markdown{profile: colorprofile.ANSI}
	md.fit(30, false)
	wide, again := md.lines("`one two`"), md.lines("`one two`")
	if &wide[0] != &again[0] {
		t.Error("the last block is rendered again without need")
	}
	md.fit(4, false)
	narrow := md.lines("`one two`")
	md.fit(4, true)
	light := md.lines("`one two`")
	if len(wide) != 1 || len(narrow) != 2 || slices.Equal(narrow, light) {
		t.Errorf("wide %q, narrow %q, light %q", wide, narrow, light)
	}
}

// markdownText generates Markdown with words that occur once, and returns these words too.
func markdownText(t *rapid.T) (text string, words []string) {
	word := func() string {
		w := fmt.Sprintf("w%dx", len(words))
		words = append(words, w)
		return w
	}
	phrase := func() string {
		var b strings.Builder
		for range rapid.IntRange(1, 6).Draw(t, "words") {
			form := rapid.SampledFrom([]string{
				"%s", "%s", "%s", "*%s*", "**%s**", "~~%s~~", "`%s`", "_%s_", "[%s](b)", "[a](%s)", "![%s](c)", "<%s>", "<b>%s</b>", "\\*%s", "&lt;%s", "語%s", "😀 %s",
				"**%s", "[%s", "[%s][1]", "![a](b \"%s\")", "`` %s", "%s|", "(%s)", "https://%s/", "~%s~",
			}).Draw(t, "form")
			fmt.Fprintf(&b, form+" ", word())
		}
		return strings.TrimSpace(b.String())
	}
	var b strings.Builder
	for range rapid.IntRange(1, 8).Draw(t, "blocks") {
		prefix := rapid.SampledFrom([]string{"", "", "> ", "- ", "  ", "    ", "> > - ", "1. - > ", "- - - - - - - - "}).Draw(t, "prefix")
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			fmt.Fprintf(&b, "%s# %s\n", prefix, phrase())
		case 1:
			fmt.Fprintf(&b, "%s%s\n---\n", prefix, phrase())
		case 2:
			fmt.Fprintf(&b, "%s12. %s\n", prefix, phrase())
		case 3:
			fence := rapid.SampledFrom([]string{"```", "~~~", "```go", "```sh", "```diff"}).Draw(t, "fence")
			fmt.Fprintf(&b, "\n%s\n%s\n%s\n", fence, phrase(), fence[:3])
		case 4:
			columns := rapid.IntRange(1, 6).Draw(t, "columns")
			b.WriteString("\n")
			for row := range rapid.IntRange(2, 4).Draw(t, "rows") {
				for range columns + rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "more")*min(row, 1) {
					fmt.Fprintf(&b, "| %s ", strings.ReplaceAll(phrase(), "|", ""))
				}
				b.WriteString("|\n")
				if row == 0 {
					b.WriteString(strings.Repeat("|:-:", columns) + "|\n")
				}
			}
		case 5:
			fmt.Fprintf(&b, "[%s]: %s\n", word(), word())
		case 6:
			fmt.Fprintf(&b, "- [ ] %s\n", phrase())
		default:
			fmt.Fprintf(&b, "%s%s\n", prefix, phrase())
		}
		b.WriteString(rapid.SampledFrom([]string{"", "\n"}).Draw(t, "gap"))
	}
	return b.String(), words
}

// No word of a text is lost, and no line is too wide, whatever the text is. A word can be
// broken only in code, because lines of code break anywhere.
func TestMarkdownLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, words := markdownText(t)
		profile := rapid.SampledFrom([]colorprofile.Profile{colorprofile.NoTTY, colorprofile.TrueColor}).Draw(t, "profile")
		md := &markdown{profile: profile}
		md.fit(rapid.IntRange(19, 80).Draw(t, "width"), rapid.Bool().Draw(t, "light"))
		lines := md.lines(text)
		sound(t, text, md.width, lines)
		out := ansi.Strip(strings.Join(lines, "\n"))
		broken := strings.NewReplacer("\n", "", " ", "", "│", "").Replace(out)
		code := strings.Contains(text, "```") || strings.Contains(text, "~~~") || strings.Contains(text, "    ")
		for _, w := range words {
			if !strings.Contains(out, w) && !(code && strings.Contains(broken, w)) {
				t.Fatalf("%s is lost, in %d columns:\n%s\n\nbecame\n\n%s", w, md.width, text, out)
			}
		}
	})
}

// ownStyles matches the sequences that the renderer itself writes.
var ownStyles = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// sound checks that no line is too wide, and that no control character reaches the terminal
// except for styles.
func sound(t rapid.TB, text string, width int, lines []string) {
	t.Helper()
	for _, l := range lines {
		if got := ansi.StringWidth(l); got > width {
			t.Fatalf("a line has %d columns, want at most %d: %q\nof %q", got, width, l, text)
		}
		for _, r := range ownStyles.ReplaceAllString(l, "") {
			if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e {
				t.Fatalf("%q reaches the terminal: %q\nof %q", r, l, text)
			}
		}
	}
}

// Any text can be rendered, at any width, and styles in the text never reach the terminal.
func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{
		"# a\n\n- b\n  - c\n\n> d\n\n```go\nx := 1\n```\n", "| a | b |\n|:-:|--:|\n| 1 | 2 | 3 |", "|\n|-|\n", "~~a~~ **b *c* d** `e", "&#27;[31m &#x9b;31m &#0; &lt;",
		"\x1b[31m\x1b]8;;x\x07a\x1b]8;;\x07", "[a](b \"c\") ![d](e) [f]: g", strings.Repeat("> ", 200) + "a", strings.Repeat("- ", 200) + "a", "1234567890. a", "\t\ta\r\nb\rc",
		"語\u0301👩\u200d👩\u200d👧🇩🇪\ufe0f", "**\u0301a**\u200d**b**", "```diff\n+a\n-b\n@@ c\n```", "```rust\nfn a<'b>(c: &'b str) { '\\'' }\n```", "a\xff\xfe\n===", "    a\n\n\tb", "***\n___\n---", "🇩**🇪**🇫",
	} {
		f.Add(seed, 30)
	}
	f.Fuzz(func(t *testing.T, text string, width int) {
		if len(text) > openBytes {
			return
		}
		md := &markdown{profile: colorprofile.TrueColor}
		md.fit(2+max(width, -width, 0)%100, width%2 == 0)
		sound(t, text, md.width, md.lines(text))
	})
}

// The text is shown as it is if the parser panics.
func TestMarkdownSurvivesItsParser(t *testing.T) {
	t.Parallel()
	var md markdown
	md.fit(20, false)
	if got := md.guarded("a *b*", func() []line { panic("fault") }); len(got) != 1 || got[0].String() != "a *b*" {
		t.Errorf("lines = %q, want the text", got)
	}
}
