package assembly

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/skill"
)

// Belay reports once that a skill file can no longer be loaded, and once that it can be
// loaded again. It does not report a removed file.
//
// SPEC C-13
func TestSkillsThatCannotBeLoadedAnyMoreAreShown(t *testing.T) {
	t.Parallel()
	const sound, broken = "---\nname: tidy\ndescription: tidies\n---\nTidy.\n", "---\nname: [tidy\n---\nTidy.\n"
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, "skills", name, "SKILL.md")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("tidy", sound)
	put("odd", broken) // this problem is already known
	var said strings.Builder
	a := New(&Options{Notify: func(n Notice) { fmt.Fprintf(&said, "warning=%t later=%t %s\n", n.Warning, n.Later, n) }})
	s := &config.Loaded{Project: dir}
	catalog := skill.NewCatalog(t.Context(), skill.Dir(filepath.Join(dir, "skills")))
	known := unloaded(catalog)
	for _, test := range []struct {
		rule   string
		change func()
		want   string
	}{
		{"what is known is not repeated", func() {}, ""},
		{"a skill that breaks", func() { put("tidy", broken) }, "warning=true later=true a skill cannot be loaded and is left out until you correct it: skills/tidy/SKILL.md:"},
		{"is shown once", func() {}, ""},
		{"a skill that is mended", func() { put("tidy", sound) }, "warning=false later=true skills/tidy/SKILL.md: the skill can be loaded again and is active\n"},
		{"a skill that is removed", func() {
			if err := os.RemoveAll(filepath.Join(dir, "skills", "odd")); err != nil {
				t.Fatal(err)
			}
		}, ""},
	} {
		test.change()
		catalog.Refresh(t.Context())
		said.Reset()
		known = a.tellSkills(s, known, unloaded(catalog))
		if got := said.String(); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: it says %q, want %q", test.rule, got, test.want)
		}
	}
}
