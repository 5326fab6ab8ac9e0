package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
)

// relabel gives a session to another tenant.
func (w *world) relabel(session, tenant string) {
	w.t.Helper()
	w.call("admin", "PATCH", "/v1/sessions/"+session, map[string]any{"labels": map[string]string{"tenant": tenant}}, nil)
}

// labelled creates a session of the tenant a.
func (w *world) labelled() string {
	w.t.Helper()
	var s session
	w.call("admin", "POST", "/v1/sessions", map[string]any{"labels": map[string]string{"tenant": "a"}}, &s)
	return s.ID
}

// When a session goes to another tenant, the streams of the first tenant no longer show it:
// the stream of the session ends, and the streams over all sessions leave it out.
//
// SPEC V-05
func TestLabelsThatChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, strict)
	w.token("a", map[string]string{"tenant": "a"}, serve.RoleAdmin)
	lost, kept := w.labelled(), w.labelled()
	approval := w.turn("a", lost, needsApproval).Result.Approvals[0] // the feed knows an approval of it
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	events, runs := make(chan event, 1000), make(chan event, 1000)
	var streams sync.WaitGroup
	for path, to := range map[string]chan event{"/v1/events": events, "/v1/runs/events?all=true": runs} {
		streams.Go(func() {
			_ = w.follow(ctx, "a", path, "", func(e event) error { to <- e; return nil }) // the end of the test ends it
		})
	}
	// until reads events until one has a text. Before that, none may have the other.
	until := func(from chan event, text, never string) {
		t.Helper()
		for {
			select {
			case e := <-from:
				if never != "" && strings.Contains(e.data, never) {
					t.Errorf("a stream shows the session of another tenant: %s %s", e.kind, e.data)
				}
				if strings.Contains(e.data, text) {
					return
				}
			case <-ctx.Done():
				t.Fatalf("no event has %s", text)
			}
		}
	}
	until(events, lost, "") // the snapshot has the session
	eventually(t, "the stream of runs is connected", func() bool {
		w.turn("a", kept, "hello")
		return len(runs) > 0
	})
	until(events, kept, "")

	ended := make(chan string, 1)
	following := make(chan struct{}, 1)
	go func() {
		last := ""
		_ = w.follow(ctx, "a", "/v1/sessions/"+lost+"/events", "", func(e event) error { // the server ends the stream
			if last = e.kind + " " + e.data; e.kind == string(belay.EventTurnEnd) {
				following <- struct{}{}
			}
			return nil
		})
		ended <- last
	}()
	<-following
	w.relabel(lost, "b")
	if last := <-ended; !strings.HasPrefix(last, "problem ") || !strings.Contains(last, "request.not_found") {
		t.Errorf("the stream of the session ends with %s, want a problem", last)
	}
	for len(runs) > 0 {
		<-runs
	}
	var one struct{ Hash string }
	w.call("admin", "GET", "/v1/approvals/"+approval, nil, &one)
	w.call("admin", "POST", "/v1/approvals/"+approval+"/decision", map[string]any{"hash": one.Hash, "allow": false}, nil)
	eventually(t, "the turn has ended", func() bool {
		var s session
		w.call("admin", "GET", "/v1/sessions/"+lost, nil, &s)
		return s.State == "done"
	})
	last := w.labelled()
	w.turn("a", last, "hello")
	until(events, last, lost)
	until(runs, last, lost)
	cancel()
	streams.Wait()
}

// A tenant learns nothing about the machine and the network of the server: no path, no
// address and no text of an error, whatever it reads.
//
// SPEC V-05
func TestTenantsSeeNoMachine(t *testing.T) {
	t.Parallel()
	const secretHost = "llm.internal.example"
	userDir := ""
	w := newWorld(t, nil, func(h *host.Options, _ *serve.Options) {
		user := t.TempDir()
		text := "providers:\n  inner: {url: \"http://" + secretHost + ":8080/v1\", kind: openai-chat}\n"
		broken := "hooks:\n  - id: audit\n    phase: tool.post\n    command: [sh, -c, 'echo open " + user + "/secret.key >&2; exit 3']\n    failure: open\n"
		for name, text := range map[string]string{"belay.yaml": text, "hooks/audit.yaml": broken} {
			file := filepath.Join(user, "belay", filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h.UserDir, userDir = user, user
	})
	w.token("a", map[string]string{"tenant": "a"}, serve.RoleAdmin)
	id := w.labelled()
	w.turn("a", id, "call list {}")
	failed := w.turn("a", id, "fail dial tcp "+secretHost+": open "+w.dir+"/secret.key")
	if failed.Result.Reason != belay.EndError || failed.Result.Why == "" {
		t.Fatalf("the turn ends with %+v, want an error", failed.Result)
	}
	said, err := json.Marshal(failed.Result)
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]string{"the result of a turn": string(said)}
	var runs struct{ Runs []struct{ ID string } }
	w.call("a", "GET", "/v1/runs?all=true&session="+id, nil, &runs)
	run := ""
	if len(runs.Runs) > 0 {
		run = runs.Runs[0].ID
	}
	for _, op := range serve.Operations() {
		if op.Method != http.MethodGet || op.Stream || op.ID == "listMessages" || strings.Contains(op.Path, "{approval}") || strings.Contains(op.Path, "{run}") && run == "" {
			continue
		}
		path := fill(op.Path, id, "", run)
		if op.ID == "listRuns" {
			path += "?all=true"
		}
		if op.ID == "readTimeline" {
			path = "/v1/sessions/" + id + "/turns/" + failed.Result.Turn + "/timeline"
		}
		read[op.ID] = strings.ReplaceAll(string(w.send("a", "GET", path, nil, nil).body), "fail dial tcp "+secretHost+": open "+w.dir+"/secret.key", "") // what the user said
	}
	failures := w.send("a", "GET", "/v1/audit/failures", nil, nil)
	if text := string(failures.body); !strings.Contains(text, `["audit","tool.post","hook.error","1",`) || !strings.Contains(text, `,""]]`) {
		t.Errorf("the tenant sees not only that its hook failed: %s", text)
	}
	read["the failures of the audit"] = string(failures.body)
	for _, body := range []map[string]any{{"text": "x", "agent": "nobody"}, {"text": "x", "model": "nobody/x"}, {"text": "x", "model": "inner"}} {
		read[fmt.Sprint("a turn with ", body)] = string(w.send("a", "POST", "/v1/sessions/"+id+"/turns", body, nil).body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all strings.Builder
	if err := w.follow(ctx, "a", "/v1/sessions/"+id+"/events", "", func(e event) error {
		if all.WriteString(e.data); e.kind == string(belay.EventTurnEnd) {
			return errStop
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	read["the events of the session"] = strings.ReplaceAll(all.String(), "fail dial tcp "+secretHost+": open "+w.dir+"/secret.key", "") // what the user said
	if err := w.follow(ctx, "a", "/v1/events", "1", func(e event) error {
		read["the snapshot of the feed"] = e.data
		return errStop
	}); err != nil {
		t.Fatal(err)
	}
	for what, text := range read {
		for _, word := range []string{secretHost, w.dir, userDir, "secret.key"} {
			if what == "listSessions" || what == "readSession" { // the title is what the user said
				text = strings.ReplaceAll(text, "call list {}", "")
			}
			if strings.Contains(text, word) {
				t.Errorf("%s has %q: %.600s", what, word, text)
			}
		}
	}
	var models struct{ Providers []struct{ Name string } }
	w.call("a", "GET", "/v1/models", nil, &models)
	if !slices.ContainsFunc(models.Providers, func(p struct{ Name string }) bool { return p.Name == "inner" }) {
		t.Errorf("the tenant does not see the names of the providers: %v", models)
	}
	if text := string(w.send("admin", "GET", "/v1/models", nil, nil).body); !strings.Contains(text, secretHost) {
		t.Errorf("the operator does not see the address of a provider: %s", text)
	}
	if text := string(w.send("admin", "GET", "/v1/sessions/"+id, nil, nil).body); !strings.Contains(text, secretHost) {
		t.Errorf("the operator does not see why the turn failed: %s", text)
	}
}

// The fork of a subagent's session belongs to the tenant of the session.
//
// SPEC V-05
func TestForksOfChildren(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{".belay/agents/helper.md": "---\nname: helper\ndescription: Helps.\n---\nHelp.\n"}, nil)
	w.token("a", map[string]string{"tenant": "a"}, serve.RoleAdmin)
	w.token("b", map[string]string{"tenant": "b"}, serve.RoleAdmin)
	parent := w.labelled()
	w.turn("a", parent, `call invoke_subagent {"name": "helper", "prompt": "hello"}`)
	var list struct{ Sessions []session }
	w.call("admin", "GET", "/v1/sessions?children=true", nil, &list)
	child := ""
	for _, s := range list.Sessions {
		if strings.HasPrefix(s.ID, parent+"/") {
			child = s.ID
		}
	}
	if child == "" {
		t.Fatalf("there is no session of a subagent: %+v", list.Sessions)
	}
	path := "/v1/sessions/" + strings.ReplaceAll(child, "/", "%2F") + "/fork"
	if p := w.send("b", "POST", path, map[string]any{}, nil).problem(t); p.Status != 404 {
		t.Errorf("another tenant forks it: %+v", p)
	}
	for _, as := range []string{"a", "admin"} {
		var fork session
		r := w.send(as, "POST", path, map[string]any{}, nil)
		if err := json.Unmarshal(r.body, &fork); err != nil || r.status != 201 || fork.Labels["tenant"] != "a" {
			t.Errorf("the fork by %s is %d %s, want it with the label of the tenant", as, r.status, r.body)
			continue
		}
		w.call("a", "GET", "/v1/sessions/"+fork.ID, nil, nil)
	}
}
