//go:build unix

package skill_test

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/belay-run/belay/skill"
)

func TestAPipeDoesNotHoldLoadingUp(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"good/SKILL.md": md("name: good", "description: x"), "pipe/x.txt": ""})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe", "SKILL.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
	wants(t, "problems", told(dir, catalog.Problems()), []string{"pipe/SKILL.md:1: it is not a regular file"})
	if got := names(catalog.List()); !slices.Equal(got, []string{"good"}) {
		t.Errorf("skills = %q, want good", got)
	}
}
