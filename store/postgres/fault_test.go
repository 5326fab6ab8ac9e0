package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/store/postgres"
)

// Each problem of the server has its own error. Then nothing of the commit is stored, and
// reading still works. When the problem is solved, commits work again.
//
// SPEC L-14
func TestServerFaults(t *testing.T) {
	t.Parallel()
	for code, test := range map[string]struct {
		kind error
		says string
	}{
		"53100": {postgres.ErrFull, "free some space"},
		"53200": {nil, "out of memory"},
		"25006": {postgres.ErrReadOnly, "primary"},
		"XX001": {postgres.ErrCorrupt, "restore a backup"},
		"XX002": {postgres.ErrCorrupt, "restore a backup"},
		"42501": {postgres.ErrRefused, "GRANT"},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			ctx, s := t.Context(), open(t, nil)
			epoch := hold(t, s, "a").Epoch
			commit(t, s, say("a", epoch, 1, "one"))
			execute(t, s.DSN(), "CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''"+code+"'', MESSAGE = ''as the server says''; END'; "+
				"CREATE TRIGGER fault BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION fault()")
			err := s.Commit(ctx, say("a", epoch, 2, "two"))
			wantError(t, "a commit", err, errorOr(test.kind, err), "as the server says", test.says)
			for _, other := range []error{postgres.ErrFull, postgres.ErrReadOnly, postgres.ErrCorrupt, postgres.ErrRefused, postgres.ErrUnreachable} {
				if errors.Is(err, other) != (other == test.kind) { //nolint:errorlint // it is a sentinel
					t.Errorf("it is %v: %t", other, errors.Is(err, other))
				}
			}
			if got := texts(t, s, "a"); !slices.Equal(got, []string{"one"}) {
				t.Errorf("%q is stored, want the first message", got)
			}
			execute(t, s.DSN(), "DROP TRIGGER fault ON messages")
			commit(t, s, say("a", epoch, 2, "two"))
		})
	}
}

// errorOr returns err, or other if err is nil.
func errorOr(err, other error) error {
	if err == nil {
		return other
	}
	return err
}

// A damaged page on the server's disk is reported as damage. Other tables still work.
//
// SPEC L-14
func TestDamagedPage(t *testing.T) {
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
	ctx := t.Context()
	dsn, err := private.Create(ctx, "belay", "template1")
	if err != nil {
		t.Fatal(err)
	}
	s := openDSN(t, dsn, nil)
	epoch := hold(t, s, "a").Epoch
	commit(t, s, say("a", epoch, 1, "one"))
	path := ""
	if err := s.QueryRow(ctx, "SELECT pg_relation_filepath('messages')", &path); err != nil {
		t.Fatal(err)
	}
	err = private.Restart(func() {
		file := filepath.Join(private.Data(), path)
		data, err := os.ReadFile(file)
		if err != nil || len(data) == 0 {
			t.Errorf("%d bytes, %v", len(data), err)
			return
		}
		if err := os.WriteFile(file, bytes.Repeat([]byte{0xa5}, len(data)), 0o600); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Read(ctx, "a", 0) {
		wantError(t, "reading the session", err, postgres.ErrCorrupt, "restore a backup")
	}
	wantError(t, "a commit", s.Commit(ctx, say("a", epoch, 2, "two")), postgres.ErrCorrupt)
	hold(t, s, "b")
}

// A row that cannot be decoded is reported as damage.
//
// SPEC L-14
func TestUnreadableRow(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	epoch := hold(t, s, "a").Epoch
	commit(t, s, say("a", epoch, 1, "one"))
	if err := s.Release(context.Background(), "a", epoch); err != nil {
		t.Fatal(err)
	}
	execute(t, s.DSN(), "UPDATE messages SET body = substr(body, 2)")
	_, err := s.Open(t.Context(), "a")
	wantError(t, "opening the session", err, postgres.ErrCorrupt, "restore a backup")
}
