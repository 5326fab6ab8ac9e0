package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
)

// A link leads to the same store before and after its target is created. Only the owner can
// read the file.
//
// SPEC L-02
func TestLinkToNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"inner", "file"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link, file := filepath.Join(dir, "link.db"), filepath.Join(dir, "file", "belay.db")
	for name, to := range map[string]string{link: filepath.Join("inner", "link.db"), filepath.Join(dir, "inner", "link.db"): filepath.Join("..", "file", "belay.db")} {
		if err := os.Symlink(to, name); err != nil {
			t.Skip("there are no links here: ", err)
		}
	}
	s := openFile(t, link, nil)
	stored := hold(t, s, "a")
	appendRuns(t, s, run("alive", hook.Started))
	for _, name := range []string{link, file} {
		other := openFile(t, name, nil)
		_, err := other.Open(t.Context(), "a")
		wantError(t, "Open of a session that is held, through "+name, err, belay.ErrHeld)
		if got := other.Recovery(); other.Path() != s.Path() || got.Holders != 0 {
			t.Errorf("through %s the store is %s and settles %+v, want %s and nothing", name, other.Path(), got, s.Path())
		}
	}
	commit(t, s, say("a", stored.Epoch, 1, "one"))
	wantStates(t, s, "alive started")
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v, want it to be its owner's alone", info.Mode(), err)
	}
}

func TestLinkIntoNowhere(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(filepath.Join("missing", "belay.db"), link); err != nil {
		t.Skip("there are no links here: ", err)
	}
	_, err := sqlite.Open(t.Context(), link, nil)
	wantError(t, "opening a link into a directory that is not there", err, sqlite.ErrReadOnly, link, filepath.Join("missing", "belay.db"))
}

// Open waits while another process is opening the file.
func TestOpeningWaits(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), filepath.Join(t.TempDir(), "belay.db")
	done, err := sqlite.HoldOpening(ctx, file)
	if err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	other.SetMaxOpenConns(1)
	if _, err := other.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil { // SQLite takes the same lock to create the log
		t.Fatal(err)
	}
	why := errors.New("enough")
	ended, cancel := context.WithCancelCause(ctx)
	cancel(why)
	_, err = sqlite.Open(ended, file, nil)
	wantError(t, "opening with a context that ends", err, why)
	_, err = sqlite.Open(ctx, file, &sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	wantError(t, "opening, when it has waited long enough,", err, sqlite.ErrLocked, "has been opening the store for longer than 20ms")
	if _, err := other.ExecContext(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	done()
	hold(t, openFile(t, file, nil), "a")
}

// Open rejects a file that is not a store, and writes nothing to the file or beside it.
func TestForeignFilesStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, music := filepath.Join(dir, "notes.txt"), filepath.Join(dir, "music.db")
	if err := os.WriteFile(text, []byte("these are my notes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	execute(t, music, "CREATE TABLE songs (title TEXT)")
	before, err := os.ReadFile(music)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{text, music, dir} {
		_, err := sqlite.Open(t.Context(), name, nil)
		wantError(t, "opening "+name, err, sqlite.ErrNotStore, name)
	}
	if after, err := os.ReadFile(music); err != nil || !slices.Equal(before, after) {
		t.Errorf("another program's database has changed (%v)", err)
	}
	for _, pattern := range []string{dir + "/*-*", dir + "-*"} {
		if names, err := filepath.Glob(pattern); err != nil || len(names) > 0 {
			t.Errorf("%q were made (%v), want nothing", names, err)
		}
	}
}

// A killed process can leave a database without tables. Open makes a store of it.
func TestEmptyDatabase(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "belay.db")
	execute(t, file, "PRAGMA user_version = 1; PRAGMA user_version = 0")
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Fatalf("%v, %v, want a database", info, err)
	}
	hold(t, openFile(t, file, nil), "a")
}

// On a closed store every call returns belay.ErrClosed.
func TestClosed(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	epoch := hold(t, s, "a").Epoch
	commit(t, s, say("a", epoch, 1, "one"))
	closeStore(t, s)
	last := func(all func(func(error) bool)) (last error) {
		for err := range all {
			last = err
		}
		return last
	}
	errs := map[string]error{
		"Commit":  s.Commit(ctx, say("a", epoch, 2, "two")),
		"Append":  s.Journal().Append(ctx, []hook.Run{run("one", hook.Completed)}),
		"Enqueue": s.Queue().Enqueue(ctx, run("two", hook.Completed), nil),
		"Export":  s.Export(ctx, io.Discard, "a"),
		"Read":    last(second(s.Read(ctx, "a", 0))), "Sessions": last(second(s.Sessions(ctx, belay.SessionFilter{}))),
		"Approvals":    last(second(s.Approvals(ctx, belay.ApprovalFilter{}))),
		"List":         last(second(s.Journal().(hook.ListJournal).List(ctx, hook.Filter{}))),
		"a short List": last(second(s.Journal().(hook.ListJournal).List(ctx, hook.Filter{Limit: 1}))),
		"Follow":       last(second(s.Journal().(hook.FollowJournal).Follow(ctx, hook.Filter{}))),
	}
	_, errs["Open"] = s.Open(ctx, "a")
	_, errs["Check"] = s.Check(ctx)
	_, errs["Prune"] = s.Prune(ctx, sqlite.Retention{Age: 1})
	_, errs["Stats"] = s.Queue().(hook.StatQueue).Stats(ctx)
	_, errs["Input"] = s.Queue().(hook.InputQueue).Input(ctx, hook.Job{Key: "key"})
	for what, err := range errs {
		wantError(t, what+" of a closed store", err, belay.ErrClosed, s.Path())
	}
}

// second returns the errors of an iteration.
func second[T any](all func(func(T, error) bool)) func(func(error) bool) {
	return func(yield func(error) bool) {
		all(func(_ T, err error) bool { return yield(err) })
	}
}
