package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/filetest"
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

// open opens a store in a file of its own.
func open(t testing.TB, opts *sqlite.Options) *sqlite.Store {
	t.Helper()
	return openFile(t, newFile(t), opts)
}

// openFile opens the store in a file, and closes it with the test.
func openFile(t testing.TB, path string, opts *sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t testing.TB, s *sqlite.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// hold opens a session, which must succeed.
func hold(t testing.TB, s *sqlite.Store, session string) *belay.Stored {
	t.Helper()
	stored, err := s.Open(context.Background(), session)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// say is a commit of a person's message.
func say(session string, epoch, seq int64, text string) *belay.Commit {
	return &belay.Commit{Session: session, Epoch: epoch, Messages: []*belay.Message{
		{Seq: seq, Turn: "turn", Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text(text)}, Time: time.Now()},
	}}
}

// commit commits what must be accepted.
func commit(t testing.TB, s *sqlite.Store, c *belay.Commit) {
	t.Helper()
	if err := s.Commit(context.Background(), c); err != nil {
		t.Fatal(err)
	}
}

// texts reads a session.
func texts(t testing.TB, s *sqlite.Store, session string) (all []string) {
	t.Helper()
	for m, err := range s.Read(context.Background(), session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Text())
	}
	return all
}

// run is a record.
func run(id string, state hook.State) hook.Run {
	r := hook.Run{
		ID: id, Subscription: "sample", Phase: "tool.pre", State: state, Scope: hook.Scope{Session: "a", Turn: "turn", Step: 1}, Started: time.Now(),
	}
	if state.Final() {
		r.Ended = r.Started
	}
	return r
}

// appendRuns appends what must be accepted.
func appendRuns(t testing.TB, s *sqlite.Store, runs ...hook.Run) {
	t.Helper()
	if err := s.Journal().Append(context.Background(), runs); err != nil {
		t.Fatal(err)
	}
}

// states lists runs as "id state".
func states(t testing.TB, s *sqlite.Store, filter hook.Filter) (all []string) {
	t.Helper()
	for r, err := range s.Journal().(hook.ListJournal).List(context.Background(), filter) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(r.ID, " ", r.State))
	}
	return all
}

// wantError asserts what an error is, and what it says.
func wantError(t testing.TB, what string, err, want error, says ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s gives %v, want an error that is %v", what, err, want)
		return
	}
	for _, word := range says {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s gives %q, which does not say %q", what, err, word)
		}
	}
}
