package near_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/near"
)

func TestNames(t *testing.T) {
	t.Parallel()
	known := []string{"read", "write", "write_file", "Edit", "grep", "glob", "日本"}
	for _, test := range []struct {
		name string
		n    int
		want []string
	}{
		{"raed", 3, []string{"read"}},
		{"wrte", 3, []string{"write"}},
		{"write", 1, []string{"write"}},
		{"file", 3, []string{"write_file"}},
		{"EDIT", 3, []string{"Edit"}},
		{"gro", 3, []string{"glob", "grep"}},
		{"日本語", 3, []string{"日本"}},
		{"shell", 3, nil},
		{"x", 3, nil},
		{"", 3, nil},
		{"read", 0, nil},
		{strings.Repeat("write", 40), 3, nil},
	} {
		if got := near.Names(test.name, known, test.n); !slices.Equal(got, test.want) {
			t.Errorf("Names(%q, %d) = %q, want %q", test.name, test.n, got, test.want)
		}
	}
	if got := near.Names("read", []string{""}, 1); len(got) > 0 {
		t.Errorf("nothing is like an empty name, not %q", got)
	}
}

func TestHint(t *testing.T) {
	t.Parallel()
	if got := near.Hint("raed", []string{"write", "read"}); got != ` (did you mean "read"?)` {
		t.Errorf("Hint = %q", got)
	}
	if got := near.Hint("shell", []string{"write", "read"}); got != "" {
		t.Errorf("Hint = %q, want nothing", got)
	}
}
