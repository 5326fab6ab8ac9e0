package postgres_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/store/internal/sqltest"
	"github.com/belay-run/belay/store/postgres"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(childTask); what != "" {
		os.Exit(child(what))
	}
	os.Exit(withServer(m))
}

// server is the server of the tests. It has a template database with an empty store.
var server *pgtest.Server

const template = "belay_template"

// withServer starts the server, runs the tests and stops the server.
func withServer(m *testing.M) (code int) {
	var err error
	if server, err = pgtest.Start(nil); err != nil {
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
	if err := s.Close(); err != nil {
		return failed(err)
	}
	code = m.Run()
	server.Quiet()
	if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/belay-run/belay/internal/pgtest.attend")); err != nil && code == 0 {
		return failed(err)
	}
	return code
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func open(t testing.TB, opts *postgres.Options) *postgres.Store {
	t.Helper()
	return openDSN(t, server.Database(t, template), opts)
}

// openDSN opens the store in a database. The store is closed when the test ends.
func openDSN(t testing.TB, dsn string, opts *postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), dsn, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

// tampered has the stores whose tables a test has changed behind the store's back.
var tampered sync.Map

func closeStore(t testing.TB, s *postgres.Store) {
	t.Helper()
	if _, ok := tampered.Load(s); !ok {
		// Whatever the test has done, the audit chain must match. An error means that the
		// test has closed or damaged the store.
		if v, err := s.VerifyAudit(context.Background(), nil); err == nil && len(v.Problems) > 0 {
			t.Errorf("the audit chain does not match: %+v", v.Problems)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// These helpers are shared by the tests of all SQL stores.
var (
	hold       = sqltest.Hold
	say        = sqltest.Say
	commit     = sqltest.Commit
	texts      = sqltest.Texts
	run        = sqltest.Run
	appendRuns = sqltest.AppendRuns
	states     = sqltest.States
	wantError  = sqltest.WantError
	wantStates = sqltest.WantStates
	held       = sqltest.Held
	noteTool   = sqltest.NoteTool
	pass       = sqltest.Pass
)

// backend makes stores for the tests in package sqltest.
var backend = &sqltest.Backend{
	Open: func(t testing.TB, opts *sqltest.Options) sqltest.Store { return open(t, own(opts)) },
	Reopen: func(t testing.TB, s sqltest.Store, opts *sqltest.Options) sqltest.Store {
		return openDSN(t, s.(*postgres.Store).DSN(), own(opts))
	},
	Tables: func(t testing.TB, s sqltest.Store) map[string]string { return dumpTables(t, s.(*postgres.Store)) },
	Fold: func(t testing.TB, s sqltest.Store, runs []hook.Run) {
		tampered.Store(s, true) // this version writes no folded rows, so the chain does not have them
		if err := s.(*postgres.Store).AppendFolded(t.Context(), runs); err != nil {
			t.Fatal(err)
		}
	},
	Private: func(t testing.TB) (sqltest.Store, func() ([]byte, error)) {
		private := privateServer(t)
		return openDSN(t, private.Database(t, "template1"), nil), func() ([]byte, error) { return dumpFiles(private) }
	},
}

func own(opts *sqltest.Options) *postgres.Options {
	if opts == nil {
		return nil
	}
	return &postgres.Options{MaxJobs: opts.MaxJobs, Workers: opts.Workers, JobPoll: opts.JobPoll, Grace: opts.Grace, Logger: opts.Logger}
}

// privateServer starts a server that no other test uses. Its files and its log contain only
// data of this test.
func privateServer(t testing.TB) *pgtest.Server {
	t.Helper()
	private, err := pgtest.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := private.Stop(); err != nil {
			t.Error(err)
		}
	})
	return private
}
