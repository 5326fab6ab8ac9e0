package toolbox_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/toolbox"
)

func TestPattern(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern string
		yes, no string // names, separated by spaces
	}{
		{"a/*.go", "a/x.go a/.go", "a/b/x.go x.go a/x.gox"},
		{"a/**/z", "a/z a/b/z a/b/c/z", "az b/a/z a/bz"},
		{"**/z", "z a/z a/b/z", "az a/bz"},
		{"a/**", "a/b a/b/c", "a ab/c"},
		{"a/b?c", "a/bxc a/béc", "a/b/c a/bc"},
		{"a/{b,c/d}.go", "a/b.go a/c/d.go", "a/{b,c/d}.go a/c.go"},
		{"a/{b,{c,d}}", "a/b a/c a/d", "a/e"},
		{"{a,**/b}/c", "a/c b/c x/y/b/c", "x/a/c"},
		{"a/[b-d]", "a/b a/d", "a/e a/-"},
		{"a/[!b-d]", "a/e a/-", "a/c"},
		{"a/[]x]", "a/] a/x", "a/y"},
		{`a/[\]x\d]`, "a/] a/x a/d", "a/1"},
		{"a/[[:digit:]x]", "a/1 a/x", "a/y"},
		{"a[!b]c", "axc", "a/c abc"},
		{`a/\*\[\{`, "a/*[{", "a/b[{"},
		{"a/x**y", "a/xy a/xzzy", "a/x/y"},
		{"a/é+(.)|$", "a/é+(.)|$", "a/éé"},
	} {
		match, err := toolbox.Pattern(test.pattern)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		for name := range strings.FieldsSeq(test.yes) {
			if !match(name) {
				t.Errorf("%s does not match %s", test.pattern, name)
			}
		}
		for name := range strings.FieldsSeq(test.no) {
			if match(name) {
				t.Errorf("%s matches %s", test.pattern, name)
			}
		}
	}
	for _, bad := range []string{"a[", "a[]", "a/{b", "a/{b,{c}", "[z-a]", `a\`, "[[:nonsense:]]"} {
		if _, err := toolbox.Pattern(bad); err == nil {
			t.Errorf("%s is taken for a pattern", bad)
		}
	}
}

// A malicious pattern does not slow down matching.
func TestPatternThatWouldTakeForEver(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{strings.Repeat("**/*a", 30) + "b", strings.Repeat("*a", 100) + "b", strings.Repeat("**/", 60) + "b", strings.Repeat("{a,*a}", 30) + "b"} {
		match, err := toolbox.Pattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan bool, 1)
		go func() { done <- match(strings.Repeat("aa/", 100) + "a") }() // ends with the match
		select {
		case matched := <-done:
			if matched {
				t.Errorf("%s matches", pattern)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s takes for ever", pattern)
		}
	}
}

func TestNeedles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern string
		want    string // the needles, sorted; i: means that case is ignored
	}{
		{"hello", "hello"},
		{`func\s+name\b`, "func"},
		{`(?i)func\s+Zebra`, "i:zebra"},
		{"foo|quux", "foo quux"},
		{"(foo)+bar?", "foo"},
		{"x{2}", "x"},
		{"x{0,2}|y", ""},
		{"x*", ""},
		{`\w+`, ""},
		{"(?i)kisses", "i:e"},
		{"(?i)é", ""},
		{"é", "é"},
		{"a\ufffdbc", "bc"},
	} {
		got := toolbox.Needles(test.pattern)
		slices.Sort(got)
		if text := strings.Join(got, " "); text != test.want && (test.pattern != "(?i)kisses" || text != "i:i") {
			t.Errorf("%s: needles %q, want %q", test.pattern, text, test.want)
		}
	}
}
