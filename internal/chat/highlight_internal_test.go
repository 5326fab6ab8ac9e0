package chat

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// marked returns code with a letter and brackets around each part that has a colour: k for
// keywords, s for strings, n for numbers, c for comments.
func marked(language, code string) string {
	c := coloursFor(false)
	c.number, c.section = style{colour: 1}, style{colour: 2} // colours that no other style has
	names := map[style]string{{}: "", c.keyword: "k", c.quoted: "s", c.number: "n", c.commented: "c", c.removed: "-", c.section: "@", {bold: true}: "b"}
	var b strings.Builder
	for _, s := range highlight(language, code, &c) {
		if name := names[s.style]; name != "" {
			b.WriteString(name + "[" + s.text + "]")
		} else {
			b.WriteString(s.text)
		}
	}
	return b.String()
}

func TestHighlight(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, language, code, want string }{
		{"go", "go", "func a(b string) { return `c\\` + \"d\\\"\" + 'e' } // f", "k[func] a(b k[string]) { k[return] s[`c\\`] + s[\"d\\\"\"] + s['e'] } c[// f]"},
		{"longer comments", "go", "/* a\nb */ x", "c[/* a\nb */] x"},
		{"a comment that is not closed yet", "go", "x /* a\nb", "x c[/* a\nb]"},
		{"a string that is not closed yet", "go", "a := \"b\nreturn", "a := \"b\nk[return]"},
		{"names that contain keywords", "go", "returned ifs _for for2", "returned ifs _for for2"},
		{"numbers", "go", "a1 := 10 + 0xff", "a1 := n[10] + n[0xff]"},
		{"python", "python", "def a(): # b\n  \"\"\"c\n  'd'\"\"\" + 'e'", "k[def] a(): c[# b]\n  s[\"\"\"c\n  'd'\"\"\"] + s['e']"},
		{"javascript", "js", "const a = `b\n\\` ${c}`; // d", "k[const] a = s[`b\n\\` ${c}`]; c[// d]"},
		{"typescript", "ts", "let a: number = null", "k[let] a: k[number] = k[null]"},
		{"shell", "bash", "if [ $# -gt 2 ]; then echo '\\' \"a\" # b", "k[if] [ $# -gt n[2] ]; k[then] k[echo] s['\\'] s[\"a\"] c[# b]"},
		{"the length of a variable is no comment", "sh", "echo ${#a}", "k[echo] ${#a}"},
		{"json", "json", `{"a": [1, true, "b\"c"]}`, `{s["a"]: [n[1], k[true], s["b\"c"]]}`},
		{"yaml", "yaml", "a: true # b\nc: 'd#e'\nf: g#h", "a: k[true] c[# b]\nc: s['d#e']\nf: g#h"},
		{"an apostrophe in yaml", "yaml", "a: don't\nb: no", "a: don't\nb: k[no]"},
		{"sql in capitals", "sql", "SELECT a FROM b WHERE c = 'it''s' -- d", "k[SELECT] a k[FROM] b k[WHERE] c = s['it''s'] c[-- d]"},
		{"rust lifetimes are no strings", "rust", "fn a<'b>(c: &'b str) { 'd'; '\\'' }", "k[fn] a<'b>(c: &'b k[str]) { s['d']; s['\\''] }"},
		{"java", "java", "int a = 'b'; // c", "k[int] a = s['b']; c[// c]"},
		{"c", "c", "return 0; /* a */", "k[return] n[0]; c[/* a */]"},
		{"diff", "diff", "--- a\n+++ b\n@@ -1 +1 @@\n-c\n+d\n e", "b[--- a\n]b[+++ b\n]@[@@ -1 +1 @@\n]-[-c\n]s[+d\n] e"},
		{"names of languages in capitals", "Go", "nil", "k[nil]"},
		{"other languages", "brainfuck", "return 1 // x", "return 1 // x"},
		{"no language", "", "return 1 // x", "return 1 // x"},
	} {
		if got := marked(test.language, test.code); got != test.want {
			t.Errorf("%s: %q, want %q", test.rule, got, test.want)
		}
	}
}

// Highlighting adds colours and does not change the code.
func TestHighlightKeepsCode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		language := rapid.SampledFrom([]string{"go", "py", "ts", "sh", "json", "yaml", "sql", "rust", "java", "c", "diff", "other"}).Draw(t, "language")
		code := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
			"\"", "'", "`", "\"\"\"", "'''", "\\", "\n", " ", "#", "//", "/*", "*/", "--", "+", "a", "return", "1", "語", "\xff", "(", "@@",
		})).Draw(t, "code"), "")
		c := coloursFor(true)
		var b strings.Builder
		for _, s := range highlight(language, code, &c) {
			b.WriteString(s.text)
		}
		if b.String() != code {
			t.Errorf("%s: %q became %q", language, code, b.String())
		}
	})
}
