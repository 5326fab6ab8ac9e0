// Package sqltest contains helpers that the tests of the SQL stores share.
package sqltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Store is a store on an SQL database.
type Store interface {
	belay.TurnStore
	belay.ListStore
	belay.JournalStore
	Close() error
	// Expire makes the holder of a session count as gone.
	Expire(ctx context.Context, session string) error
}

// Hold opens a session and fails the test on an error.
func Hold(t testing.TB, s Store, session string) *belay.Stored {
	t.Helper()
	stored, err := s.Open(context.Background(), session)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// Say returns a commit that adds a user message.
func Say(session string, epoch, seq int64, text string) *belay.Commit {
	return &belay.Commit{Session: session, Epoch: epoch, Messages: []*belay.Message{
		{Seq: seq, Turn: "turn", Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text(text)}, Time: time.Now()},
	}}
}

// Commit commits and fails the test on an error.
func Commit(t testing.TB, s Store, c *belay.Commit) {
	t.Helper()
	if err := s.Commit(context.Background(), c); err != nil {
		t.Fatal(err)
	}
}

// Texts returns the texts of a session's messages.
func Texts(t testing.TB, s Store, session string) (all []string) {
	t.Helper()
	for m, err := range s.Read(context.Background(), session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Text())
	}
	return all
}

// Run returns a hook run for tests.
func Run(id string, state hook.State) hook.Run {
	r := hook.Run{
		ID: id, Subscription: "sample", Phase: "tool.pre", State: state, Scope: hook.Scope{Session: "a", Turn: "turn", Step: 1}, Started: time.Now(),
	}
	if state.Final() {
		r.Ended = r.Started
	}
	return r
}

// AppendRuns appends runs and fails the test on an error.
func AppendRuns(t testing.TB, s Store, runs ...hook.Run) {
	t.Helper()
	if err := s.Journal().Append(context.Background(), runs); err != nil {
		t.Fatal(err)
	}
}

// States lists runs in the form "id state".
func States(t testing.TB, s Store, filter hook.Filter) (all []string) {
	t.Helper()
	for r, err := range s.Journal().(hook.ListJournal).List(context.Background(), filter) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(r.ID, " ", r.State))
	}
	return all
}

// WantError asserts that an error wraps want and that its text contains says.
func WantError(t testing.TB, what string, err, want error, says ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s gives %v, want an error that is %v", what, err, want)
		return
	}
	for _, word := range says {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s gives %q, which does not contain %q", what, err, word)
		}
	}
}

// WantStates asserts the ids and states of all stored runs, in any order.
func WantStates(t testing.TB, s Store, want ...string) {
	t.Helper()
	got := States(t, s, hook.Filter{})
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the runs are %q, want %q", got, want)
	}
}

// Held lists the sessions that are held.
func Held(t testing.TB, s Store) (all []string) {
	t.Helper()
	for info, err := range s.Sessions(context.Background(), belay.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if info.Held {
			all = append(all, info.ID)
		}
	}
	return all
}
