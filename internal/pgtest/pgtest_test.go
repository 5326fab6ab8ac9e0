package pgtest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay/internal/pgtest"
)

var server *pgtest.Server

func TestMain(m *testing.M) {
	var err error
	if server, err = pgtest.Start(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// ask runs a query that returns one value.
func ask[T any](t testing.TB, dsn, query string) (value T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(t.Context(), query).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// Each test has its own database, with the content of the template. Committed data survives
// a restart of the server.
func TestDatabases(t *testing.T) { //nolint:paralleltest // it restarts the server
	template := server.Database(t, "template1")
	name := ask[string](t, template, "SELECT current_database()")
	conn, err := pgx.Connect(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE TABLE things (id int); INSERT INTO things VALUES (7)"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, second := server.Database(t, name), server.Database(t, name)
	if first == second {
		t.Fatalf("two tests have the database %s", first)
	}
	ask[int](t, first, "UPDATE things SET id = 8 RETURNING id")
	cut := false
	if err := server.Restart(func() {
		_, err := pgx.Connect(t.Context(), first)
		cut = err != nil
	}); err != nil {
		t.Fatal(err)
	}
	if !cut {
		t.Error("the server answers while it is restarted")
	}
	if got := ask[int](t, first, "SELECT id FROM things"); got != 8 {
		t.Errorf("the first database has %d, want what was written to it", got)
	}
	if got := ask[int](t, second, "SELECT id FROM things"); got != 7 {
		t.Errorf("the second database has %d, want what the template has", got)
	}
}
