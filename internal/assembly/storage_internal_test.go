package assembly

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/config"
)

// One line names the copy that a migration makes, so that people know that it has their conversations.
//
// SPEC Q-03
func TestOpenStoreNamesTheCopy(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(filepath.Join("..", "..", "store", "sqlite", "testdata", "schemas", "v15.sql"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "belay.db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), string(script)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	open := func() (lines []string) {
		a := New(&Options{Notify: func(n Notice) { lines = append(lines, n.Text) }})
		store, err := a.OpenStore(t.Context(), &config.Loaded{Config: config.Config{Store: file}, Project: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	lines := open()
	copied, err := filepath.Glob(file + ".v*.bak")
	if err != nil || len(copied) != 1 {
		t.Fatalf("the copies are %q, %v", copied, err)
	}
	named := 0
	for _, line := range lines {
		if strings.Contains(line, "from version 15 to ") && strings.Contains(line, filepath.Base(copied[0])) {
			named++
		}
	}
	if named != 1 {
		t.Errorf("it says %q, want one line with %s", lines, copied[0])
	}
	for _, line := range open() {
		if strings.Contains(line, ".bak") {
			t.Errorf("it says again: %s", line)
		}
	}
}
