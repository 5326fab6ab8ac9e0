package serve_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

// queueOf returns the ids of the queued turns of a session.
func (w *world) queueOf(session string) (ids []string) {
	w.t.Helper()
	var queue api.Queue
	w.call("admin", "GET", "/v1/sessions/"+session+"/queue", nil, &queue)
	for i := range queue.Turns {
		ids = append(ids, queue.Turns[i].ID)
	}
	return ids
}

// decideAll approves everything that waits in a session.
func (w *world) decideAll(session string) {
	w.t.Helper()
	var list api.ApprovalList
	w.call("admin", "GET", "/v1/approvals?session="+session, nil, &list)
	for i := range list.Approvals {
		a := &list.Approvals[i]
		w.call("admin", "POST", "/v1/approvals/"+a.ID+"/decision", map[string]any{"hash": a.Hash, "allow": true}, nil)
	}
}

// A message that is queued behind a parked turn stays in the queue. A client that waits for it is
// told what must be decided, also if the turn parks while the client waits. After the decision
// both turns end.
//
// SPEC V-02
func TestQueuedBehindAParkedTurn(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, w *world, id string, later api.StartedTurn) {
		t.Helper()
		r := later.Result
		if r == nil || r.Reason != belay.EndParked || !r.Queued || r.Turn != "" || len(r.Approvals) != 1 || !strings.Contains(r.Why, "earlier turn") {
			t.Fatalf("the result is %+v, want that of a turn behind a parked one", r)
		}
		if ids := w.queueOf(id); len(ids) != 1 || ids[0] != later.ID {
			t.Errorf("the queue has %q, want %q", ids, later.ID)
		}
		w.decideAll(id)
		close(w.model.gate)
		eventually(t, "the queued turn ends", func() bool {
			return strings.Contains(string(w.send("admin", "GET", "/v1/sessions/"+id+"/messages", nil, nil).body), "done: second")
		})
	}
	second := map[string]any{"text": "second", "wait": "end"}
	t.Run("the turn is parked before the message comes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, nil, strict)
		id := w.newSession()
		w.turn("admin", id, needsApproval)
		var later api.StartedTurn
		w.call("admin", "POST", "/v1/sessions/"+id+"/turns", second, &later)
		check(t, w, id, later)
	})
	t.Run("the turn parks while the client waits", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, nil, strict)
		w.model.asked = make(chan string, 3)
		id := w.newSession()
		w.call("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "block\n" + needsApproval}, nil)
		<-w.model.asked
		answers := make(chan *reply, 1)
		go func() { answers <- w.send("admin", "POST", "/v1/sessions/"+id+"/turns", second, nil) }()
		eventually(t, "the message is queued", func() bool { return len(w.queueOf(id)) == 1 })
		w.model.open <- struct{}{}
		var later api.StartedTurn
		if err := json.Unmarshal((<-answers).body, &later); err != nil {
			t.Fatal(err)
		}
		check(t, w, id, later)
	})
	t.Run("a client of OpenAI waits", func(t *testing.T) {
		t.Parallel()
		w := newOpenAIWorld(t)
		w.model.asked = make(chan string, 3)
		id := w.newSession()
		w.call("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "block\n" + needsApproval, "agent": "careful"}, nil)
		<-w.model.asked
		answers := make(chan *reply, 1)
		go func() {
			answers <- w.send("admin", "POST", "/v1/responses", map[string]any{"model": "careful", "input": "second", "conversation": id}, nil)
		}()
		eventually(t, "the message is queued", func() bool { return len(w.queueOf(id)) == 1 })
		w.model.open <- struct{}{}
		got := <-answers
		var out, read struct {
			ID         string `json:"id"`
			Status     string `json:"status"`
			Incomplete struct {
				Reason string `json:"reason"`
			} `json:"incomplete_details"`
			Belay struct {
				Approvals []string `json:"approvals"`
			} `json:"belay"`
		}
		if err := json.Unmarshal(got.body, &out); err != nil || out.Status != "incomplete" || out.Incomplete.Reason != "approval_required" || len(out.Belay.Approvals) != 1 || !strings.Contains(string(got.body), "in the queue") {
			t.Fatalf("the response is %d %s, %v", got.status, got.body, err)
		}
		w.call("admin", "GET", "/v1/responses/"+out.ID, nil, &read)
		if read.Status != "queued" {
			t.Errorf("the response is read as %q, want queued", read.Status)
		}
		w.decideAll(id)
		close(w.model.gate)
		eventually(t, "the response is complete", func() bool {
			w.call("admin", "GET", "/v1/responses/"+out.ID, nil, &read)
			return read.Status == "completed"
		})
	})
}

// A queued turn can be withdrawn: it never begins, the next one does, and a client that waits for
// it is told. A turn that has begun cannot be withdrawn.
//
// SPEC V-02
func TestWithdraw(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	w.model.asked = make(chan string, 1)
	id := w.newSession()
	path := "/v1/sessions/" + id
	var first, last api.StartedTurn
	w.call("admin", "POST", path+"/turns", map[string]any{"text": "block"}, &first)
	<-w.model.asked
	answers := make(chan *reply, 1)
	go func() {
		answers <- w.send("admin", "POST", path+"/turns", map[string]any{"text": "withdrawn", "wait": "end"}, nil)
	}()
	eventually(t, "the message is queued", func() bool { return len(w.queueOf(id)) == 1 })
	middle := w.queueOf(id)[0]
	w.call("admin", "POST", path+"/turns", map[string]any{"text": "last"}, &last)
	w.call("admin", "DELETE", path+"/queue/"+middle, nil, nil)
	if ids := w.queueOf(id); len(ids) != 1 || ids[0] != last.ID {
		t.Errorf("the queue has %q, want %q", ids, last.ID)
	}
	for rule, turn := range map[string]string{"a turn is withdrawn twice": middle, "a turn that has begun": first.ID, "a turn that does not exist": "turn-x"} {
		if p := w.send("admin", "DELETE", path+"/queue/"+turn, nil, nil).problem(t); p.Status != http.StatusNotFound || !strings.Contains(p.Detail, "/abort") {
			t.Errorf("%s: %+v", rule, p)
		}
	}
	var told api.StartedTurn
	if err := json.Unmarshal((<-answers).body, &told); err != nil || told.Result == nil || told.Result.Reason != belay.EndBlocked || !strings.Contains(told.Result.Why, "withdrawn") {
		t.Errorf("the client that waits for the withdrawn turn gets %+v, %v", told.Result, err)
	}
	close(w.model.gate)
	eventually(t, "the last turn ends", func() bool {
		return strings.Contains(string(w.send("admin", "GET", path+"/messages", nil, nil).body), "done: last")
	})
	if body := w.send("admin", "GET", path+"/messages", nil, nil).body; strings.Contains(string(body), "withdrawn") {
		t.Errorf("the withdrawn message is in the session: %s", body)
	}
}

// Of many requests that continue the same response at once, one continues its session, and each
// of the others gets a fork: no answer follows the message of another request.
//
// SPEC V-09
func TestOpenAIResponsesBranch(t *testing.T) {
	t.Parallel()
	w := newOpenAIWorld(t)
	type response struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		Belay  struct {
			Session string `json:"session"`
		} `json:"belay"`
	}
	ask := func(body map[string]any) (out response) {
		body["model"] = "main"
		r := w.send("admin", "POST", "/v1/responses", body, nil)
		if err := json.Unmarshal(r.body, &out); err != nil || r.status != http.StatusOK || out.Status != "completed" {
			t.Errorf("%v gives %d %s", body, r.status, r.body)
		}
		return out
	}
	first := ask(map[string]any{"input": "first"})
	const count = 5
	all := make(chan response, count)
	for range count {
		go func() { all <- ask(map[string]any{"input": "branch", "previous_response_id": first.ID}) }()
	}
	sessions := make(map[string]bool)
	for range count {
		sessions[(<-all).Belay.Session] = true
	}
	if len(sessions) != count || !sessions[first.Belay.Session] {
		t.Errorf("the branches are in the sessions %v, want %d with %s", sessions, count, first.Belay.Session)
	}
	for id := range sessions {
		var page struct {
			Messages []*belay.Message
		}
		w.call("admin", "GET", "/v1/sessions/"+id+"/messages", nil, &page)
		if len(page.Messages) != 4 {
			t.Errorf("session %s has %d messages, want the first two and one branch", id, len(page.Messages))
		}
	}
}
