package wholefile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay/internal/wholefile"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a.json")
	for _, text := range []string{"one", "two, and longer", ""} {
		if err := wholefile.Write(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	alone(t, dir, "a.json")
}

// If the new file cannot replace the old one, the old file stays, and no other file is left
// behind.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := wholefile.Write(taken, []byte("text")); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if err := wholefile.Write(filepath.Join(dir, "missing", "a.json"), []byte("text")); err == nil {
		t.Error("written where there is no directory")
	}
	alone(t, dir, "taken")
}

// alone checks that a directory has only this entry.
func alone(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("%v, %v, want %s alone", entries, err, name)
	}
}
