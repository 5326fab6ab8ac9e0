package serve_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve"
)

// A client that reconnects after any event gets exactly the rest of the stored events.
//
// SPEC V-03
func TestStreamsResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	id := w.newSession()
	w.turn("admin", id, "call list {}\ncall list {}")
	w.turn("admin", id, "talk 3")
	all := w.everything("admin", id, "0")
	if len(all) != 10 {
		t.Fatalf("the stored events are %q, want 10", all)
	}
	for i, key := range all {
		position, _, _ := strings.Cut(key, " ")
		if diff := cmp.Diff(all[i+1:], w.everything("admin", id, position), equateEmpty); diff != "" {
			t.Errorf("after %s:\n%s", key, diff)
		}
	}
}

var equateEmpty = cmp.Transformer("empty", func(s []string) []string {
	if len(s) == 0 {
		return nil
	}
	return append([]string{}, s...)
})

// A stream shows text before the response is complete, and who asked for the turn.
//
// SPEC V-03
func TestStreamsShowDeltas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	id := w.newSession()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	connected := make(chan struct{})
	var kinds []string
	var queued, text string
	done := make(chan error, 1)
	go func() {
		first := true
		done <- w.follow(ctx, "admin", "/v1/sessions/"+id+"/events", "", func(e event) error {
			var data belay.Event
			if err := json.Unmarshal([]byte(e.data), &data); err != nil {
				return err
			}
			if kinds = append(kinds, e.kind); data.Message != nil && data.Message.Queued != "" {
				queued = data.Message.Queued
			}
			if first {
				first = false
				close(connected)
			}
			if e.kind == "turn_end" && data.End.Text == "done: talk 2" {
				text = data.End.Text
				return errStop
			}
			return nil
		})
	}()
	w.turn("admin", id, "hello") // its events show that the stream is connected
	<-connected
	second := w.turn("admin", id, "talk 2")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(kinds, "text_delta") || queued != second.ID || text == "" {
		t.Errorf("the events are %v, the last queued turn %s, want deltas and %s", kinds, queued, second.ID)
	}
}

// A client that reads slowly never slows a turn. It gets a notice of what it missed, and
// still every stored event.
//
// SPEC V-03
func TestSlowClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	id := w.newSession()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/v1/sessions/"+id+"/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.secret["admin"])
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if got := w.turn("admin", id, "talk 30000"); got.Result.Reason != belay.EndTurn { // more than the buffers of the connection hold
		t.Fatalf("the turn ends with %+v", got.Result)
	}
	ended := make(chan struct{})
	go func() { // close the body when the turn has ended, also for this reader
		<-ended
		_ = resp.Body.Close()
	}()
	text := make([]byte, 0, 1<<20)
	buffer := make([]byte, 1<<16)
	for !strings.Contains(string(text[max(0, len(text)-8192):]), "event: turn_end") {
		n, err := resp.Body.Read(buffer)
		if text = append(text, buffer[:n]...); err != nil {
			t.Fatalf("the stream ends before the turn: %v", err)
		}
	}
	close(ended)
	all := string(text)
	if !strings.Contains(all, "event: missed\ndata: {\"missed\":") {
		t.Error("the client is not told that it missed events")
	}
	if strings.Count(all, "event: model_response") != 1 || strings.Count(all, "event: turn_start") != 1 {
		t.Error("the client missed a stored event, or got one twice")
	}
}

// The feed shows turns and approvals of all sessions as they happen, whichever process runs
// them, and begins with a snapshot.
//
// SPEC V-02, V-03
func TestFeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, strict)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	events := make(chan event, 100)
	done := make(chan error, 1)
	go func() {
		done <- w.follow(ctx, "admin", "/v1/events", "", func(e event) error { events <- e; return nil })
	}()
	next := func(kind, want string) event {
		t.Helper()
		for {
			select {
			case e := <-events:
				if e.kind == kind && strings.Contains(e.data, want) {
					return e
				}
			case <-ctx.Done():
				t.Fatalf("there is no %s with %s", kind, want)
			}
		}
	}
	next("snapshot", `"approvals":[]`)
	id := w.newSession()
	parked := w.turn("admin", id, needsApproval)
	approval := parked.Result.Approvals[0]
	asked := next("approval_requested", approval)
	next("turn_end", `"state":"parked"`)
	var one struct{ Hash string }
	w.call("admin", "GET", "/v1/approvals/"+approval, nil, &one)
	w.call("admin", "POST", "/v1/approvals/"+approval+"/decision", map[string]any{"hash": one.Hash, "allow": false, "reason": "no"}, nil)
	next("approval_decided", `"allow":false`)
	next("turn_end", `"state":"done"`)

	other := openOther(t, w, w.model) // another process on the same store
	if _, err := other.agent.Session("elsewhere").Turn(ctx, "hello"); err != nil {
		t.Fatal(err)
	}
	next("turn_end", `"session":"elsewhere"`)
	cancel()
	<-done
	again, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if err := w.follow(again, "admin", "/v1/events", asked.id, func(e event) error {
		if e.kind != "snapshot" || !strings.Contains(e.data, id) || !strings.Contains(e.data, "elsewhere") {
			t.Errorf("after the id %s the first event is %s %s, want a snapshot with both sessions", asked.id, e.kind, e.data)
		}
		return errStop
	}); err != nil {
		t.Error(err)
	}
}

// A stream of a session shows the stored events of turns that another process runs, with the
// same ids.
//
// SPEC V-03
func TestStreamsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	id := w.newSession()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var live []string
	done := make(chan error, 1)
	go func() {
		done <- w.follow(ctx, "admin", "/v1/sessions/"+id+"/events", "", func(e event) error {
			if key := e.stored(); key != "" {
				live = append(live, key)
			}
			if e.kind == "turn_end" {
				return errStop
			}
			return nil
		})
	}()
	other := openOther(t, w, w.model)
	if _, err := other.agent.Session(id).Turn(ctx, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.everything("admin", id, "0"), live); diff != "" || len(live) != 2 {
		t.Errorf("the live stream differs:\n%s", diff)
	}
}

// When the server stops, it is no longer ready, takes no new turns, hands over the running
// turn, and ends its streams with a hint when to connect again. The next server continues the
// turn, and nothing is lost.
//
// SPEC V-07
func TestDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	w.model.asked = make(chan string, 10)
	id := w.newSession()
	var retry string
	streamed := make(chan error, 1)
	connected := make(chan struct{})
	var once sync.Once
	go func() {
		streamed <- w.follow(t.Context(), "admin", "/v1/sessions/"+id+"/events", "", func(e event) error {
			once.Do(func() { close(connected) })
			retry = e.retry + retry
			return nil
		})
	}()
	waited := make(chan started, 1)
	go func() {
		var s started
		r := w.send("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "call list {}\nblock", "wait": "end"}, nil)
		_ = json.Unmarshal(r.body, &s)
		if r.status != http.StatusAccepted {
			t.Errorf("waiting for the turn ends with %d %s, want 202", r.status, r.body)
		}
		waited <- s
	}()
	<-w.model.asked
	<-connected
	handler := w.server.Handler()
	w.stop()
	if err := <-streamed; err == nil || retry != "2000" {
		t.Errorf("the stream ends with %v and the retry hint %q", err, retry)
	}
	if s := <-waited; s.ID == "" || s.Result != nil {
		t.Errorf("the client that waits gets %+v", s)
	}
	get := func(method, path, body string) (int, string) {
		rec := newRecorder()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.secret["admin"])
		r.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(rec, r)
		return rec.Code, rec.Body.String()
	}
	if code, body := get("GET", "/readyz", ""); code != 503 || !strings.Contains(body, "draining") {
		t.Errorf("readiness is %d %s", code, body)
	}
	if code, body := get("POST", "/v1/sessions/"+id+"/turns", `{"text": "x"}`); code != 503 || !strings.Contains(body, "server.draining") {
		t.Errorf("a new turn gives %d %s", code, body)
	}
	if code, body := get("GET", "/v1/sessions/"+id+"/events", ""); code != 503 {
		t.Errorf("a new stream gives %d %s", code, body)
	}
	close(w.model.gate)
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
	w.ended <- nil // for the cleanup
	next, err := serve.New(w.host, &serve.Options{Tokens: w.tokens, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	w2 := w.again(next)
	eventually(t, "the next server continues the turn", func() bool {
		var s session
		w2.call("admin", "GET", "/v1/sessions/"+id, nil, &s)
		return s.State == "done"
	})
	if all := w2.everything("admin", id, "0"); len(all) < 5 {
		t.Errorf("the stored events are %q", all)
	}
}

// Several clients that follow one session get the same events. A tenant never gets the text
// that an operator gets, although the streams of a session share encoded events.
//
// SPEC V-05
func TestStreamsThatShareEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	w.token("tenant", map[string]string{"tenant": "a"}, serve.RoleAdmin)
	id := w.labelled()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const each = 3
	type seen struct {
		as   string
		data []string
		err  error
	}
	connected, all := make(chan struct{}, 2*each), make(chan seen, 2*each)
	for i := range 2 * each {
		s := seen{as: []string{"admin", "tenant"}[i%2]}
		go func() {
			s.err = w.follow(ctx, s.as, "/v1/sessions/"+id+"/events", "", func(e event) error {
				var data belay.Event
				if err := json.Unmarshal([]byte(e.data), &data); err != nil {
					return err
				}
				if e.kind == "turn_end" && data.End.Reason == belay.EndTurn {
					connected <- struct{}{}
					return nil
				}
				if e.kind == "error" || e.kind == "turn_end" {
					s.data = append(s.data, e.data)
				}
				if e.kind == "turn_end" {
					return errStop
				}
				return nil
			})
			all <- s
		}()
	}
	w.turn("admin", id, "hello") // its end shows that the streams are connected
	for range 2 * each {
		select {
		case <-connected:
		case <-ctx.Done():
			t.Fatal("the streams are not connected")
		}
	}
	w.turn("admin", id, "fail the disk /dev/sda is full")
	texts := make(map[string]string)
	for range 2 * each {
		s := <-all
		text := strings.Join(s.data, "\n")
		if s.err != nil || len(s.data) < 2 || strings.Contains(text, "/dev/sda") == (s.as == "tenant") {
			t.Errorf("the events of %s are %s, %v", s.as, text, s.err)
		}
		if texts[s.as] == "" {
			texts[s.as] = text
		}
		if texts[s.as] != text {
			t.Errorf("two streams of %s have\n%s\nand\n%s", s.as, texts[s.as], text)
		}
	}
}
