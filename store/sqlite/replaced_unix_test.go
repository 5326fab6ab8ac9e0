//go:build unix

package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
)

// replacements are ways in which another program changes the files of an open store.
var replacements = map[string]func(file string) error{
	"the database is removed":  os.Remove,
	"the log is removed":       func(file string) error { return os.Remove(file + "-wal") },
	"the index is removed":     func(file string) error { return os.Remove(file + "-shm") },
	"everything is removed":    func(file string) error { return os.RemoveAll(filepath.Dir(file)) },
	"the directory is renamed": func(file string) error { return os.Rename(filepath.Dir(file), filepath.Dir(file)+"-old") },
	"the database is replaced": func(file string) error { return replaceBy(file, file) },
	"the log is replaced":      func(file string) error { return replaceBy(file+"-wal", file+"-wal") },
	"the index is replaced":    func(file string) error { return replaceBy(file+"-shm", file+"-shm") },
	"a new store is in its place": func(file string) error {
		if err := errors.Join(os.Remove(file), os.Remove(file+"-wal"), os.Remove(file+"-shm")); err != nil {
			return err
		}
		s, err := sqlite.Open(context.Background(), file, nil)
		if err != nil {
			return err
		}
		return s.Close()
	},
}

// replaceBy replaces a file by a copy of another, as an editor or a restored backup does.
func replaceBy(file, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// subdirectory makes a file with an empty store in its own directory.
func subdirectory(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "belay.db")
	if err := os.Rename(newFile(t), file); err != nil {
		t.Fatal(err)
	}
	return file
}

// If the files of a store are removed or replaced, the next commit fails. Otherwise it
// would be written to lost files.
//
// SPEC L-14
func TestReplacedFiles(t *testing.T) {
	t.Parallel()
	for name, replace := range replacements {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, file := t.Context(), subdirectory(t)
			s, err := sqlite.Open(ctx, file, nil)
			if err != nil {
				t.Fatal(err)
			}
			epoch := hold(t, s, "a").Epoch
			commit(t, s, say("a", epoch, 1, "one"))
			if err := replace(file); err != nil {
				t.Fatal(err)
			}
			for what, err := range map[string]error{
				"a commit":  s.Commit(ctx, say("a", epoch, 2, "two")),
				"a record":  s.Journal().Append(ctx, []hook.Run{run("one", hook.Completed)}),
				"a job":     s.Queue().Enqueue(ctx, run("two", hook.Completed), nil),
				"releasing": s.Release(ctx, "a", epoch),
				"closing":   s.Close(),
			} {
				wantError(t, what, err, sqlite.ErrReplaced, file, "put its files back or restore a backup")
			}
		})
	}
}

// If the same files are put back, the store works again.
//
// SPEC L-14
func TestFilesThatComeBack(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), subdirectory(t)
	s := openFile(t, file, nil)
	epoch := hold(t, s, "a").Epoch
	dir := filepath.Dir(file)
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	wantError(t, "a commit", s.Commit(ctx, say("a", epoch, 1, "one")), sqlite.ErrReplaced)
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	commit(t, s, say("a", epoch, 1, "one"))
	if got := texts(t, s, "a"); !slices.Equal(got, []string{"one"}) {
		t.Errorf("%q is stored, want the one message", got)
	}
}

// If another file has replaced the database file, new connections do not read the other
// file.
//
// SPEC L-14
func TestReadersOfAReplacedFile(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), subdirectory(t)
	s, err := sqlite.Open(ctx, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	epoch := hold(t, s, "a").Epoch
	commit(t, s, say("a", epoch, 1, "one"))
	if err := replacements["a new store is in its place"](file); err != nil {
		t.Fatal(err)
	}
	// More reads than there are connections, so that some connections are new.
	done := make(chan error, 32)
	for range cap(done) {
		go func() { // ends when the read ends
			n := 0
			for _, err := range s.Read(ctx, "a", 0) {
				if err != nil {
					done <- err
					return
				}
				n++
			}
			if n != 1 {
				err = errors.New("the session is empty")
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil && !errors.Is(err, sqlite.ErrReplaced) {
			t.Errorf("a reader is told %v, want what was stored, or that the file was replaced", err)
		}
	}
	wantError(t, "a backup", s.Backup(ctx, filepath.Join(t.TempDir(), "copy.db")), sqlite.ErrReplaced)
	wantError(t, "closing", s.Close(), sqlite.ErrReplaced)
}

// A turn fails if its store's file is removed.
//
// SPEC L-14, L-01
func TestTurnWhoseFileIsRemoved(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), subdirectory(t)
	s, err := sqlite.Open(ctx, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	model := scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "note", Input: `{"text": "one"}`}}}, {Text: "done"}}, nil)
	removes := noteTool(func(string) {
		if err := os.RemoveAll(filepath.Dir(file)); err != nil {
			t.Error(err)
		}
	})
	agent, err := belay.New(model, &belay.Options{Store: s, Tools: []belay.Tool{removes}})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := agent.Session("a").Turn(ctx, "go")
	wantError(t, "the turn", err, sqlite.ErrReplaced, file)
	if turn == nil || turn.Reason != belay.EndError {
		t.Errorf("the turn is %+v, want an error", turn)
	}
	if err := agent.Close(ctx); err != nil && !errors.Is(err, sqlite.ErrReplaced) {
		t.Error(err)
	}
	wantError(t, "closing", s.Close(), sqlite.ErrReplaced)
}

// Several stores of one process may have the same file open. The second store must not drop
// SQLite's locks of the first when it reads the file. Otherwise another process would
// believe that it is the last user and remove the log.
//
// SPEC L-14, L-02
func TestTwoStoresKeepTheirLocks(t *testing.T) {
	t.Parallel()
	file := newFile(t)
	s := openFile(t, file, nil)
	epoch := hold(t, s, "mine").Epoch
	commit(t, s, say("mine", epoch, 1, "one"))
	closeStore(t, openFile(t, file, nil))
	if out := runChild(t, "visit", file); !strings.Contains(out, "visited") {
		t.Fatalf("the other process says %q", out)
	}
	commit(t, s, say("mine", epoch, 2, "two"))
	if got := texts(t, openFile(t, file, nil), "mine"); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%q is stored, want both", got)
	}
}
