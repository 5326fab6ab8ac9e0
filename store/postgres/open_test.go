package postgres_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/postgres"
)

// Many processes can open a new database at the same time. The tables are created only
// once.
func TestOpenedByManyAtOnce(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t, "template1")
	stores, errs := make([]*postgres.Store, 6), make([]error, 6)
	var all sync.WaitGroup
	for i := range stores {
		all.Go(func() { stores[i], errs[i] = postgres.Open(t.Context(), dsn, &postgres.Options{MaxConns: 2}) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	commit(t, stores[0], say("a", hold(t, stores[0], "a").Epoch, 1, "one"))
	if got := texts(t, stores[5], "a"); !slices.Equal(got, []string{"one"}) {
		t.Errorf("another store reads %q", got)
	}
	health, err := stores[0].Check(t.Context())
	if err != nil || len(health.Holders) != len(stores) || health.Sessions != 1 || health.Version == 0 || health.Bytes == 0 || health.Server == "" {
		t.Errorf("the database is %+v, %v, want %d holders and a session", health, err, len(stores))
	}
	if len(health.Problems) != 2 {
		t.Errorf("the problems are %q, want that the tests' server does not wait for its disk", health.Problems)
	}
	for _, h := range health.Holders {
		if h.Gone || h.Self != (h.Sessions == 1) {
			t.Errorf("a holder is %+v, want that it lives, and only this one with a session", h)
		}
	}
	for _, s := range stores {
		closeStore(t, s)
	}
}

// Open rejects a database of another program or of a newer version, and does not change it.
func TestNotOurs(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		template, change string
		want             error
		says             string
	}{
		"tables of another program":           {"template1", "CREATE TABLE sessions (id int)", postgres.ErrNotStore, "a table sessions"},
		"tables of a newer version":           {template, "INSERT INTO belay_version (version_id, is_applied) VALUES (999, true); UPDATE counters SET value = 999 WHERE name = 'oldest'", postgres.ErrNewer, "version 999"},
		"PostgreSQL's own of a newer version": {template, "INSERT INTO belay_postgres_version (version_id, is_applied) VALUES (999, true); UPDATE counters SET value = 999 WHERE name = 'oldest_postgres'", postgres.ErrNewer, "version 999"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			dsn := server.Database(t, test.template)
			execute(t, dsn, test.change)
			_, err := postgres.Open(t.Context(), dsn, nil)
			wantError(t, "Open", err, test.want, test.says)
		})
	}
}

// The store rejects a session id that PostgreSQL cannot store. In other texts it replaces
// such characters. Messages keep every character that JSON can represent.
func TestTexts(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	for _, id := range []string{"a\x00b", "a\xffb"} {
		if _, err := s.Open(ctx, id); err == nil {
			t.Errorf("a session %q was opened", id)
		}
		for _, err := range s.Read(ctx, id, 0) {
			wantError(t, "Read", err, belay.ErrNotFound)
		}
	}
	h := hold(t, s, "a")
	c := say("a", h.Epoch, 1, "zero \x00 byte")
	c.Calls = []belay.CallRecord{{Message: 1, ID: "c\x00", Tool: "t\xff\xfe", State: belay.CallDone, Input: []byte("{\"x\":\"\xff\\u0000\"}"), Result: &belay.Result{Text: "\x00"}}}
	c.Messages[0].Kind, c.Messages[0].Role = belay.KindAssistant, belay.RoleAssistant
	c.Approvals = []belay.Approval{{ID: "ap", Session: "a", Reason: "because \x00 it \xff says"}}
	commit(t, s, c)
	if got := texts(t, s, "a"); !slices.Equal(got, []string{"zero \x00 byte"}) {
		t.Errorf("the message says %q", got)
	}
	if err := s.Release(ctx, "a", h.Epoch); err != nil {
		t.Fatal(err)
	}
	stored := hold(t, s, "a")
	call := stored.Calls[0]
	if call.ID != "c\ufffd" || call.Tool != "t\ufffd\ufffd" || string(call.Input) != "{\"x\":\"\ufffd\\u0000\"}" || call.Result.Text != "\x00" {
		t.Errorf("the call is %+v, its input %s", call, call.Input)
	}
	if got := stored.Approvals[0].Reason; got != "because \ufffd it \ufffd says" {
		t.Errorf("the reason is %q", got)
	}
	err := s.Queue().Enqueue(ctx, run("asked", hook.Completed), []hook.Job{{ID: "j", Key: "k", Handler: "h", Reference: "zero \x00"}})
	if err == nil {
		t.Error("a job with a NUL was stored")
	}
	if err := s.Queue().Enqueue(ctx, run("asked", hook.Completed), []hook.Job{{ID: "j", Key: "k", Handler: "h", Reference: `it is spelled \u0000`}}); err != nil {
		t.Error(err)
	}
}

// Queries are rewritten for PostgreSQL.
func TestSpelling(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"SELECT ?1, ?2, ?1": "SELECT $1, $2, $1", "a = ? AND b = ?": "a = $1 AND b = $2", "?12": "$12", "": "", "nothing": "nothing",
	} {
		if got := postgres.Spell(from); got != want {
			t.Errorf("%q becomes %q, want %q", from, got, want)
		}
	}
}

// If writes deadlock, the store repeats them, and the callers get no error.
func TestCrossing(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	hold(t, s, "a")
	hold(t, s, "b")
	var both, all sync.WaitGroup
	both.Add(2)
	errs := make([]error, 2)
	for i, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		all.Go(func() {
			var once sync.Once
			errs[i] = s.Crossing(ctx, order[0], func() {
				once.Do(both.Done)
				both.Wait() // each write has locked one session and needs the other
			}, order[1])
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// execute runs a statement on a database.
func execute(t testing.TB, dsn, change string) {
	t.Helper()
	conn := connect(t, dsn)
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), change); err != nil {
		t.Fatal(err)
	}
}
