// Package sqltest has what the tests of the stores on SQL databases share.
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

// Hold opens a session, which must succeed.
func Hold(t testing.TB, s Store, session string) *belay.Stored {
	t.Helper()
	stored, err := s.Open(context.Background(), session)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// Say is a commit of a person's message.
func Say(session string, epoch, seq int64, text string) *belay.Commit {
	return &belay.Commit{Session: session, Epoch: epoch, Messages: []*belay.Message{
		{Seq: seq, Turn: "turn", Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text(text)}, Time: time.Now()},
	}}
}

// Commit commits what must be accepted.
func Commit(t testing.TB, s Store, c *belay.Commit) {
	t.Helper()
	if err := s.Commit(context.Background(), c); err != nil {
		t.Fatal(err)
	}
}

// Texts reads a session.
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

// Run is a record.
func Run(id string, state hook.State) hook.Run {
	r := hook.Run{
		ID: id, Subscription: "sample", Phase: "tool.pre", State: state, Scope: hook.Scope{Session: "a", Turn: "turn", Step: 1}, Started: time.Now(),
	}
	if state.Final() {
		r.Ended = r.Started
	}
	return r
}

// AppendRuns appends what must be accepted.
func AppendRuns(t testing.TB, s Store, runs ...hook.Run) {
	t.Helper()
	if err := s.Journal().Append(context.Background(), runs); err != nil {
		t.Fatal(err)
	}
}

// States lists runs as "id state".
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

// WantError asserts what an error is, and what it says.
func WantError(t testing.TB, what string, err, want error, says ...string) {
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

// WantStates asserts which runs there are, in any order.
func WantStates(t testing.TB, s Store, want ...string) {
	t.Helper()
	got := States(t, s, hook.Filter{})
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the runs are %q, want %q", got, want)
	}
}

// Held lists the sessions that somebody has open.
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
