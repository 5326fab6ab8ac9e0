package sqlite_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
)

// oldFile is an SQL dump of a store from a program that knew only the first migration.
// Never change this file.
const oldFile = "testdata/v1.sql"

// Opening an old store migrates it and keeps all content.
func TestMigrateAnOldFile(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(oldFile)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "belay.db")
	execute(t, file, string(script))
	execute(t, file, "UPDATE runs SET session = 'demo', idempotency_key = 'job' WHERE id = 'first'") // the run of a waiting job
	execute(t, file, "UPDATE approvals SET reason = 'it writes'")                                    // a later migration moved this text
	execute(t, file, `INSERT INTO approvals VALUES('answered','demo',1,'','call','write','sha256:1f','it wrote','floor',1,0,
		'{"approval":"answered","hash":"sha256:1f","allow":true,"by":"ann","reason":"fine","time":"2026-03-01T12:00:00Z"}')`)

	s := openFile(t, file, nil)
	var indexes int
	if err := s.QueryRow(t.Context(), "SELECT count(*) FROM sqlite_schema WHERE name IN ('runs_block', 'runs_phase', 'runs_state', 'runs_job', 'due_turns_of_agent')", &indexes); err != nil || indexes != 5 {
		t.Errorf("%d of 5 indexes of later migrations are there, %v", indexes, err)
	}
	var session string
	if err := s.QueryRow(t.Context(), "SELECT session FROM job_keys WHERE id = 'job'", &session); err != nil || session != "demo" {
		t.Errorf("the job that waits is of session %q, %v, want what its record says", session, err)
	}
	stored := hold(t, s, "demo")
	if len(stored.Messages) != 2 || stored.Messages[1].Text() != "it's <done> 日本語" || stored.State.Turns != 1 || len(stored.Calls) != 1 || len(stored.Approvals) != 1 {
		t.Errorf("opened: %+v, want what was stored", stored)
	}
	commit(t, s, say("demo", stored.Epoch, 3, "the session continues"))
	asked := stored.Approvals[0]
	if asked.Reason != "it writes" {
		t.Errorf("the approval is %+v, want it with its reason", asked)
	}
	for a, err := range s.Approvals(t.Context(), belay.ApprovalFilter{Session: "demo", Limit: 1}) {
		if err != nil || a.ID != "answered" || a.Reason != "it wrote" || a.Decided == nil || a.Decided.Reason != "fine" {
			t.Errorf("the approval that was decided is %+v, %v, want it with all reasons", a, err)
		}
	}
	if _, err := s.Decide(t.Context(), belay.Decision{Approval: asked.ID, Hash: asked.Hash, Allow: true, By: "ann"}); err != nil {
		t.Error(err)
	}
	wantStates(t, s, "first completed", "second interrupted")
	if stats, err := s.Queue().(hook.StatQueue).Stats(t.Context()); err != nil || stats.Waiting != 1 {
		t.Errorf("%d jobs wait, %v, want 1", stats.Waiting, err)
	}
	wantUntouched(t, file)
}

func execute(t testing.TB, file, script string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), script); err != nil {
		t.Fatal(err)
	}
}

// Open rejects a newer store, without changing it, if a migration removed something. If
// migrations only added something, the store can be opened.
func TestNewerFile(t *testing.T) {
	t.Parallel()
	file := newFile(t)
	execute(t, file, "INSERT INTO belay_version (version_id, is_applied) VALUES (9999, 1)")
	wantUntouched(t, file)
	execute(t, file, "UPDATE counters SET value = 9999 WHERE name = 'oldest'")
	_, err := sqlite.Open(t.Context(), file, nil)
	wantError(t, "opening a file of a newer version", err, sqlite.ErrNewer, file, "9999", "use a newer version of Belay")
	execute(t, file, "DELETE FROM belay_version WHERE version_id = 9999; UPDATE counters SET value = 6 WHERE name = 'oldest'")
	wantUntouched(t, file)
}

// A migration that excludes older programs fails while one of them has the store open, and changes nothing. The error names the
// process. A program that was killed does not count.
//
// SPEC Q-03
func TestOlderProgramIsRunning(t *testing.T) {
	t.Parallel()
	file := newFile(t)
	old := openFile(t, file, nil) // it stands for a program of version 15
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider(t, db).DownTo(t.Context(), 15); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = sqlite.Open(t.Context(), file, nil)
	wantError(t, "migrating under an older program", err, sqlite.ErrOlder, file, fmt.Sprintf("process %d on ", os.Getpid()), "version 16", "end the programs")
	if made, _ := filepath.Glob(file + "*.bak*"); len(made) > 0 || versionOf(t, file) != 15 {
		t.Errorf("the store was changed: version %d, %v", versionOf(t, file), made)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	leaveLock(t, file)
	if from, to := openFile(t, file, nil).Migrated(); from != 15 || to != 16 {
		t.Errorf("the store was migrated from %d to %d, want from 15 to 16", from, to)
	}
}
