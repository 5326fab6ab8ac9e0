package toolbox_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/toolbox"
)

// A preview shows the change against the file as it is now, and changes nothing. A call that
// would fail has an error instead of a diff.
func TestPreview(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("a.txt", "one\ntwo\nthree\n")
	put("crlf.txt", "one\r\ntwo\r\n")
	put("twice.txt", strings.Repeat("x\n", 2))
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	for _, test := range []struct {
		tool, input string
		action      string
		lines       []string // lines that the diff has
		added       int
		removed     int
		problem     string
	}{
		{"edit", `{"path":"a.txt","old_string":"two","new_string":"2"}`, "edited", []string{" one", "-two", "+2", " three"}, 1, 1, ""},
		{"edit", `{"path":"crlf.txt","old_string":"one\ntwo","new_string":"1\n2"}`, "edited", []string{"-one\r", "+1\r"}, 2, 2, ""},
		{"edit", `{"path":"twice.txt","old_string":"x","new_string":"y","replace_all":true}`, "edited", []string{"-x", "+y"}, 2, 2, ""},
		{"write", `{"path":"a.txt","content":"one\nTWO\nthree\n"}`, "overwritten", []string{"-two", "+TWO"}, 1, 1, ""},
		{"write", `{"path":"new/b.txt","content":"hello\n"}`, "created", []string{"--- /dev/null", "+hello"}, 1, 0, ""},
		{"write", `{"path":"a.txt","content":"one\ntwo\nthree\n"}`, "unchanged", nil, 0, 0, ""},
		{"edit", `{"path":"a.txt","old_string":"four","new_string":"4"}`, "", nil, 0, 0, "not in"},
		{"edit", `{"path":"twice.txt","old_string":"x","new_string":"y"}`, "", nil, 0, 0, "occurs 2 times"},
		{"edit", `{"path":"absent.txt","old_string":"x","new_string":"y"}`, "", nil, 0, 0, "absent.txt"},
		{"write", `{"path":"../outside.txt","content":"x"}`, "", nil, 0, 0, "outside"},
		{"write", `{"path":7}`, "", nil, 0, 0, "not valid"},
	} {
		view, ok, err := toolbox.Preview(root, nil, test.tool, json.RawMessage(test.input))
		if !ok {
			t.Errorf("%s %s has no preview", test.tool, test.input)
		}
		if test.problem != "" {
			if err == nil || !strings.Contains(err.Error(), test.problem) || view.Diff != "" {
				t.Errorf("%s %s: %v, diff %q, want %q", test.tool, test.input, err, view.Diff, test.problem)
			}
			continue
		}
		if err != nil || view.Action != test.action || view.Added != test.added || view.Removed != test.removed {
			t.Errorf("%s %s: %+v, %v", test.tool, test.input, view, err)
		}
		for _, line := range test.lines {
			if !strings.Contains("\n"+view.Diff, "\n"+line+"\n") {
				t.Errorf("%s %s: the diff has no line %q:\n%s", test.tool, test.input, line, view.Diff)
			}
		}
	}
	if _, ok, err := toolbox.Preview(root, nil, "shell", json.RawMessage(`{"command":"rm a.txt"}`)); ok || err != nil {
		t.Errorf("a shell command has a preview, %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a.txt")); string(text) != "one\ntwo\nthree\n" || err != nil {
		t.Errorf("the preview changed the file: %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the preview made a directory: %v", err)
	}
}
