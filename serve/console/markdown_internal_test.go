package console

import (
	"strings"
	"testing"
)

// The text of a model is shown as Markdown. Nothing in it becomes HTML of its own, a script or
// a request to another server.
//
// SPEC V-06
func TestMarkdown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"emphasis":       {"a **b** `c`", "<p>a <strong>b</strong> <code>c</code></p>"},
		"table":          {"x\n| a | b |\n|---|---|\n| 1 | **2** |", "<p>x</p><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td><strong>2</strong></td></tr></table>"},
		"short row":      {"| a | b |\n|---|---|\n| 1 |", "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td></tr></table>"},
		"large table":    {strings.Repeat("|a", 300) + "\n" + strings.Repeat("|-", 300) + "\n" + strings.Repeat("|b\n", 300), "<p>|a|a|a"},
		"HTML in a line": {"a <b onclick=x>c</b>", "<p>a &lt;b onclick=x&gt;c&lt;/b&gt;</p>"},
		"HTML block":     {"<script>alert(1)</script>", "<pre>&lt;script&gt;alert(1)&lt;/script&gt;</pre>"},
		"script address": {"[a](javascript:alert(1))", `<p><a href="">a</a></p>`},
		"image":          {"![p](https://example.com/p.png)", `<p><span class="image">image: p (https://example.com/p.png)</span></p>`},
		"HTML in a cell": {"| <i>a</i> |\n|---|\n| <script>x</script> |", "<table><tr><th>&lt;i&gt;a&lt;/i&gt;</th></tr><tr><td>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			if err := markdown(c.text).Render(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(b.String()); !strings.HasPrefix(got, c.want) || strings.Contains(got, "<script") {
				t.Errorf("%q becomes\n%s\nwant\n%s", c.text, got, c.want)
			}
		})
	}
}

// A diff has the line numbers of both sides.
func TestDiffLines(t *testing.T) {
	t.Parallel()
	got := diffLines("--- a\n+++ b\n@@ -3,2 +3,3 @@\n same\n-old\n+new\n+more\n\\ No newline at end of file\n")
	want := []diffLine{{"hunk", "", "", "", "@@ -3,2 +3,3 @@"}, {"", "3", "3", "", "same"}, {"del", "4", "", "−", "old"}, {"add", "", "4", "+", "new"}, {"add", "", "5", "+", "more"}, {"hunk", "", "", "", "No newline at end of file"}}
	if len(got) != len(want) {
		t.Fatalf("the lines are %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}
