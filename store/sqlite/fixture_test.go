package sqlite_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/store/internal/sqltest"
	"github.com/belay-run/belay/store/sqlite"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(childTask); what != "" {
		os.Exit(child(what))
	}
	goleak.VerifyTestMain(m)
}

// newFile makes a file with an empty store.
var newFile = filetest.Copies("belay.db", func(path string) error {
	s, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	return s.Close()
})

func open(t testing.TB, opts *sqlite.Options) *sqlite.Store {
	t.Helper()
	return openFile(t, newFile(t), opts)
}

// openFile opens the store in a file. The store is closed when the test ends.
func openFile(t testing.TB, path string, opts *sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

// tampered has the stores whose tables a test has changed behind the store's back.
var tampered sync.Map

func closeStore(t testing.TB, s *sqlite.Store) {
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
		return openFile(t, s.(*sqlite.Store).Path(), own(opts))
	},
	Tables: func(t testing.TB, s sqltest.Store) map[string]string { return dumpTables(t, s.(*sqlite.Store)) },
	Private: func(t testing.TB) (sqltest.Store, func() ([]byte, error)) {
		s := open(t, nil)
		return s, func() ([]byte, error) { return dumpFiles(s.Path()) }
	},
}

func own(opts *sqltest.Options) *sqlite.Options {
	if opts == nil {
		return nil
	}
	return &sqlite.Options{MaxJobs: opts.MaxJobs, Workers: opts.Workers, JobPoll: opts.JobPoll, Grace: opts.Grace, Logger: opts.Logger}
}
