package sqlite_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/store/sqlite"
)

// Changes sees what another process does, also if the time of the last change does not show
// it: a change while the clock is behind, and the deletion of the session.
//
// SPEC V-03
func TestChangesByAnotherProcess(t *testing.T) {
	t.Parallel()
	// idle lets the pause after a read end, after which Changes reads again in any case. If
	// the machine is so slow that the pause lasts longer, the test only proves less.
	idle := func() { <-time.After(100 * time.Millisecond) }
	path := newFile(t)
	watcher, other := openFile(t, path, &sqlite.Options{Poll: time.Millisecond}), openFile(t, path, &sqlite.Options{Clock: hooktest.NewClock(time.Now().Add(-24 * time.Hour))})
	describe := func(session string) {
		t.Helper()
		title := "a session"
		if err := other.Describe(t.Context(), session, belay.SessionUpdate{Title: &title}); err != nil {
			t.Fatal(err)
		}
	}
	describe("watched")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen, ended := make(chan belay.SessionInfo, 100), make(chan error, 1)
	go func() {
		var failure error
		for info, err := range watcher.Changes(ctx, "watched") {
			if failure = err; err == nil {
				seen <- info
			}
		}
		ended <- failure
	}()
	<-seen // the current state
	idle()
	held, err := other.Open(t.Context(), "watched")
	if err != nil {
		t.Fatal(err)
	}
	user := &belay.Message{Seq: 1, Turn: "1", Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text("hello")}}
	if err := other.Commit(t.Context(), &belay.Commit{Session: "watched", Epoch: held.Epoch, Messages: []*belay.Message{user}}); err != nil {
		t.Fatal(err)
	}
	for last := int64(0); last < 1; {
		select {
		case info := <-seen:
			last = info.Last
		case err := <-ended:
			t.Fatalf("it ended before the message: %v", err)
		}
	}
	idle()
	if err := errors.Join(other.Release(t.Context(), "watched", held.Epoch), other.Delete(t.Context(), "watched")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, belay.ErrNotFound) {
		t.Errorf("it ended with %v, want ErrNotFound", err)
	}
}
