package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/store/sqlite"
)

// leaveLock leaves the lock file of a killed process.
func leaveLock(t *testing.T, file string) {
	t.Helper()
	if err := os.MkdirAll(file+"-holders", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(file+"-holders", "ABC"), []byte("process 1 on a machine"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Users returns the processes that have a store open. One that was killed, or that has closed the store, does not count.
//
// SPEC Q-03
func TestUsers(t *testing.T) {
	t.Parallel()
	file := newFile(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(file, link); err != nil {
		link = file // only some users of Windows may make links
	}
	want := func(when string, n int) {
		t.Helper()
		for _, name := range []string{file, link} {
			users, err := sqlite.Users(name)
			of := func(user string) bool { return strings.HasPrefix(user, fmt.Sprintf("process %d on ", os.Getpid())) }
			if err != nil || len(users) != n || n > 0 && !slices.ContainsFunc(users, of) {
				t.Errorf("%s, it is open in %q, %v, want %d", when, users, err, n)
			}
		}
	}
	if users, err := sqlite.Users(file + ".other"); err != nil || len(users) > 0 {
		t.Errorf("a file that is no store is open in %q, %v", users, err)
	}
	leaveLock(t, file)
	want("after a kill", 0)
	s, err := sqlite.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	leaveLock(t, file)
	want("while it is open", 1)
	closeStore(t, s)
	want("when it is closed", 0)
}
