package crash_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay/internal/crashtest"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/store/postgres"
)

// serverDSN is the environment variable that passes the server's DSN to child processes.
// Its database name is "DATABASE", which dsnOf replaces.
const serverDSN = "BELAY_POSTGRES_DSN"

const template = "belay_template"

func TestMain(m *testing.M) {
	crashtest.Child(open)
	os.Exit(withServer(m))
}

// withServer starts a server, creates a template database with an empty store, and runs the
// tests.
func withServer(m *testing.M) (code int) {
	server, err := pgtest.Start(nil)
	if err != nil {
		return failed(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			code = failed(err)
		}
	}()
	dsn, err := server.Create(context.Background(), template, "template1")
	if err != nil {
		return failed(err)
	}
	s, err := postgres.Open(context.Background(), dsn, nil)
	if err != nil {
		return failed(err)
	}
	if err := errors.Join(s.Close(), os.Setenv(serverDSN, server.DSN("DATABASE"))); err != nil {
		return failed(err)
	}
	return m.Run()
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func dsnOf(database string) string {
	return strings.Replace(os.Getenv(serverDSN), "DATABASE", database, 1)
}

// crashDatabase returns the DSN of the database for a directory. It creates the database if
// necessary.
func crashDatabase(ctx context.Context, dir string) (string, error) {
	sum := sha256.Sum256([]byte(dir))
	name := "crash_" + hex.EncodeToString(sum[:8])
	conn, err := pgx.Connect(ctx, dsnOf("postgres"))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	var made bool
	if err := conn.QueryRow(ctx, "SELECT count(*) > 0 FROM pg_database WHERE datname = $1", name).Scan(&made); err != nil {
		return "", err
	}
	if !made {
		_, err = conn.Exec(ctx, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy", name, template))
	}
	return dsnOf(name), err
}

// A process can end at any point. Then nothing is lost, and nothing is done twice.
//
// SPEC L-01, L-02, J-03, J-04, J-05, P-08
func TestCrash(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, open, false)
}

// A process can be killed while a person is asked. The question is still stored. Another
// process can store the decision, and another can resume the turn.
//
// SPEC P-08, P-09, P-10
func TestCrashApprovals(t *testing.T) {
	t.Parallel()
	crashtest.RunApprovals(t, open)
}
