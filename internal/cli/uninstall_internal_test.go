package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/store/sqlite"
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

// A store that a program has open is named once, with the process, however often the projects and the settings name it. A program
// that was killed does not count.
//
// SPEC Q-03
func TestOpenStoreIsNamedOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), ".belay", "belay.db")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	var l left
	l.store("store", file)
	l.home(filepath.Dir(file))
	l.home(filepath.Dir(file))
	if len(l.all) != 1 || !slices.Equal(l.open, []string{file}) {
		t.Errorf("open are %q of %d", l.open, len(l.all))
	}
	if lines := l.openNow(); len(lines) != 1 || !strings.HasPrefix(lines[0], fmt.Sprintf("%s: open in process %d on ", file, os.Getpid())) {
		t.Errorf("it says %q", lines)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(file+"-holders", "ABC"), []byte("process 1 on a machine"), 0o600); err != nil { // left by a kill
		t.Fatal(err)
	}
	l = left{}
	l.store("store", file)
	if len(l.open) > 0 || !slices.ContainsFunc(l.all, func(r remnant) bool { return r.Path == file && r.remove != nil }) {
		t.Errorf("after a kill, open are %q of %v", l.open, l.all)
	}
}

// The settings of a project below a directory can name a database, and have mistakes. Both are listed, and the stores that can be
// found too.
//
// SPEC Q-03
func TestStoresOfOtherProjects(t *testing.T) {
	t.Parallel()
	project, user := t.TempDir(), t.TempDir()
	write := func(file, text string) string {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write(filepath.Join(user, "belay", "belay.yaml"), "store: postgres://belay:secret@db.example/belay\n")
	mistaken := write(filepath.Join(project, "belay.yaml"), "limits: {steps: many}\n")
	var l left
	l.named(project, user, []string{"BELAY_STORE=elsewhere.db"})
	got := make(map[string]string)
	for _, r := range l.all {
		got[r.Path] = r.Remedy
	}
	if len(got) != 2 || got["postgres://belay:xxxxx@db.example/belay"] == "" || !strings.Contains(got[mistaken], "mistakes") {
		t.Errorf("it lists %v", got)
	}
	write(mistaken, "store: data/belay.db\nlimits: {steps: many}\n")
	file := write(filepath.Join(project, "data", "belay.db"), "what somebody wrote")
	l = left{}
	l.named(project, user, []string{})
	if !slices.ContainsFunc(l.all, func(r remnant) bool { return r.Path == file }) {
		t.Errorf("it does not list the store: %v", l.all)
	}
}

// The manual pages are one line, and pages of other programs stay.
//
// SPEC Q-03
func TestRemovesOwnPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"belay.1", "belay-run.1", "belayer.1", "other.1"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := removePages(filepath.Join(dir, "belay*.1")); err != nil {
		t.Fatal(err)
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || !slices.Equal(names, []string{filepath.Join(dir, "belayer.1"), filepath.Join(dir, "other.1")}) {
		t.Errorf("%q stay, %v", names, err)
	}
}

// A program that a package manager installed is for the package manager to remove, also if it was started by a link beside links to
// its manual pages. What the install script copied is removed.
//
// SPEC Q-03
func TestWhoRemovesTheProgram(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, where string // below the prefix
		linked      bool
		remedy      string
	}{
		{"the install script's program is removed", "", false, ""},
		{"Homebrew's links are not removed", "Cellar/belay/0.1.0", true, "brew uninstall belay"},
		{"Homebrew's program is not removed", "Cellar/belay/0.1.0", false, "brew uninstall belay"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			prefix, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			started := filepath.Join(prefix, test.where, "bin", "belay")
			for _, name := range []string{"bin/belay", "share/man/man1/belay.1"} {
				file := filepath.Join(prefix, test.where, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
				if !test.linked {
					continue
				}
				link := filepath.Join(prefix, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(file, link)); err != nil {
					if runtime.GOOS == "windows" {
						t.Skip(err) // only some users of Windows may make links
					}
					t.Fatal(err)
				}
				started = filepath.Join(prefix, "bin", "belay")
			}
			all := program(started)
			if len(all) == 0 {
				t.Fatal("nothing is found")
			}
			for _, r := range all {
				if r.Remedy != test.remedy || (r.remove == nil) != (test.remedy != "") {
					t.Errorf("%s: the remedy is %q", r.Path, r.Remedy)
				}
			}
		})
	}
}
