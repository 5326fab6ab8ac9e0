package serve_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
)

// Sessions are found by their state, their agent, and a text in the title or the first message.
// A row has what a list shows.
//
// SPEC V-02
func TestFindSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{
		".belay/agents/reviewer.yaml": "name: reviewer\ndescription: reviews changes\nprompt: You review changes.\ntools: [read]\n",
	}, strict)
	w.model.asked = make(chan string, 1)
	made := make(map[string]string) // names by id
	add := func(name, task, agent string) {
		id := w.newSession()
		made[id] = name
		w.call("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": task, "agent": agent, "wait": "end"}, nil)
	}
	add("idle", "Tidy the CHANGELOG", "main")
	add("failed", "fail no model today", "main")
	add("waiting", needsApproval, "main")
	add("reviewed", "look at it", "reviewer")
	running := w.newSession()
	made[running] = "running"
	w.call("admin", "POST", "/v1/sessions/"+running+"/turns", map[string]any{"text": "block"}, nil)
	<-w.model.asked
	defer close(w.model.gate)
	titled := w.newSession()
	made[titled] = "titled"
	w.call("admin", "PATCH", "/v1/sessions/"+titled, map[string]any{"title": "Größe of the CHANGELOG"}, nil)
	for query, want := range map[string]string{
		"state=running":              "running",
		"state=waiting":              "waiting",
		"state=failed":               "failed",
		"state=idle":                 "titled reviewed idle",
		"agent=reviewer":             "reviewed",
		"text=changelog":             "titled idle",
		"text=GR%C3%96SSE":           "",
		"text=gr%C3%96%C3%9Fe":       "titled",
		"state=idle&text=changelog":  "titled idle",
		"state=failed&agent=nobody":  "",
		"state=waiting&text=call+wr": "waiting",
	} {
		var list api.SessionList
		w.call("admin", "GET", "/v1/sessions?"+query, nil, &list)
		var got []string
		for i := range list.Sessions {
			s := &list.Sessions[i]
			got = append(got, made[s.ID])
			if want := map[bool]int{true: 1}[made[s.ID] == "waiting"]; s.Pending != want {
				t.Errorf("session %s has %d pending approvals, want %d", made[s.ID], s.Pending, want)
			}
			if made[s.ID] == "idle" && (s.Agent != "main" || s.Turns != 1 || s.Usage.In != 10 || s.Title != "Tidy the CHANGELOG") {
				t.Errorf("the row is %+v", s)
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	if p := w.send("admin", "GET", "/v1/sessions?state=odd", nil, nil).problem(t); p.Status != 422 || p.Field != "/state" {
		t.Errorf("a state that does not exist: %+v", p)
	}
}

// A search that finds little stops after a bounded amount of work, and the next page goes on.
// Together the pages miss nothing.
//
// SPEC V-02
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(_ *host.Options, o *serve.Options) { o.Rate = 1e9 })
	const sessions = 4500
	var making sync.WaitGroup
	const together = 100 // the store has one commit for those that come together
	for first := range together {
		making.Go(func() {
			for i := first; i < sessions; i += together {
				title := "plain"
				if i%2000 == 7 {
					title = "needle"
				}
				w.describe(fmt.Sprintf("s%05d", i), title)
			}
		})
	}
	making.Wait()
	found, pages, after := 0, 0, ""
	for {
		var list api.SessionList
		w.call("admin", "GET", "/v1/sessions?text=needle&limit=50&after="+after, nil, &list)
		pages++
		found += len(list.Sessions)
		if list.Partial != (list.Next != "") {
			t.Fatalf("partial is %v, and next is %q", list.Partial, list.Next)
		}
		if after = list.Next; after == "" {
			break
		}
	}
	if found != 3 || pages != 3 {
		t.Errorf("%d sessions on %d pages, want 3 on 3", found, pages)
	}
}

// describe makes a session with a title, without a request.
func (w *world) describe(id, title string) {
	w.t.Helper()
	if err := w.host.Store().(belay.ManageStore).Describe(w.t.Context(), id, belay.SessionUpdate{Title: &title}); err != nil {
		w.t.Error(err)
	}
}
