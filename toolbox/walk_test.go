package toolbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/toolbox"
)

func TestList(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	for _, name := range []string{"b.txt", "a/one.go", "a/deep/er/two.go", ".git/config", ".github/ci.yml", "out/x.bin"} {
		k.put(name, "x")
	}
	k.put(".gitignore", "out/\n")
	if got, want := k.ok("list", in{}), "./\n  .github/\n    ci.yml\n  .gitignore\n  a/\n    deep/\n    one.go\n  b.txt\n"; got != want {
		t.Errorf("list = %q, want %q", got, want)
	}
	if got, want := k.ok("list", in{"path": "a", "depth": 1}), "a/\n  deep/\n  one.go\n"; got != want {
		t.Errorf("list a = %q, want %q", got, want)
	}
	has(t, k.ok("list", in{"all": true}), "  out/\n    x.bin\n")
	has(t, k.ok("list", in{"path": "out"}), "x.bin") // shown, because the call names it
	k.put("logs/.gitignore", "*\n")
	has(t, k.ok("list", in{"path": "logs"}), "the directory is empty", "set all to see it")
	k.fails(belay.ClassInvalid, "list", in{"path": "b.txt"}, "is a file of 1 byte")
	k.fails(belay.ClassNotFound, "list", in{"path": "none"}, "does not exist")
}

func TestListIsBounded(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	for i := range 300 {
		k.put(fmt.Sprintf("big/f%03d", i), "")
	}
	for i := range 12 {
		for j := range 100 {
			k.put(fmt.Sprintf("many/d%02d/f%02d", i, j), "")
		}
	}
	r := k.call("list", in{"depth": 9})
	has(t, r.Text, "more than 200 entries", "many/", "the first 1000 entries")
	if v := view[toolbox.ListView](t, r); v.Entries != 1000 || !v.Cut {
		t.Errorf("view = %+v", v)
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	files := []string{"main.go", "a/x.go", "a/x_test.go", "a/b/y.ts", "a/b/y.js", "out/gen.go", "a/{odd}.go"}
	for i, name := range files {
		k.put(name, "x")
		when := time.Unix(int64(1_000_000+i), 0)
		if err := os.Chtimes(filepath.Join(k.dir, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	k.put(".gitignore", "out/\n")
	for _, test := range []struct {
		rule  string
		input in
		want  string
	}{
		{"a name is matched at any depth, the last changed first", in{"pattern": "*.go"}, "a/{odd}.go a/x_test.go a/x.go main.go"},
		{"a path is matched as a whole", in{"pattern": "a/*.go"}, "a/{odd}.go a/x_test.go a/x.go"},
		{"two stars are any directories", in{"pattern": "a/**/*.{ts,js}"}, "a/b/y.js a/b/y.ts"},
		{"two stars are no directory too", in{"pattern": "**/main.go"}, "main.go"},
		{"a pattern is relative to path", in{"pattern": "b/*", "path": "a"}, "a/b/y.js a/b/y.ts"},
		{"what is ignored can be asked for", in{"pattern": "*.go", "all": true, "limit": 1}, "a/{odd}.go [the 1 most recently changed of 5 files]"},
		{"a limit keeps the last changed", in{"pattern": "**/*.go", "limit": 2}, "a/{odd}.go a/x_test.go [the 2 most recently changed of 4 files]"},
		{"an absolute pattern inside is relative", in{"pattern": k.dir + "/a/*_test.go"}, "a/x_test.go"},
		{"a dot is nothing", in{"pattern": "./main.*"}, "main.go"},
		{"nothing is said", in{"pattern": "*.rs"}, "No file matches *.rs."},
	} {
		if got := strings.ReplaceAll(k.ok("glob", test.input), "\n", " "); got != test.want {
			t.Errorf("%s: %v = %s, want %s", test.rule, test.input, got, test.want)
		}
	}
	k.fails(belay.ClassInvalid, "glob", in{"pattern": "a["}, "not a pattern")
	k.fails(belay.ClassInvalid, "glob", in{"pattern": "*", "path": "main.go"}, "not a directory")
	v := view[toolbox.GlobView](t, k.call("glob", in{"pattern": "*.go", "limit": 1}))
	if v.Kind != "glob" || v.Total != 4 || !slices.Equal(v.Files, []string{"a/{odd}.go"}) {
		t.Errorf("view = %+v", v)
	}
}

// ignoreCases have .gitignore files and paths to check. The keys of files are directories.
// A path of a directory ends in a slash.
var ignoreCases = []struct {
	rule  string
	files map[string]string
	paths []string
}{
	{"a name is ignored at any depth", map[string]string{".": "node_modules\n*.log\n"}, []string{"node_modules/x", "a/node_modules/x", "a.log", "a/b.log", "log", "a.logs"}},
	{"a slash at the end means a directory", map[string]string{".": "build/\n"}, []string{"build/x", "a/build/x", "build2/x"}},
	{"a file of that name is no directory", map[string]string{".": "build/\n"}, []string{"build", "a/build"}},
	{"a slash at the start or within ties it down", map[string]string{".": "/top\na/b\n"}, []string{"top", "x/top", "a/b", "x/a/b"}},
	{"what comes later counts", map[string]string{".": "*.txt\n!keep.txt\nkeep.txt\n!a/keep.txt\n"}, []string{"x.txt", "keep.txt", "a/keep.txt"}},
	{"what is in an ignored directory stays ignored", map[string]string{".": "out/\n!out/keep\n"}, []string{"out/keep", "out/x"}},
	{"what is in a directory, and not the directory", map[string]string{".": "out/**\n!out/keep\n"}, []string{"out/keep", "out/x", "out/sub/keep"}},
	{"two stars", map[string]string{".": "**/foo\na/**/z\n**/c/d\n"}, []string{"foo", "x/foo", "a/z", "a/b/z", "a/b/c/z", "x/a/z", "c/d", "x/c/d", "x/c/e"}},
	{"a nearer file counts more", map[string]string{".": "*.gen\n", "sub": "!*.gen\nlocal\n"}, []string{"x.gen", "sub/x.gen", "sub/local", "local", "sub/deep/x.gen"}},
	{"a nearer file's paths begin there", map[string]string{"sub": "/top\nb/c\n"}, []string{"top", "sub/top", "sub/x/top", "sub/b/c", "b/c"}},
	{"comments, blanks and escapes", map[string]string{".": "# no\n\n\\#yes\n\\!yes\nend \nkept\\ \n"}, []string{"# no", "#yes", "!yes", "end", "end ", "kept ", "kept"}},
	{"classes", map[string]string{".": "[ab].c\n[!x].h\n?.q\n"}, []string{"a.c", "c.c", "a.h", "x.h", "z.q", "zz.q"}},
	{"braces are braces", map[string]string{".": "{a,b}*\n"}, []string{"a1", "{a,b}1"}},
	{"a star does not cross a slash", map[string]string{".": "a/*\n!a/k\nx*y/z\n"}, []string{"a/b", "a/k", "xy/z", "x/y/z", "x1y/z"}},
	{"line ends of two characters", map[string]string{".": "*.o\r\nout/\r\n"}, []string{"x.o", "out/y"}},
	{"all but some", map[string]string{".": "/*\n!/src\n!.gitignore\n"}, []string{"x", "src/y", "src", "lib/z"}},
}

// The same files are excluded as in git.
func TestIgnoreAsGitDoes(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatalf("what is ignored is compared with what git ignores: install git: %v", err)
	}
	for _, test := range ignoreCases {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := func(args ...string) error {
				cmd := exec.CommandContext(t.Context(), git, args...)
				cmd.Dir = dir
				cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
				return cmd.Run()
			}
			if err := run("init", "-q"); err != nil {
				t.Fatal(err)
			}
			for where, text := range test.files {
				if err := os.MkdirAll(filepath.Join(dir, where), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, where, ".gitignore"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range test.paths {
				want := run("check-ignore", "-q", "--no-index", "--", name) == nil
				if got := toolbox.Ignored(test.files, name); got != want {
					t.Errorf("%q: ignored = %t, git says %t", name, got, want)
				}
			}
		})
	}
}

func TestIgnore(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.put(".gitignore", "*.log\n/build/\n")
	k.put("sub/.gitignore", "!keep.log\n")
	k.put(".git/info/exclude", "private\n")
	for _, name := range []string{"a.log", "build/x", "sub/keep.log", "sub/drop.log", "private", "sub/build/x", "shown"} {
		k.put(name, "needle\n")
	}
	want := "shown\nsub/build/x\nsub/keep.log"
	if got := k.ok("grep", in{"pattern": "needle", "mode": "files"}); got != want {
		t.Errorf("grep = %q, want %q", got, want)
	}
	// In a subdirectory, the .gitignore files of the directories above also apply.
	if got := k.ok("grep", in{"pattern": "needle", "mode": "files", "path": "sub"}); got != "sub/build/x\nsub/keep.log" {
		t.Errorf("grep in sub = %q", got)
	}
	// A directory that the call names is searched even if .gitignore excludes it.
	has(t, k.ok("grep", in{"pattern": "needle", "path": "build"}), "build/x")
	has(t, k.ok("grep", in{"pattern": "needle", "path": "a.log"}), "a.log")
	if got := k.ok("grep", in{"pattern": "needle", "mode": "files", "all": true}); strings.Count(got, "\n") != 6 {
		t.Errorf("grep all = %q, want 7 files", got)
	}
}

func FuzzIgnore(f *testing.F) {
	for _, test := range ignoreCases {
		for _, text := range test.files {
			f.Add(text, test.paths[0])
		}
	}
	f.Fuzz(func(t *testing.T, rules, name string) {
		name = strings.Trim(filepath.ToSlash(filepath.Clean(name)), "/")
		got := toolbox.Ignored(map[string]string{".": rules}, name)
		if again := toolbox.Ignored(map[string]string{".": rules + "\n# end\n"}, name); again != got {
			t.Errorf("a comment changes the answer for %q from %t to %t", name, got, again)
		}
		if toolbox.Ignored(map[string]string{".": rules + "\n!**\n!**/*\n"}, "top") {
			t.Error("a later rule that takes everything back did not")
		}
	})
}
