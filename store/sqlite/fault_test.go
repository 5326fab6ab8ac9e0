package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
)

// On a full disk the store rejects the whole commit and keeps stored data. When there is
// space again, the commit succeeds.
//
// SPEC L-01, J-03
func TestDiskFull(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	stored := hold(t, s, "a")
	commit(t, s, say("a", stored.Epoch, 1, "one"))
	if err := s.MaxPages(ctx, 4); err != nil {
		t.Fatal(err)
	}
	large := say("a", stored.Epoch, 2, strings.Repeat("x", 1<<20))
	large.Runs, large.State = []hook.Run{run("with-it", hook.Completed)}, &belay.SessionState{Turns: 9}
	wantError(t, "a commit on a full disk", s.Commit(ctx, large), sqlite.ErrFull, s.Path(), "free some space")
	long := run("long", hook.Completed)
	for range 300 {
		long.Audit = append(long.Audit, hook.Audit{Code: "note", Message: strings.Repeat("x", 500)})
	}
	wantError(t, "a record on a full disk", s.Journal().Append(ctx, []hook.Run{long}), sqlite.ErrFull, s.Path())
	if got := texts(t, s, "a"); !slices.Equal(got, []string{"one"}) {
		t.Errorf("%d messages are stored, want the one from before", len(got))
	}
	if got := states(t, s, hook.Filter{}); len(got) != 0 {
		t.Errorf("the runs are %q, want none", got)
	}
	if err := s.MaxPages(ctx, 0); err != nil {
		t.Fatal(err)
	}
	commit(t, s, large)
	if got := states(t, s, hook.Filter{}); len(texts(t, s, "a")) != 2 || len(got) != 1 {
		t.Errorf("with room again %d messages and %q are stored, want both", len(texts(t, s, "a")), got)
	}
}

// If a commit does not fit on the disk, the store rejects it and all commits in the same
// transaction.
func TestDiskFullInABatch(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	if err := s.MaxPages(ctx, 4); err != nil {
		t.Fatal(err)
	}
	const many = 12
	epochs := make([]int64, many)
	for i := range epochs {
		epochs[i] = hold(t, s, string(rune('a'+i))).Epoch
	}
	told := make(chan [2]any, many)
	for i, epoch := range epochs {
		go func() { // ends when Commit returns
			text := "small"
			if i%3 == 0 {
				text = strings.Repeat("x", 1<<20)
			}
			told <- [2]any{i, s.Commit(ctx, say(string(rune('a'+i)), epoch, 1, text))}
		}()
	}
	for range epochs {
		got := <-told
		i, err := got[0].(int), got[1]
		stored := len(texts(t, s, string(rune('a'+i)))) == 1
		if stored != (err == nil) {
			t.Errorf("commit %d was told %v and is stored: %t", i, err, stored)
		}
		if i%3 == 0 && err == nil {
			t.Errorf("commit %d was told that it is stored, and cannot be", i)
		}
	}
}

// A write waits for a file that another program has locked, and then fails with ErrLocked.
//
// SPEC L-14
func TestLocked(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), newFile(t)
	s := openFile(t, file, &sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	stored := hold(t, s, "a")
	other, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	tx, err := other.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "a commit", s.Commit(ctx, say("a", stored.Epoch, 1, "one")), sqlite.ErrLocked, file, "20ms")
	wantError(t, "a record", s.Journal().Append(ctx, []hook.Run{run("one", hook.Completed)}), sqlite.ErrLocked)
	_, err = sqlite.Open(ctx, file, &sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	wantError(t, "opening", err, sqlite.ErrLocked, file)
	began := time.Now()
	_, _, err = s.Vacuum(ctx)
	wantError(t, "a vacuum", err, sqlite.ErrLocked, file)
	if took := time.Since(began); took < 20*time.Millisecond {
		t.Errorf("a vacuum gives up after %s, want 20ms", took)
	}
	if got := texts(t, s, "a"); len(got) != 0 {
		t.Errorf("%q is stored, want nothing; reading must go on", got)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	commit(t, s, say("a", stored.Epoch, 1, "one"))
}

// If another program keeps the file locked, only one write waits for BusyTimeout. Later
// writes fail sooner. Workers that look for jobs do not make writes wait longer.
//
// SPEC L-14
func TestLockedIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), newFile(t)
	const wait, writes = time.Second, 20
	s := openFile(t, file, &sqlite.Options{BusyTimeout: wait, JobPoll: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	epoch := hold(t, s, "a").Epoch
	if err := s.Queue().Enqueue(ctx, run("asked", hook.Completed), []hook.Job{{ID: "x", Key: "x", Handler: "h"}}); err != nil {
		t.Fatal(err)
	}
	working, stop := context.WithCancel(ctx)
	begun, worked := make(chan struct{}), make(chan error, 1)
	go func() { // ends with the test
		worked <- s.Queue().(hook.WorkQueue).Work(working, func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
			close(begun)
			ended := job.Begun(time.Now())
			ended.State, ended.Ended = hook.Completed, time.Now()
			return ended, time.Time{}
		})
	}()
	<-begun
	unlock := lockOut(t, s)
	began := time.Now()
	for range writes {
		wantError(t, "a commit", s.Commit(ctx, say("a", epoch, 1, "one")), sqlite.ErrLocked, file)
	}
	if took := time.Since(began); took < wait || took > writes/2*wait {
		t.Errorf("%d commits take %s while the file is locked, want about %s", writes, took, wait)
	}
	unlock()
	commit(t, s, say("a", epoch, 1, "one"))
	unlock = lockOut(t, s)
	began = time.Now()
	wantError(t, "a commit", s.Commit(ctx, say("a", epoch, 2, "two")), sqlite.ErrLocked)
	if took := time.Since(began); took < wait {
		t.Errorf("a file that was free in between is waited for %s, want %s", took, wait)
	}
	unlock()
	stop()
	if err := <-worked; err != nil {
		t.Error(err)
	}
}

func TestReadOnlyFile(t *testing.T) {
	t.Parallel()
	file := newFile(t)
	_, err := sqlite.OpenReadOnly(t.Context(), file)
	wantError(t, "opening a file that cannot be written", err, sqlite.ErrReadOnly, file, "permissions")
	wantUntouched(t, file)
}

func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("/proc is a directory that not even root can write, on Linux")
	}
	_, err := sqlite.Open(t.Context(), "/proc/belay.db", nil)
	wantError(t, "opening in a directory that cannot be written", err, sqlite.ErrReadOnly, "/proc/belay.db")
}

func TestNoRoomForLocks(t *testing.T) {
	t.Parallel()
	file := newFile(t)
	if err := os.WriteFile(file+"-holders", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), file, nil)
	wantError(t, "opening where no lock can be", err, sqlite.ErrReadOnly, file, file+"-holders")
}

func TestNoDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "missing")
	_, err := sqlite.Open(t.Context(), filepath.Join(dir, "belay.db"), nil)
	wantError(t, "opening in a directory that is not there", err, sqlite.ErrReadOnly, "create the directory "+dir)
	_, err = sqlite.Open(t.Context(), filepath.Dir(dir), nil)
	wantError(t, "opening a directory", err, sqlite.ErrNotStore, "pass the path of a file")
	if _, err := sqlite.Open(t.Context(), ":memory:", nil); err == nil || !strings.Contains(err.Error(), "memstore") {
		t.Errorf("opening memory gives %v, want to be sent to memstore", err)
	}
}

func TestNotADatabase(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes.txt")
	text := bytes.Repeat([]byte("these are my notes\n"), 100)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), file, nil)
	wantError(t, "opening a text", err, sqlite.ErrNotStore, file, "use another file")
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, text) {
		t.Errorf("the text has changed (%v)", err)
	}
}

func TestAnotherProgramsDatabase(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "music.db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE songs (title TEXT)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = sqlite.Open(t.Context(), file, nil)
	wantError(t, "opening another program's database", err, sqlite.ErrNotStore, file, "another program")
}

// Open reports a damaged version table as damage.
func TestCorruptVersion(t *testing.T) {
	t.Parallel()
	file := newFile(t)
	s := openFile(t, file, nil)
	var page, size int64
	if err := s.QueryRow(t.Context(), "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = 'belay_version'", &page, &size); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	damage(t, file, (page-1)*size)
	_, err := sqlite.Open(t.Context(), file, nil)
	wantError(t, "opening it", err, sqlite.ErrCorrupt, file, ".recover")
	if strings.Contains(err.Error(), "version table") {
		t.Errorf("the error is %v", err)
	}
}

// Open rejects a file with a damaged page. With ReadOnly, content on other pages can be
// read. Check finds the damage.
//
// SPEC L-14
func TestCorruptPage(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), newFile(t)
	s := openFile(t, file, nil)
	stored := hold(t, s, "a")
	for seq := range int64(20) {
		commit(t, s, say("a", stored.Epoch, seq+1, strings.Repeat("text ", 500)))
	}
	appendRuns(t, s, run("one", hook.Completed))
	var page, size int64
	if err := s.QueryRow(ctx, "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = 'messages'", &page, &size); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	damage(t, file, (page-1)*size)

	_, err := sqlite.Open(ctx, file, nil)
	wantError(t, "opening the file", err, sqlite.ErrCorrupt, file, "belay store check", ".recover")
	s = openFile(t, file, &sqlite.Options{ReadOnly: true})
	for _, err := range s.Read(ctx, "a", 0) {
		wantError(t, "reading the session", err, sqlite.ErrCorrupt, file)
	}
	if got := states(t, s, hook.Filter{}); !slices.Equal(got, []string{"one completed"}) {
		t.Errorf("the runs are %q, want the one that is not damaged", got)
	}
	health, err := s.Check(ctx)
	if err != nil || len(health.Problems) == 0 {
		t.Errorf("Check finds %q, %v, want the damage", health.Problems, err)
	}
}

// If a page is damaged while the store is open, reads and writes that use the page fail.
//
// SPEC L-14
func TestCorruptPageOfAnOpenStore(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), newFile(t)
	s := openFile(t, file, nil)
	var page, size int64
	if err := s.QueryRow(ctx, "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = 'messages'", &page, &size); err != nil {
		t.Fatal(err)
	}
	stored := hold(t, s, "a")
	damage(t, file, (page-1)*size)
	wantError(t, "a commit", s.Commit(ctx, say("a", stored.Epoch, 1, "one")), sqlite.ErrCorrupt, file)
	if got := texts(t, s, "a"); len(got) != 0 {
		t.Errorf("%q is stored, want nothing", got)
	}
}

// A row that cannot be decoded counts as damage. Opening the session returns the error and
// takes no hold.
//
// SPEC L-14
func TestUnreadableRow(t *testing.T) {
	t.Parallel()
	for what, damage := range map[string]string{
		"text":         "UPDATE messages SET body = substr(body, 2)",
		"another sort": "UPDATE sessions SET last = 'many' WHERE id = 'a'",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ctx, file := t.Context(), newFile(t)
			s := openFile(t, file, nil)
			epoch := hold(t, s, "a").Epoch
			commit(t, s, say("a", epoch, 1, "one"))
			if err := s.Release(ctx, "a", epoch); err != nil {
				t.Fatal(err)
			}
			execute(t, file, damage)
			_, err := s.Open(ctx, "a")
			wantError(t, "opening the session", err, sqlite.ErrCorrupt, file, "belay store check")
			held := ""
			if err := s.QueryRow(ctx, "SELECT holder FROM sessions WHERE id = 'a'", &held); err != nil || held != "" {
				t.Errorf("the session is held by %q, %v, want nobody", held, err)
			}
		})
	}
}

// damage overwrites most of a page with one byte value.
func damage(t testing.TB, file string, at int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, wrote := f.WriteAt(bytes.Repeat([]byte{0xa5}, 4000), at)
	if err := errors.Join(wrote, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// wantUntouched asserts that a file can still be opened and is valid.
func wantUntouched(t testing.TB, file string) {
	t.Helper()
	health, err := openFile(t, file, nil).Check(context.Background())
	if err != nil || len(health.Problems) > 0 {
		t.Errorf("Check finds %q, %v, want nothing", health.Problems, err)
	}
}

// Only the owner can read a new store.
func TestFileMode(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes on Windows")
	}
	s := openFile(t, filepath.Join(t.TempDir(), "belay.db"), nil)
	for _, name := range []string{s.Path(), s.Path() + "-wal", s.Path() + "-shm", s.Path() + "-holders"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v, %v, want nothing for others", name, info.Mode(), err)
		}
	}
}
