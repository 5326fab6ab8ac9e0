package toolbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/toolbox"
)

// The completion of paths offers the files that a person would look for.
//
// SPEC U-02
func TestFiles(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	for _, name := range []string{"main.go", "docs/chat.md", "build/out.bin", "docs/draft.tmp", ".git/HEAD", ".belay/hooks/a.yaml", "ü/名.txt"} {
		k.put(name, "x")
	}
	k.put(".gitignore", "build/\n")
	k.put("docs/.gitignore", "*.tmp\n")
	for most, want := range map[int]string{100: ".belay/hooks/a.yaml .gitignore docs/.gitignore docs/chat.md main.go ü/名.txt", 2: ".belay/hooks/a.yaml .gitignore"} {
		got, err := toolbox.Files(t.Context(), openRoot(t, k.dir), most)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("at most %d: %q (%v), want %q", most, got, err, want)
		}
		if !slices.IsSorted(got) {
			t.Errorf("%q is not sorted", got)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the user has gone on typing")
	cancel(gone)
	if _, err := toolbox.Files(ctx, openRoot(t, k.dir), 100); !errors.Is(err, gone) {
		t.Errorf("after a cancel the error is %v", err)
	}
}
