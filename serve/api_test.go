package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
)

// A client creates a session, runs turns, reads everything about them, forks and deletes.
// Every response matches the schema of its operation.
//
// SPEC V-01, V-02
func TestWholeStory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{
		".belay/hooks/no-prod.yaml":   "hooks:\n  - {id: no-prod, phase: tool.pre, match: {tools: [write]}, action: log}\n",
		".belay/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: how to tidy\n---\nTidy.\n",
		".belay/agents/reviewer.yaml": "name: reviewer\ndescription: reviews changes\nprompt: You review changes.\ntools: [read]\n",
	}, nil)
	var s session
	w.call("admin", "POST", "/v1/sessions", map[string]any{"id": "first", "title": "The first", "labels": map[string]string{"user": "ann"}}, &s)
	if diff := cmp.Diff(session{ID: "first", State: "new", Title: "The first", Labels: map[string]string{"user": "ann"}, Cursor: s.Cursor}, s); diff != "" {
		t.Error(diff)
	}
	if p := w.send("admin", "POST", "/v1/sessions", map[string]any{"id": "first"}, nil).problem(t); p.Status != 409 || p.Code != "session.exists" {
		t.Errorf("a session is created twice: %+v", p)
	}
	first := w.turn("admin", "first", "hello")
	if r := first.Result; r.Reason != belay.EndTurn || r.Text != "done: hello" || r.Usage.In != 10 || r.Turn == "" {
		t.Errorf("the result is %+v", r)
	}
	second := w.turn("admin", "first", `call write {"path": "notes.md", "content": "x"}`)
	if second.After != "2-end-1-end_turn" || second.Result.Reason != belay.EndTurn {
		t.Errorf("the second turn is %+v %+v", second, second.Result)
	}
	var messages struct {
		Messages []*belay.Message `json:"messages"`
		Next     int64            `json:"next"`
	}
	w.call("admin", "GET", "/v1/sessions/first/messages?limit=4", nil, &messages)
	if len(messages.Messages) != 4 || messages.Next != 4 || messages.Messages[0].Queued != first.ID || messages.Messages[2].Queued != second.ID {
		t.Errorf("the messages are %d, next is %d", len(messages.Messages), messages.Next)
	}
	var list struct {
		Sessions []session `json:"sessions"`
	}
	w.call("admin", "GET", "/v1/sessions?label=user=ann&limit=10", nil, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].State != "done" {
		t.Errorf("the sessions are %+v", list.Sessions)
	}
	s = session{} // decoding would add to its labels
	w.call("admin", "PATCH", "/v1/sessions/first", map[string]any{"title": "", "labels": map[string]string{"user": "", "team": "red"}}, &s)
	if s.Title != "hello" || len(s.Labels) != 1 || s.Labels["team"] != "red" {
		t.Errorf("the changed session is %+v", s)
	}
	w.call("admin", "POST", "/v1/sessions/first/fork", map[string]any{"at": 2}, &s)
	if s.Last != 2 || s.Labels["team"] != "red" {
		t.Errorf("the fork is %+v", s)
	}
	var runs struct {
		Runs []hook.Run `json:"runs"`
	}
	w.call("admin", "GET", "/v1/runs?session=first&phase=tool.pre", nil, &runs)
	if len(runs.Runs) != 1 || runs.Runs[0].Subscription != "project/no-prod" {
		t.Fatalf("the runs are %+v", runs.Runs)
	}
	var run hook.Run
	w.call("admin", "GET", "/v1/sessions/first/runs/"+runs.Runs[0].ID, nil, &run)
	var explained struct {
		Entries []hook.Explained `json:"entries"`
	}
	w.call("admin", "GET", "/v1/sessions/first/runs/"+run.ID+"/explanation", nil, &explained)
	if len(explained.Entries) != 1 || !explained.Entries[0].Asked {
		t.Errorf("the explanation is %+v", explained)
	}
	for _, path := range []string{"/v1/hooks", "/v1/hooks/plan?phase=tool.pre", "/v1/hooks/graph", "/v1/hooks/trust", "/v1/workers", "/v1/skills", "/v1/agents", "/v1/models", "/v1/usage", "/v1/self", "/v1/approvals", "/v1/approvals?all=true", "/v1/sessions/first/queue"} {
		var listed map[string]any
		w.call("admin", "GET", path, nil, &listed)
		text := fmt.Sprint(listed)
		if want := map[string]string{"/v1/hooks": "project/no-prod", "/v1/hooks/plan?phase=tool.pre": "project/no-prod", "/v1/hooks/graph": "tool.pre project/no-prod", "/v1/skills": "tidy", "/v1/agents": "reviewer", "/v1/usage": "turns:2"}[path]; !strings.Contains(text, want) {
			t.Errorf("%s has no %q: %s", path, want, text)
		}
	}
	w.call("admin", "DELETE", "/v1/sessions/first", nil, nil)
	if p := w.send("admin", "GET", "/v1/sessions/first", nil, nil).problem(t); p.Status != 404 {
		t.Errorf("a deleted session is found: %+v", p)
	}
}

// A turn that a hook denies, a parked turn and an unknown agent give the results that the
// client needs.
//
// SPEC V-02
func TestTurnsThatDoNotEndWell(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{
		".belay/hooks/quiet.yaml": "hooks:\n  - {id: quiet, phase: user.prompt.submit, action: {deny: do not say this}}\n",
	}, nil)
	id := w.newSession()
	blocked := w.turn("admin", id, "this is forbidden")
	if r := blocked.Result; r.Reason != belay.EndBlocked || !strings.Contains(r.Why, "do not say this") {
		t.Errorf("a turn that a hook blocks ends with %+v", r)
	}
	for _, test := range []struct {
		rule  string
		body  map[string]any
		field string
	}{
		{"an agent that does not exist", map[string]any{"text": "x", "agent": "nobody"}, "/agent"},
		{"a model that does not exist", map[string]any{"text": "x", "model": "nobody/x"}, "/model"},
		{"an empty text", map[string]any{"text": ""}, "/text"},
		{"a wait that does not exist", map[string]any{"text": "x", "wait": "forever"}, "/wait"},
	} {
		if p := w.send("admin", "POST", "/v1/sessions/"+id+"/turns", test.body, nil).problem(t); p.Status != 422 || p.Field != test.field {
			t.Errorf("%s: %+v", test.rule, p)
		}
	}
	for _, path := range []string{"/abort", "/resume"} {
		if p := w.send("admin", "POST", "/v1/sessions/"+id+path, nil, nil).problem(t); p.Status != 409 || p.Code != "turn.none" {
			t.Errorf("%s without a turn: %+v", path, p)
		}
	}
}

// A client aborts a running turn. The turn is stored as aborted, with the name of the token.
//
// SPEC V-02
func TestAbort(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	w.model.asked = make(chan string, 1)
	id := w.newSession()
	w.call("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "block"}, nil)
	<-w.model.asked
	w.call("admin", "POST", "/v1/sessions/"+id+"/abort", nil, nil)
	var s struct {
		State  string        `json:"state"`
		Ending *belay.Ending `json:"ending"`
	}
	eventually(t, "the turn is aborted", func() bool {
		w.call("admin", "GET", "/v1/sessions/"+id, nil, &s)
		return s.State == string(belay.EndAborted)
	})
	if s.Ending == nil || !strings.Contains(s.Ending.Why, "token admin") {
		t.Errorf("the ending is %+v, want the token in it", s.Ending)
	}
	close(w.model.gate)
	if r := w.turn("admin", id, "block").Result; r.Reason != belay.EndTurn {
		t.Errorf("the next turn ends with %+v", r)
	}
}

// A server without workers aborts a turn that a worker in another process runs, and a parked
// turn. It refuses to abort a turn of a process that is not a worker.
//
// SPEC V-01, V-02
func TestAbortElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(_ *host.Options, o *serve.Options) { o.Workers = 0 })
	w.model.asked = make(chan string, 2)
	other := openOther(t, w, w.model)
	worker, err := engine.New(other.store, engine.Of(other.agent), nil)
	if err != nil {
		t.Fatal(err)
	}
	working, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- worker.Run(working) }()
	defer func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	}()
	state := func(id string) (s session) {
		w.call("admin", "GET", "/v1/sessions/"+id, nil, &s)
		return s
	}
	id := w.newSession()
	w.call("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "block"}, nil)
	<-w.model.asked
	w.call("admin", "POST", "/v1/sessions/"+id+"/abort", nil, nil)
	eventually(t, "the worker aborts the turn", func() bool { return state(id).State == "aborted" })

	done := make(chan error, 1)
	go func() {
		_, err := other.agent.Session("mine").Turn(t.Context(), "block")
		done <- err
	}()
	<-w.model.asked
	if p := w.send("admin", "POST", "/v1/sessions/mine/abort", nil, nil).problem(t); p.Status != 409 || p.Code != "turn.elsewhere" {
		t.Errorf("aborting the turn of a process that is not a worker: %+v", p)
	}
	close(w.model.gate)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The message /compact summarizes the conversation.
//
// SPEC V-02
func TestCompact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	id := w.newSession()
	w.turn("admin", id, "hello")
	if r := w.turn("admin", id, "/compact").Result; r.Reason != belay.EndTurn || r.Text != "The conversation was summarized." {
		t.Errorf("the turn ends with %+v", r)
	}
	var page struct{ Messages []*belay.Message }
	w.call("admin", "GET", "/v1/sessions/"+id+"/messages", nil, &page)
	if !slices.ContainsFunc(page.Messages, func(m *belay.Message) bool { return m.IsCompaction }) {
		t.Error("the session has no summary")
	}
}

// needsApproval makes a turn that needs approval to write a file.
const needsApproval = `call write {"path": "notes.md", "content": "x"}`

// Approvals are listed, read with advice, and decided by id and hash, once. Then the worker
// continues the turn.
//
// SPEC V-02, P-10
func TestApprovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, strict)
	id := w.newSession()
	parked := w.turn("admin", id, needsApproval)
	if r := parked.Result; r.Reason != belay.EndParked || len(r.Approvals) != 1 {
		t.Fatalf("the turn ends with %+v, want it parked with one approval", r)
	}
	var list struct {
		Approvals []struct {
			ID, Hash, Tool, Session string
			Input                   json.RawMessage
		} `json:"approvals"`
	}
	w.call("admin", "GET", "/v1/approvals?session="+id, nil, &list)
	if len(list.Approvals) != 1 || list.Approvals[0].Tool != "write" || !strings.Contains(string(list.Approvals[0].Input), "notes.md") {
		t.Fatalf("the approvals are %+v", list.Approvals)
	}
	a := list.Approvals[0]
	var one struct {
		Advice struct{ Reach string } `json:"advice"`
	}
	w.call("admin", "GET", "/v1/approvals/"+a.ID, nil, &one)
	if one.Advice.Reach == "" {
		t.Error("the approval has no advice")
	}
	decide := func(body map[string]any) *reply {
		return w.send("admin", "POST", "/v1/approvals/"+a.ID+"/decision", body, nil)
	}
	if p := decide(map[string]any{"hash": "wrong", "allow": true}).problem(t); p.Status != 409 || p.Code != "approval.hash" {
		t.Errorf("a decision about another input: %+v", p)
	}
	for field, body := range map[string]map[string]any{
		"/pattern": {"hash": a.Hash, "allow": true, "scope": "pattern", "pattern": "read(*)"},
		"/answer":  {"hash": a.Hash, "allow": true, "answer": "yes"},
		"/scope":   {"hash": a.Hash, "allow": true, "scope": "always"},
		"/allow":   {"hash": a.Hash},
	} {
		if p := decide(body).problem(t); p.Status != 422 || p.Field != field {
			t.Errorf("%v: %+v, want the field %s", body, p, field)
		}
	}
	w.call("admin", "POST", "/v1/approvals/"+a.ID+"/decision", map[string]any{"hash": a.Hash, "allow": true}, nil)
	if p := decide(map[string]any{"hash": a.Hash, "allow": false}).problem(t); p.Status != 409 || p.Code != "approval.decided" {
		t.Errorf("a second decision: %+v", p)
	}
	var s session
	eventually(t, "the turn continues", func() bool {
		w.call("admin", "GET", "/v1/sessions/"+id, nil, &s)
		return s.State == "done"
	})
	if _, err := os.Stat(w.dir + "/notes.md"); err != nil {
		t.Error(err)
	}
}

// A question of the model is answered through its approval.
//
// SPEC V-02
func TestQuestions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	id := w.newSession()
	parked := w.turn("admin", id, `call ask_user {"question": "Where to?", "options": ["staging", "production"]}`)
	if len(parked.Result.Approvals) != 1 {
		t.Fatalf("the turn ends with %+v", parked.Result)
	}
	var one struct{ Hash, Question string }
	path := "/v1/approvals/" + parked.Result.Approvals[0]
	w.call("admin", "GET", path, nil, &one)
	if !strings.Contains(one.Question, "Where to?") {
		t.Errorf("the question is %q", one.Question)
	}
	if p := w.send("admin", "POST", path+"/decision", map[string]any{"hash": one.Hash, "allow": true}, nil).problem(t); p.Field != "/answer" {
		t.Errorf("a question without an answer: %+v", p)
	}
	if p := w.send("admin", "POST", path+"/decision", map[string]any{"hash": one.Hash, "allow": true, "answer": "the moon"}, nil).problem(t); p.Field != "/answer" {
		t.Errorf("an answer that is no option: %+v", p)
	}
	w.call("admin", "POST", path+"/decision", map[string]any{"hash": one.Hash, "allow": true, "answer": "staging"}, nil)
	eventually(t, "the turn continues with the answer", func() bool {
		return strings.Contains(string(w.send("admin", "GET", "/v1/sessions/"+id+"/messages", nil, nil).body), "staging")
	})
}

// The OpenAPI document and the reference that a server shows are the committed ones, and they
// name every operation. The page has no script and no style of its own, so the content
// security policy lets a browser show it.
//
// SPEC V-04
func TestDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	committed, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := w.send("", "GET", "/v1/openapi.json", nil, nil); !bytes.Equal(got.body, committed) {
		t.Error("the OpenAPI document of the server is not openapi.json: run make generate")
	}
	page := w.send("", "GET", "/v1/docs", nil, nil)
	for _, op := range serve.Operations() {
		if !strings.Contains(string(page.body), op.Path) || !strings.Contains(string(committed), `"`+op.ID+`"`) {
			t.Errorf("operation %s is not documented", op.ID)
		}
	}
	for _, forbidden := range []string{"<script", "<style", " style=", "http://", "https://", "onclick"} {
		if strings.Contains(string(page.body), forbidden) {
			t.Errorf("the page has %q", forbidden)
		}
	}
	if kind := page.header.Get("Content-Type"); page.status != http.StatusOK || !strings.HasPrefix(kind, "text/html") {
		t.Errorf("the page has status %d and type %s", page.status, kind)
	}
}
