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
	if got := near.Hint("modle", []string{"mode", "model"}); got != ` (did you mean "model"?)` { //nolint:misspell // that is the point
		t.Errorf("Hint = %q, want the name of the same length", got)
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	known := []string{"help", "compact", "review", "go", "stop"}
	for name, want := range map[string]string{
		"hlep": "help", "compct": "compact", "REVIEW": "review", "reviewer": "review", "reviewers": "", "usr": "", "tmp": "", "x": "", "to": "go", "gone": "", "": "",
	} {
		if got := near.Within(name, known, 2); got != want {
			t.Errorf("Within(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestSlash(t *testing.T) {
	t.Parallel()
	known := []string{"help", "compact", "review", "stop"}
	for name, want := range map[string]string{
		"hlep":   "there is no /hlep (did you mean /help?): the message goes to the model unchanged",
		"Compct": "there is no /Compct (did you mean /compact?): the message goes to the model unchanged",
		"help":   "", "": "", "deploy": "",
	} {
		if got := near.Slash(name, known); got != want {
			t.Errorf("Slash(%q) = %q, want %q", name, got, want)
		}
	}
}
