package postgres_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/postgres"
)

// A store can have its own schema in a database that another program uses.
func TestSchema(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t, "template1")
	execute(t, dsn, "CREATE TABLE sessions (id int); CREATE SCHEMA ours")
	s := openDSN(t, dsn+"&search_path=ours", nil)
	c := say("a", hold(t, s, "a").Epoch, 1, "one")
	c.Jobs = []hook.Job{{ID: "j", Key: "k", Handler: "h"}}
	commit(t, s, c)
	again := openDSN(t, dsn+"&search_path=ours", nil)
	if got := texts(t, again, "a"); !slices.Equal(got, []string{"one"}) {
		t.Errorf("the session says %q", got)
	}
	if stats, err := again.Queue().(hook.StatQueue).Stats(t.Context()); err != nil || stats.Waiting != 1 {
		t.Errorf("the queue is %+v, %v, want a job", stats, err)
	}
	var theirs int
	if err := s.QueryRow(t.Context(), "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'", &theirs); err != nil || theirs != 1 {
		t.Errorf("the other program has %d tables, %v, want its own", theirs, err)
	}
}

// Commits wait for the disk even if the server's setting is off. The store keeps a stronger
// setting.
//
// SPEC J-03
func TestWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{"off": "on", "on": "on", "remote_apply": "remote_apply"} {
		dsn := server.Database(t, template)
		conn := connect(t, dsn)
		name := ""
		query(t, conn, &name, "SELECT current_database()")
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		execute(t, dsn, "ALTER DATABASE "+name+" SET synchronous_commit = "+setting)
		s, got := openDSN(t, dsn, nil), ""
		if err := s.QueryRow(t.Context(), "SHOW synchronous_commit", &got); err != nil || got != want {
			t.Errorf("where the server says %s the store has %q, %v, want %s", setting, got, err, want)
		}
	}
}

// A write that takes longer than Timeout fails and stores nothing. Later writes succeed.
func TestTimeout(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, &postgres.Options{Timeout: 2 * time.Second})
	stored := hold(t, s, "a")
	began, blocks := time.Now(), make(chan struct{})
	err := s.Stall(ctx, "a", func() {
		timer := time.AfterFunc(3*time.Second, func() { close(blocks) })
		defer timer.Stop()
		<-blocks
	})
	wantError(t, "a write that takes longer", err, postgres.ErrUnreachable, "longer than 2s")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	commit(t, s, say("a", stored.Epoch, 1, "one"))
}

// An export contains all parts of a session, each in its own line.
func TestExport(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	c := say("a", hold(t, s, "a").Epoch, 1, "<one>")
	c.Calls = []belay.CallRecord{{Message: 1, ID: "c", Tool: "t", State: belay.CallJudged}}
	c.Approvals = []belay.Approval{{ID: "ap", Session: "a", Reason: "because"}}
	c.Runs = []hook.Run{run("r", hook.Completed)}
	commit(t, s, c)
	var out bytes.Buffer
	if err := s.Export(ctx, &out, "a"); err != nil {
		t.Fatal(err)
	}
	var types []string
	for text := range strings.Lines(out.String()) {
		var line postgres.ExportLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		types = append(types, line.Type)
		if line.Session != nil && (!line.Session.Held || line.Version != postgres.ExportVersion) {
			t.Errorf("the first line is %s, want that it is held, and a version", text)
		}
	}
	if !slices.Equal(types, []string{"session", "message", "call", "approval", "run"}) || !strings.Contains(out.String(), "<one>") {
		t.Errorf("the export is %s", out.String())
	}
	wantError(t, "Export of nothing", s.Export(ctx, &out, "b"), belay.ErrNotFound)
}
