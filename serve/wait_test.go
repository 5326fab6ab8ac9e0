package serve_test

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/store/sqlite"
)

// lateQueue is a store whose queue answers a request only after the turns in the queue have
// begun. So a request that waits for a turn sees the turn in the moment that is most difficult:
// it has left the queue, and the end of the turn before it was seen last.
type lateQueue struct{ *sqlite.Store }

func (s lateQueue) Queued(ctx context.Context, session string) ([]belay.QueuedTurn, error) {
	queued, err := s.Store.Queued(ctx, session)
	if ctx.Value(http.ServerContextKey) == nil { // a worker asks
		return queued, err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for err == nil && len(queued) > 0 {
		select {
		case <-tick.C:
			queued, err = s.Store.Queued(ctx, session)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return queued, err
}

// newLateWorld starts a server with a lateQueue.
func newLateWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	return newWorld(t, files, func(opts *host.Options, _ *serve.Options) {
		store, err := sqlite.Open(t.Context(), filepath.Join(opts.Dir, "late.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		opts.Store = lateQueue{store}
	})
}

// With wait=end the result is the one of the turn that the request started, and never the one
// of a turn before it.
//
// SPEC V-02
func TestWaitReturnsTheStartedTurn(t *testing.T) {
	t.Parallel()
	t.Run("the turn before it has ended", func(t *testing.T) {
		t.Parallel()
		w := newLateWorld(t, nil)
		id := w.newSession()
		w.turn("admin", id, "first")
		if r := w.turn("admin", id, "second").Result; r.Text != "done: second" {
			t.Errorf("the result is %+v", r)
		}
	})
	t.Run("the turn before it is running", func(t *testing.T) {
		t.Parallel()
		w := newLateWorld(t, nil)
		w.model.asked = make(chan string, 1)
		id := w.newSession()
		w.call("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "block"}, nil)
		<-w.model.asked
		result := make(chan started, 1)
		go func() { result <- w.turn("admin", id, "second") }()
		eventually(t, "the second turn is queued", func() bool {
			queued, err := w.host.Store().(lateQueue).Queued(context.Background(), id)
			return err == nil && len(queued) == 1
		})
		close(w.model.gate)
		if r := (<-result).Result; r.Text != "done: second" {
			t.Errorf("the result is %+v", r)
		}
	})
	t.Run("a hook blocks it before its message is stored", func(t *testing.T) {
		t.Parallel()
		w := newLateWorld(t, map[string]string{
			".belay/hooks/quiet.yaml": "hooks:\n  - {id: quiet, phase: user.prompt.submit, match: {when: 'input.text == \"forbidden\"'}, action: {deny: do not say this}}\n",
		})
		id := w.newSession()
		w.turn("admin", id, "first")
		if r := w.turn("admin", id, "forbidden").Result; r.Reason != belay.EndBlocked {
			t.Errorf("the result is %+v", r)
		}
	})
	t.Run("a hook has blocked the first turn before anybody follows it", func(t *testing.T) {
		t.Parallel()
		w := newLateWorld(t, map[string]string{
			".belay/hooks/quiet.yaml": "hooks:\n  - {id: quiet, phase: user.prompt.submit, match: {when: 'input.text == \"forbidden\"'}, action: {deny: do not say this}}\n",
		})
		id := w.newSession()
		blocked := w.turn("admin", id, "forbidden")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if r, err := w.server.Follow(ctx, id, blocked.ID); err != nil || r == nil || r.Reason != belay.EndBlocked {
			t.Errorf("the result is %+v, %v", r, err)
		}
	})
}

// The field after of a started turn leads to the events of this turn: the end of the turn
// before it is not repeated.
//
// SPEC V-02, V-03
func TestAfterSkipsTheTurnBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	id := w.newSession()
	w.turn("admin", id, "first")
	var s started
	w.call("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "second"}, &s)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var kinds []string
	err := w.follow(ctx, "admin", "/v1/sessions/"+id+"/events?after="+s.After, "", func(e event) error {
		if kinds = append(kinds, e.kind); e.kind == string(belay.EventTurnEnd) {
			return errStop
		}
		return nil
	})
	if err != nil || kinds[0] != string(belay.EventTurnStart) || s.After != "2-end-1-end_turn" {
		t.Errorf("the events after %q are %q, %v", s.After, kinds, err)
	}
	var now struct {
		Position string `json:"position"`
	}
	w.call("admin", "GET", "/v1/sessions/"+id, nil, &now)
	if now.Position != "4-end-2-end_turn" {
		t.Errorf("the position of the session is %q", now.Position)
	}
}
