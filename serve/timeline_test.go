package serve_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

// timelineOf reads the timeline of a turn.
func (w *world) timelineOf(session, turn string, at int64) (out api.Timeline) {
	w.t.Helper()
	w.call("admin", "GET", fmt.Sprintf("/v1/sessions/%s/turns/%s/timeline?at=%d", session, turn, at), nil, &out)
	return out
}

// A timeline has the model calls, the tool calls, every hook run and the wait for a person on one
// axis of time. Denials are marked.
//
// SPEC V-02
func TestTimeline(t *testing.T) {
	t.Parallel()
	files := asksBeforeWrites()
	files[".belay/hooks/more.yaml"] = "hooks:\n  - {id: no-edits, phase: tool.pre, match: {tools: [edit]}, action: {deny: not here}}\n  - {id: before, phase: model.pre, action: log}\n  - {id: done, phase: tool.post, action: log}\n"
	w := newWorld(t, files, nil)
	id := w.newSession()
	parked := w.turn("admin", id, "call edit {\"path\": \"notes.md\", \"old_string\": \"old\", \"new_string\": \"new\"}\ncall write {\"path\": \"new.md\", \"content\": \"x\"}").Result
	turn := parked.Turn
	open := w.timelineOf(id, turn, 0)
	if open.Turn.State != "parked" || !open.Turn.End.IsZero() || open.Turn.Calls != 2 || open.Turn.Failed != 1 {
		t.Errorf("the open turn is %+v", open.Turn)
	}
	var approval api.Approval
	w.call("admin", "GET", "/v1/approvals/"+parked.Approvals[0], nil, &approval)
	w.call("admin", "POST", "/v1/approvals/"+approval.ID+"/decision", map[string]any{"hash": approval.Hash, "allow": true}, nil)
	var s session
	eventually(t, "the turn continues", func() bool {
		w.call("admin", "GET", "/v1/sessions/"+id, nil, &s)
		return s.State == "done"
	})
	done := w.timelineOf(id, turn, 0)
	find := func(l *api.Timeline, kind, name string) (found []api.Span) {
		for _, s := range l.Spans {
			if s.Kind == kind && s.Name == name {
				found = append(found, s)
			}
		}
		return found
	}
	for i, s := range done.Spans {
		if i > 0 && s.Begin.Before(done.Spans[i-1].Begin) {
			t.Errorf("the spans are not sorted: %+v", s)
		}
		if s.Begin.IsZero() || s.End.Before(s.Begin) || s.Outcome == "running" || s.Outcome == "waiting" {
			t.Errorf("a span of an ended turn is %+v", s)
		}
	}
	models := find(&done, api.SpanModel, "test/model")
	if len(models) != 3 {
		t.Fatalf("there are %d model calls, want 3: %+v", len(models), done.Spans)
	}
	for _, m := range models {
		if m.Usage == nil || m.Usage.In != 10 || !m.Estimated || m.Attempts != 1 || m.Seq == 0 {
			t.Errorf("a model call is %+v", m)
		}
	}
	if e := find(&done, api.SpanTool, "edit"); len(e) != 1 || e[0].Outcome != "denied" || e[0].Class != string(belay.ClassDenied) || !e[0].End.Equal(e[0].Begin) {
		t.Errorf("the denied call is %+v", e)
	}
	if h := find(&done, api.SpanHook, "project/no-edits"); len(h) != 1 || h[0].Outcome != "denied" || h[0].Run == "" || h[0].Dispatch == "" || h[0].Phase != "tool.pre" || h[0].Estimated {
		t.Errorf("the hook that denied is %+v", h)
	}
	waits := find(&open, api.SpanApproval, "write")
	if len(waits) != 1 || waits[0].Outcome != "waiting" || !waits[0].End.IsZero() {
		t.Errorf("the open approval is %+v", waits)
	}
	if tool := find(&open, api.SpanTool, "write"); len(tool) != 1 || tool[0].Outcome != "waiting" || tool[0].Approval != approval.ID {
		t.Errorf("the call that waits is %+v", tool)
	}
	waited, wrote := find(&done, api.SpanApproval, "write"), find(&done, api.SpanTool, "write")
	if len(waited) != 1 || len(wrote) != 1 || waited[0].Outcome != "ok" || waited[0].By != "token admin" || wrote[0].Outcome != "ok" || wrote[0].Begin.Before(waited[0].End) {
		t.Errorf("the approval is %+v, and the call after it %+v", waited, wrote)
	}
	if p := w.send("admin", "GET", "/v1/sessions/"+id+"/turns/nothing/timeline", nil, nil).problem(t); p.Status != http.StatusNotFound {
		t.Errorf("a turn that does not exist: %+v", p)
	}
}

// The turns of a session are listed from the newest, page by page, and a turn is found with and
// without the number of one of its messages.
//
// SPEC V-02
func TestTurnsOfASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	id := w.newSession()
	for i := range 5 {
		w.turn("admin", id, fmt.Sprintf("call list {}\nnumber %d", i))
	}
	w.turn("admin", id, "fail no model today")
	var got []api.Turn
	for before := int64(0); ; {
		var page api.TurnList
		w.call("admin", "GET", fmt.Sprintf("/v1/sessions/%s/turns?limit=2&before=%d", id, before), nil, &page)
		got = append(got, page.Turns...)
		if before = page.Next; before == 0 {
			break
		}
	}
	if len(got) != 6 || got[0].State != "error" {
		t.Fatalf("the turns are %+v", got)
	}
	for i, turn := range got[1:] {
		if want := fmt.Sprintf("number %d", 4-i); turn.State != "done" || !strings.HasSuffix(turn.Text, want) || turn.Steps != 2 || turn.Calls != 1 || turn.Usage.In != 20 || turn.Last-turn.First != 3 {
			t.Errorf("turn %d is %+v, want %s", i, turn, want)
		}
		for _, at := range []int64{0, turn.First, turn.Last, got[0].First} {
			if l := w.timelineOf(id, turn.ID, at); l.Turn.First != turn.First || l.Turn.Last != turn.Last || l.Turn.ID != turn.ID {
				t.Errorf("at %d the turn is %+v, want %+v", at, l.Turn, turn)
			}
		}
	}
}

// The messages of a session can be listed from its end.
//
// SPEC V-02
func TestMessagesFromTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	id := w.newSession()
	for range 3 {
		w.turn("admin", id, "hello")
	}
	var seen []int64
	for before, pages := int64(0), 0; ; pages++ {
		var page api.MessageList
		w.call("admin", "GET", fmt.Sprintf("/v1/sessions/%s/messages?newest=true&limit=4&before=%d", id, before), nil, &page)
		for _, m := range page.Messages {
			seen = append(seen, m.Seq)
		}
		if before = page.Next; before == 0 {
			break
		}
	}
	if got := fmt.Sprint(seen); got != "[6 5 4 3 2 1]" {
		t.Errorf("the messages are %s", got)
	}
	for query, field := range map[string]string{"before=3": "/before", "newest=true&after=3": "/after"} {
		if p := w.send("admin", "GET", "/v1/sessions/"+id+"/messages?"+query, nil, nil).problem(t); p.Status != 422 || p.Field != field {
			t.Errorf("%s: %+v", query, p)
		}
	}
}
