package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Only a database that Belay made is removed, with the files that Belay makes beside it. What a link leads to stays.
func TestRemovesOnlyStores(t *testing.T) {
	t.Parallel()
	database := func(mark string) string { return "SQLite format 3\x00" + strings.Repeat("\x00", 52) + mark + "rest" }
	for _, test := range []struct {
		rule, content string
		link          bool
		want          []string
	}{
		{"a store", database("blay"), false, []string{"[a].db", "[a].db-wal", "[a].db.v3.bak", "[a].db.v3.bak.part"}},
		{"a memory file", database("bmem"), false, []string{"[a].db", "[a].db-wal", "[a].db.v3.bak", "[a].db.v3.bak.part"}},
		{"a database of another program", database("\x00\x00\x00\x00"), false, nil},
		{"a text", strings.Repeat("blay", 40), false, nil},
		{"an empty file", "", false, nil},
		{"a link to a store", database("blay"), true, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write := func(name, content string) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"[a].db-wal", "[a].db.v3.bak", "[a].db.v3.bak.part", "[a].db-notes.txt", "[a].db.v3.bak.mine", "[a].db.vx.bak", "a.db-wal"} {
				write(name, "text")
			}
			if test.link {
				write("real", test.content)
				if err := os.Symlink(filepath.Join(dir, "real"), filepath.Join(dir, "[a].db")); err != nil {
					if runtime.GOOS == "windows" {
						t.Skip(err) // only some users of Windows may make links
					}
					t.Fatal(err)
				}
			} else {
				write("[a].db", test.content)
			}
			var l left
			l.store("store", filepath.Join(dir, "[a].db"))
			var got []string
			for _, r := range l.all {
				if r.remove != nil {
					got = append(got, filepath.Base(r.Path))
				} else if r.Remedy == "" {
					t.Errorf("%s has no remedy", r.Path)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) || len(l.all) == 0 {
				t.Errorf("removes %q of %d, want %q", got, len(l.all), test.want)
			}
		})
	}
}
