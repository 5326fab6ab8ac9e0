package diff_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/internal/diff"
)

// patch applies a unified diff. It returns an error if the diff does not fit.
func patch(before, diff string) (string, error) {
	lines := strings.SplitAfter(before, "\n")
	at := 0 // how many lines are used
	var out strings.Builder
	var last *string
	flush := func() {
		if last != nil {
			out.WriteString(*last)
		}
		last = nil
	}
	for n, line := range strings.SplitAfter(diff, "\n") {
		switch {
		case n < 2 && diff != "" || line == "":
			continue
		case strings.HasPrefix(line, "@@ "):
			flush()
			var from, count int
			if _, err := fmt.Sscanf(line, "@@ -%d,%d", &from, &count); err != nil {
				if _, err := fmt.Sscanf(line, "@@ -%d", &from); err != nil {
					return "", err
				}
				count = 1
			}
			if count == 0 {
				from++
			}
			for ; at < from-1; at++ {
				out.WriteString(lines[at])
			}
			continue
		case strings.HasPrefix(line, `\ `):
			*last = strings.TrimSuffix(*last, "\n")
			if *last == "" && lines[at-1] == "" {
				return "", fmt.Errorf("line %d marks a line that is not there", n)
			}
			continue
		}
		flush()
		text := line[1:]
		if line[0] != '+' {
			if got := lines[at]; got != text && got+"\n" != text {
				return "", fmt.Errorf("line %d of the diff is %q, line %d of the text %q", n, line, at+1, got)
			}
			at++
		}
		if line[0] != '-' {
			last = &text
		} else {
			last = new(string)
		}
	}
	flush()
	for ; at < len(lines); at++ {
		out.WriteString(lines[at])
	}
	return out.String(), nil
}

func checkDiff(t interface {
	Fatalf(format string, args ...any)
}, before, after string,
) {
	diff, added, removed := diff.Unified("f", "f", before, after)
	got, err := patch(before, diff)
	if err != nil || got != after {
		t.Fatalf("patch(%q) = %q, %v, want %q; the diff is\n%s", before, got, err, after, diff)
	}
	plus, minus := 0, 0
	for i, line := range strings.Split(diff, "\n") {
		if i > 1 && strings.HasPrefix(line, "+") {
			plus++
		}
		if i > 1 && strings.HasPrefix(line, "-") {
			minus++
		}
	}
	if plus != added || minus != removed {
		t.Fatalf("added %d and removed %d, but the diff has %d and %d:\n%s", added, removed, plus, minus, diff)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "+x\n", "-x\n", "@@ x\n", "d"}), 0, 40), func(lines []string) string {
			return strings.Join(lines, "")
		})
		checkDiff(t, text.Draw(t, "before"), text.Draw(t, "after"))
	})
}

func TestDiffOfTextsThatHaveNothingInCommon(t *testing.T) {
	t.Parallel()
	var before, after strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&before, "a%d\n", i)
		fmt.Fprintf(&after, "b%d\n", i)
	}
	checkDiff(t, "same\n"+before.String()+"end\n", "same\n"+after.String()+"end\n")
}

func TestDiffIsShort(t *testing.T) {
	t.Parallel()
	before := strings.Repeat("x\ny\n", 100)
	after := strings.Replace(before, "y\n", "new\ny\n", 50)
	if _, added, removed := diff.Unified("f", "f", before, after); added != 50 || removed != 0 {
		t.Errorf("added %d, removed %d, want 50 and 0", added, removed)
	}
}

func FuzzDiff(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nc\n")
	f.Add("a", "a\n")
	f.Add("", "a\n\n")
	f.Add("a\n@@ -1 +1 @@\n", "--- x\n+++ y\n")
	f.Fuzz(func(t *testing.T, before, after string) { checkDiff(t, before, after) })
}
