package toolbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/toolbox"
)

func TestWriteCreates(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	r := k.call("write", in{"path": "a/b/c.txt", "content": "one\ntwo"})
	if r.Text != "a/b/c.txt was created (2 lines)." || k.content("a/b/c.txt") != "one\ntwo" {
		t.Errorf("text = %q, content = %q", r.Text, k.content("a/b/c.txt"))
	}
	want := toolbox.ChangeView{
		Kind: "change", Path: "a/b/c.txt", Action: "created", Added: 2,
		Diff: "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n",
		Seen: "21066d108d5319ecb5a1fc4454f42ef22fc5f1c7df49c31d90294950e0ea8b2c", // sha256 of the content
	}
	if got := view[toolbox.ChangeView](t, r); got != want {
		t.Errorf("view = %+v, want %+v", got, want)
	}
	// A session counts as having read the content that it has written.
	has(t, k.ok("write", in{"path": "a/b/c.txt", "content": "three\n"}), "was overwritten (1 line)")
	k.ok("edit", in{"path": "a/b/c.txt", "old_string": "three", "new_string": "four"})
	if entries, err := os.ReadDir(filepath.Join(k.dir, "a", "b")); err != nil || len(entries) != 1 {
		t.Errorf("entries = %v, %v: want no temporary file left", entries, err)
	}
}

func TestWriteNeedsARead(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.put("f.txt", "old\n")
	write := in{"path": "f.txt", "content": "new\n"}
	edit := in{"path": "f.txt", "old_string": "old", "new_string": "new"}

	k.fails(belay.ClassDenied, "write", write, "was not read in this session", "Read it first")
	k.fails(belay.ClassDenied, "edit", edit, "was not read in this session")
	k.callAs("another", "read", in{"path": "f.txt"})
	k.fails(belay.ClassDenied, "write", write, "was not read")

	k.ok("read", in{"path": "f.txt"})
	k.put("f.txt", "old, and someone's work\n")
	k.fails(belay.ClassDenied, "write", write, "has changed since it was read", "Read it again")
	k.fails(belay.ClassDenied, "edit", edit, "has changed since")
	if got := k.content("f.txt"); got != "old, and someone's work\n" {
		t.Errorf("content = %q: what was refused must change nothing", got)
	}
	k.ok("read", in{"path": "f.txt"})
	k.ok("write", write)
}

func TestWriteGoesByContentNotByTime(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.put("f.txt", "old\n")
	k.ok("read", in{"path": "f.txt"})
	info, err := os.Stat(filepath.Join(k.dir, "f.txt"))
	if err != nil {
		t.Fatal(err)
	}
	k.put("f.txt", "0ld\n") // the same size, and below also the same time
	if err := os.Chtimes(filepath.Join(k.dir, "f.txt"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	k.fails(belay.ClassDenied, "write", in{"path": "f.txt", "content": "new\n"}, "has changed")
	k.put("f.txt", "old\n") // the old content again, with another time
	k.ok("write", in{"path": "f.txt", "content": "new\n"})
}

func TestWriteAfterARestart(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.put("f.txt", "old\n")
	k.ok("read", in{"path": "f.txt"})
	again := &kit{t: t, dir: k.dir, tools: map[string]belay.Tool{}}
	for _, tool := range toolbox.New(openRoot(t, k.dir), &toolbox.Options{NoShell: true}).Tools() {
		again.tools[tool.Declaration().Name] = tool
	}
	again.fails(belay.ClassDenied, "write", in{"path": "f.txt", "content": "new\n"}, "Read it first")
	has(t, again.ok("write", in{"path": "f.txt", "content": "old\n"}), "nothing was changed")
}

func TestWriteYieldsToAQuickerWriter(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	root := openRoot(t, k.dir)
	for _, name := range []string{"old.txt", "new.txt"} {
		if name == "old.txt" {
			k.put(name, "old\n")
		}
		err := toolbox.Replace(root, name, "ours\n", func() { k.put(name, "theirs\n") })
		if err == nil || !strings.Contains(err.Error(), "was just changed by another program") || k.content(name) != "theirs\n" {
			t.Errorf("%s: err = %v, content = %q", name, err, k.content(name))
		}
	}
	if entries, err := os.ReadDir(k.dir); err != nil || len(entries) != 2 {
		t.Errorf("entries = %v, %v: want no temporary file left", entries, err)
	}
}

func TestWriteTheSameChangesNothing(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.put("f.txt", "same\n")
	before, err := os.Stat(filepath.Join(k.dir, "f.txt"))
	if err != nil {
		t.Fatal(err)
	}
	r := k.call("write", in{"path": "f.txt", "content": "same\n"})
	if v := view[toolbox.ChangeView](t, r); r.IsError || v.Action != "unchanged" || v.Diff != "" {
		t.Errorf("result = %+v", r)
	}
	if after, err := os.Stat(filepath.Join(k.dir, "f.txt")); err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Error("the file was written")
	}
}

func TestWriteKeepsTheMode(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.put("run.sh", "old\n")
	name := filepath.Join(k.dir, "run.sh")
	for _, mode := range []os.FileMode{0o755, 0o640} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		k.ok("read", in{"path": "run.sh"})
		k.ok("write", in{"path": "run.sh", "content": "mode " + mode.String()})
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("mode = %v, want %v", info.Mode(), mode)
		}
	}
	if err := os.Chmod(name, 0o444); err != nil {
		t.Fatal(err)
	}
	k.fails(belay.ClassDenied, "write", in{"path": "run.sh", "content": "new"}, "is read-only")
}

func TestWriteRefusesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.put("dir/f.txt", "x")
	k.fails(belay.ClassInvalid, "write", in{"path": "dir", "content": "x"}, "is a directory")
	k.fails(belay.ClassInvalid, "write", in{"path": "new/", "content": "x"}, "is a directory")
	k.fails(belay.ClassInvalid, "write", in{"path": ".", "content": "x"}, "is a directory")
	k.fails(belay.ClassNotFound, "write", in{"path": "dir/f.txt/x", "content": "x"}, "not a directory")
}

func TestEdit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule     string
		content  string
		old, new string
		all      bool
		want     string
		text     string
	}{
		{"the only occurrence is replaced", "a\nb\nc\n", "b", "B", false, "a\nB\nc\n", "1 replacement, at line 2."},
		{"all occurrences are, if asked for", "x\ny\nx, x\n", "x", "z", true, "z\ny\nz, z\n", "3 replacements, at lines 1, 3 and 3."},
		{"text may go", "a\nb\nc\n", "b\n", "", false, "a\nc\n", "line 2"},
		{"a missing last line end stays missing", "a\nb", "b", "c", false, "a\nc", "line 2"},
		{"CRLF stays CRLF", "a\r\nb\r\nc\r\n", "a\nb", "a\nnew\nb", false, "a\r\nnew\r\nb\r\nc\r\n", "line 1"},
		{"CRLF comes with new lines too", "a\r\nb\r\n", "b", "b\nc", false, "a\r\nb\r\nc\r\n", "line 2"},
		{"CRLF given as such is not doubled", "a\r\nb\r\n", "a\r\nb", "c\r\nd", false, "c\r\nd\r\n", "line 1"},
		{"mixed line ends are left as they are", "a\r\nb\nc\n", "b", "d\ne", false, "a\r\nd\ne\nc\n", "line 2"},
		{"bytes that are not UTF-8 are kept", "a\xff\nb\n", "b", "c", false, "a\xff\nc\n", "line 2"},
		{"a dollar is a dollar", "cost\n", "cost", "$1 ${x}", false, "$1 ${x}\n", "line 1"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, nil)
			k.put("f.txt", test.content)
			k.ok("read", in{"path": "f.txt"})
			has(t, k.ok("edit", in{"path": "f.txt", "old_string": test.old, "new_string": test.new, "replace_all": test.all}), test.text)
			if got := k.content("f.txt"); got != test.want {
				t.Errorf("content = %q, want %q", got, test.want)
			}
			k.ok("write", in{"path": "f.txt", "content": "again"}) // allowed, because the session has written the content
		})
	}
}

func TestEditFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule     string
		content  string
		old, new string
		class    belay.ResultClass
		parts    []string
	}{
		{"two occurrences are told with their lines", "x\ny\nx\n", "x", "z", belay.ClassInvalid, []string{"2 times", "lines 1 and 3", "replace_all"}},
		{"none is told with the nearest lines", "func Alpha() {\n}\nfunc Beta() {\n}\n", "func Betta() {", "z", belay.ClassInvalid, []string{"is not in", "most similar", `     3: "func Beta() {"`}},
		{"other white space is told", "if x {\n\treturn 1\n}\n", "if x {\n    return 1\n}", "z", belay.ClassInvalid, []string{"different white space", `     2: "\treturn 1"`}},
		{"line numbers are told", "alpha\n", "     1\talpha", "z", belay.ClassInvalid, []string{"line number"}},
		{"nothing like it is told", "alpha\n", "qqqqqqq", "z", belay.ClassInvalid, []string{"Nothing in the file is similar"}},
		{"white space alone is told", "alpha\n", "\t\t\t", "z", belay.ClassInvalid, []string{"white space"}},
		{"nothing to look for", "alpha\n", "", "z", belay.ClassInvalid, []string{"old_string is empty"}},
		{"nothing to change", "alpha\n", "a", "a", belay.ClassInvalid, []string{"the same"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, nil)
			k.put("f.txt", test.content)
			k.ok("read", in{"path": "f.txt"})
			k.fails(test.class, "edit", in{"path": "f.txt", "old_string": test.old, "new_string": test.new}, test.parts...)
			if got := k.content("f.txt"); got != test.content {
				t.Errorf("content = %q: what was refused must change nothing", got)
			}
		})
	}
	k := newKit(t, nil)
	k.fails(belay.ClassNotFound, "edit", in{"path": "none", "old_string": "a", "new_string": "b"}, "does not exist")
}

// SPEC T-04
func TestEditRendersADiffThatTheModelIsNotSent(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.put("f.txt", "1\n2\n3\n4\n5\n6\n7\n8\n")
	k.ok("read", in{"path": "f.txt"})
	r := k.call("edit", in{"path": "f.txt", "old_string": "5", "new_string": "five\nmore"})
	v := view[toolbox.ChangeView](t, r)
	want := "--- a/f.txt\n+++ b/f.txt\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+more\n 6\n 7\n 8\n"
	if v.Diff != want || v.Added != 2 || v.Removed != 1 || v.Action != "edited" {
		t.Errorf("view = %+v, want the diff\n%s", v, want)
	}
	if strings.Contains(r.Text, "five") {
		t.Errorf("text = %q: want no diff in it", r.Text)
	}
}
