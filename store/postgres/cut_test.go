package postgres_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/store/postgres"
)

// cut closes all connections of a store, like a short network failure.
func cut(t testing.TB, dsn string) {
	t.Helper()
	other := openDSN(t, dsn, nil)
	if err := other.Execute(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
}

// If connections are cut, the store opens new ones. Callers that write, read, list or
// follow get no error.
//
// SPEC L-02
func TestConnectionsCut(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	stored := hold(t, s, "a")
	followed := make(chan string, 10)
	following, stop := context.WithCancel(ctx)
	go func() { // ends when following is cancelled
		defer close(followed)
		for r, err := range s.Journal().(hook.FollowJournal).Follow(following, hook.Filter{}) {
			if err != nil {
				if following.Err() == nil {
					followed <- err.Error()
				}
				return
			}
			followed <- r.ID
		}
	}()
	for n := range int64(5) {
		c := say("a", stored.Epoch, n+1, "said")
		c.Runs = []hook.Run{run(string(rune('a'+n)), hook.Completed)}
		cut(t, s.DSN())
		commit(t, s, c)
		cut(t, s.DSN())
		if got := texts(t, s, "a"); int64(len(got)) != n+1 {
			t.Errorf("%d messages are read, want %d", len(got), n+1)
		}
		cut(t, s.DSN())
		if got := held(t, s); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%q are held, want a", got)
		}
		if n > 0 { // the first run may be stored before Follow begins
			for got := ""; got != string(rune('a'+n)); {
				select {
				case got = <-followed:
					if len(got) != 1 {
						t.Fatalf("who follows is told %q", got)
					}
				case <-time.After(time.Minute):
					t.Fatal("who follows is told nothing")
				}
			}
		}
	}
	stop()
	for range followed {
	}
}

// While the server is down, errors name the database and give advice, and nothing is
// stored. When the server is up again, the store still holds its sessions.
//
// SPEC L-02, J-03
func TestServerRestart(t *testing.T) {
	t.Parallel()
	private, err := pgtest.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := private.Stop(); err != nil {
			t.Error(err)
		}
	})
	dsn, err := private.Create(t.Context(), "belay", "template1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, s := t.Context(), openDSN(t, dsn, nil)
	stored := hold(t, s, "a")
	commit(t, s, say("a", stored.Epoch, 1, "before"))
	err = private.Restart(func() {
		err := s.Commit(ctx, say("a", stored.Epoch, 2, "while it is down"))
		wantError(t, "Commit", err, postgres.ErrUnreachable, "belay at /", "reconnects automatically")
		_, err = s.Open(ctx, "b")
		wantError(t, "Open", err, postgres.ErrUnreachable)
		wantError(t, "Append", s.Journal().Append(ctx, []hook.Run{run("lost", hook.Completed)}), postgres.ErrUnreachable)
		for _, err := range s.Read(ctx, "a", 0) {
			wantError(t, "Read", err, postgres.ErrUnreachable)
		}
		for _, err := range s.Sessions(ctx, belay.SessionFilter{}) {
			wantError(t, "Sessions", err, postgres.ErrUnreachable)
		}
		_, err = postgres.Open(ctx, dsn, nil)
		wantError(t, "Open of another store", err, postgres.ErrUnreachable)
	})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, say("a", stored.Epoch, 2, "after"))
	if got := texts(t, s, "a"); !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("the session says %q", got)
	}
	if got := states(t, s, hook.Filter{}); len(got) != 0 {
		t.Errorf("the runs are %q, want none", got)
	}
	other := openDSN(t, dsn, nil)
	_, err = other.Open(ctx, "a")
	wantError(t, "Open of what the store still holds", err, belay.ErrHeld)
}

// Errors about a DSN do not contain the password.
func TestBadDSN(t *testing.T) {
	t.Parallel()
	const secret = "planted-password"
	dsn := server.DSN("postgres")
	for rule, test := range map[string]struct {
		dsn  string
		kind error
		says string
	}{
		"no DSN":                       {"postgres://user:" + secret + "@[/x", nil, "cannot parse"},
		"words with spaces":            {"host=127.0.0.1 user=u password = " + secret + " port=abc", nil, "invalid port"},
		"words in quotes":              {"host=127.0.0.1 user=u password='" + secret + "' port=abc", nil, "invalid port"},
		"words with escapes":           {`host=127.0.0.1 user=u password='a\'` + secret + "' port=abc", nil, "invalid port"},
		"an unfinished quote":          {"host=127.0.0.1 password='" + secret, nil, "keyword/value"},
		"a setting of the URL":         {"postgres://u@h/db?password=" + secret + "&sslmode=wrong", nil, "TLS"},
		"a setting of the pool":        {"postgresql://u:" + secret + "@h/db?pool_max_conns=x", nil, "pool_max_conns"},
		"a port that is none":          {"postgres://u:" + secret + "@h:abc/db", nil, "cannot parse"},
		"digits and a / in it":         {"postgres://u:12/" + secret + "@h/db", nil, "%2F"},
		"if the password contains a /": {"postgres://u:" + secret + "/x@h/db", nil, "%2F"},
		"a ? in the password":          {"postgres://u:" + secret + "?x@h:abc/db", nil, "invalid port"},
		"a % in the password":          {"postgres://u:%zz" + secret + "@h/db", nil, "cannot parse"},
		"a space in the password":      {"postgres://u:" + secret + " x@h:abc/db", nil, "cannot parse"},
		"a database that is not there": {strings.Replace(dsn, "/postgres?", "/nowhere?", 1), postgres.ErrRefused, "create the database first"},
		"a server that is not there":   {"postgres://user:" + secret + "@127.0.0.1:1/x?connect_timeout=2", postgres.ErrUnreachable, "x at 127.0.0.1:1"},
	} {
		_, err := postgres.Open(t.Context(), test.dsn, nil)
		if err == nil || test.kind != nil && !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v, want %v that says %q and no password", rule, err, test.kind, test.says)
		}
	}
	_, err := postgres.Open(t.Context(), dsn, &postgres.Options{Takeover: -1})
	if err == nil || !strings.Contains(err.Error(), "Takeover") {
		t.Errorf("negative options: %v, want an error that names the field", err)
	}
}

// If the server is down, a session cannot be released. When the server is up again, the
// store releases the session, and others can open it. This store can also open the session
// again at once.
//
// SPEC L-02
func TestReleaseWhileDown(t *testing.T) {
	t.Parallel()
	private, err := pgtest.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := private.Stop(); err != nil {
			t.Error(err)
		}
	})
	dsn, err := private.Create(t.Context(), "belay", "template1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, s := t.Context(), openDSN(t, dsn, &postgres.Options{Takeover: takeover})
	here, there := hold(t, s, "here"), hold(t, s, "there")
	err = private.Restart(func() {
		wantError(t, "Release", s.Release(ctx, "here", here.Epoch), postgres.ErrUnreachable)
		wantError(t, "Release", s.Release(ctx, "there", there.Epoch), postgres.ErrUnreachable)
	})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, say("here", hold(t, s, "here").Epoch, 1, "again"))
	other := openDSN(t, dsn, nil)
	often := time.NewTicker(10 * time.Millisecond)
	defer often.Stop()
	for over := time.After(time.Minute); ; {
		_, err := other.Open(ctx, "there")
		if err == nil {
			return
		}
		wantError(t, "Open of a session that is not released yet", err, belay.ErrHeld)
		select {
		case <-often.C:
		case <-over:
			t.Fatal("it is never released")
		}
	}
}
