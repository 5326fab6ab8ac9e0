//go:build linux

package assembly

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/sandbox"
	"github.com/belay-run/belay/store/sqlite"
)

// While a confined command runs, the store can be opened, and the command cannot make the
// journal from which SQLite would restore the store.
//
// SPEC P-06, P-12
func TestStoreCanBeOpenedDuringACommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ user, journal string }{
		"the store in .belay":              {"", ".belay/belay.db-journal"},
		"a store elsewhere in the project": {"store: data/belay.db\n", "data/belay.db-journal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t, c.user, map[string]string{ // the floor does not look into a program of the project
				"work.sh": "#!/bin/sh\necho > begun\ncat end\nrm -f " + c.journal + "\nrmdir " + c.journal + "\necho bad > " + c.journal + "\n",
			}).sandboxed(sandbox.Missing)
			path := r.floor.settings.Store
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			store, err := sqlite.Open(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			}()
			project := r.floor.settings.Project
			for _, pipe := range []string{"begun", "end"} {
				if err := unix.Mkfifo(filepath.Join(project, pipe), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			done := make(chan string, 1)
			go func() {
				_, result := r.run("./work.sh")
				done <- result.Text
			}()
			begun, err := os.Open(filepath.Join(project, "begun")) // waits for the command
			if err != nil {
				t.Fatal(err)
			}
			defer begun.Close() //nolint:errcheck // it is only read

			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close() //nolint:errcheck // it is only read
			var sessions int
			if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM sessions").Scan(&sessions); err != nil {
				t.Errorf("the store cannot be read during the command: %v", err)
			}

			end, err := os.OpenFile(filepath.Join(project, "end"), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := end.Close(); err != nil {
				t.Fatal(err)
			}
			said := <-done
			if text, err := os.ReadFile(filepath.Join(project, c.journal)); err == nil && len(text) > 0 {
				t.Errorf("the command has made a journal with %q: %s", text, said)
			}
		})
	}
}
