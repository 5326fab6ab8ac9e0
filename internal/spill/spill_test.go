package spill_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/spill"
)

// Remove deletes the files of a session. The files of other sessions stay, even if their
// ids are similar.
//
// SPEC L-13
func TestRemove(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spill")
	if err := spill.Remove(dir, "a"); err != nil {
		t.Errorf("without a directory: %v", err)
	}
	ids := []string{"a", "A", "a:b", "a-b", "a_b", "..", "a/one", "a/one/two", "b/a", "", "/"}
	files := make(map[string]string)
	for _, id := range ids {
		path, err := spill.Write(dir, id, "call.txt", "text of "+id)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(path, dir+string(filepath.Separator)) {
			t.Errorf("the file of %q is %s, want it below %s", id, path, dir)
		}
		files[id] = path
	}
	if err := spill.Remove(dir, "a"); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		text, err := os.ReadFile(files[id])
		switch gone := id == "a" || strings.HasPrefix(id, "a/"); {
		case gone && !os.IsNotExist(err):
			t.Errorf("the file of %q is still there: %v", id, err)
		case !gone && (err != nil || string(text) != "text of "+id):
			t.Errorf("the file of %q holds %q, %v", id, text, err)
		}
	}
}
