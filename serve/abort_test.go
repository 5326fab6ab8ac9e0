package serve_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
)

// turnIDs returns the ids of the turns of a session, from the stored events.
func (w *world) turnIDs(session string, count int) []string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var ids []string
	err := w.follow(ctx, "admin", "/v1/sessions/"+session+"/events", "", func(e event) error {
		var data belay.Event
		if err := json.Unmarshal([]byte(e.data), &data); err != nil {
			return err
		}
		if e.kind == string(belay.EventTurnStart) && data.Message != nil {
			ids = append(ids, data.Turn)
		}
		if len(ids) == count {
			return errStop
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

// A request to abort a turn never aborts another turn, whichever process runs it.
//
// SPEC V-02
func TestAbortsAreAimed(t *testing.T) {
	t.Parallel()
	for name, elsewhere := range map[string]bool{"in this process": false, "in another process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user := t.TempDir()
			w := newWorld(t, nil, func(h *host.Options, s *serve.Options) {
				if h.UserDir = user; elsewhere {
					s.Workers = 0
				}
			})
			w.model.asked = make(chan string, 10)
			if elsewhere {
				w.workElsewhere(user)
			}
			id := w.newSession()
			w.turn("admin", id, "hello")
			w.call("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "block"}, nil)
			<-w.model.asked
			turns := w.turnIDs(id, 2)
			abort := "/v1/sessions/" + id + "/abort"
			for _, wrong := range []string{turns[0], "nothing"} {
				if p := w.send("admin", "POST", abort, map[string]any{"turn": wrong}, nil).problem(t); p.Status != 409 || p.Code != "turn.none" {
					t.Errorf("a request for the turn %s gives %+v, want 409", wrong, p)
				}
			}
			var s session
			if w.call("admin", "GET", "/v1/sessions/"+id, nil, &s); s.State != "running" {
				t.Fatalf("the session is %s, want it running", s.State)
			}
			w.call("admin", "POST", abort, map[string]any{"turn": turns[1]}, nil)
			eventually(t, "the turn is aborted", func() bool {
				w.call("admin", "GET", "/v1/sessions/"+id, nil, &s)
				return s.State == string(belay.EndAborted)
			})
		})
	}
}
