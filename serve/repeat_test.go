package serve_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
)

// asks are the requests that start a turn, by name. Each sends a text, in a session or without one.
var asks = map[string]func(w *world, as, session, text string, header map[string]string) *reply{
	"a turn": func(w *world, as, session, text string, header map[string]string) *reply {
		return w.send(as, "POST", "/v1/sessions/"+session+"/turns", map[string]any{"text": text, "wait": "end"}, header)
	},
	"a chat": func(w *world, as, _, text string, header map[string]string) *reply {
		return w.send(as, "POST", "/v1/chat/completions", map[string]any{"model": "main", "messages": []map[string]any{{"role": "user", "content": text}}}, header)
	},
	"a streamed chat": func(w *world, as, _, text string, header map[string]string) *reply {
		return w.send(as, "POST", "/v1/chat/completions", map[string]any{"model": "main", "stream": true, "messages": []map[string]any{{"role": "user", "content": text}}}, header)
	},
	"a response": func(w *world, as, _, text string, header map[string]string) *reply {
		return w.send(as, "POST", "/v1/responses", map[string]any{"model": "main", "input": text}, header)
	},
	"a response in a conversation": func(w *world, as, session, text string, header map[string]string) *reply {
		return w.send(as, "POST", "/v1/responses", map[string]any{"model": "main", "input": text, "conversation": session}, header)
	},
	"a streamed response": func(w *world, as, _, text string, header map[string]string) *reply {
		return w.send(as, "POST", "/v1/responses", map[string]any{"model": "main", "input": text, "stream": true}, header)
	},
}

// turns counts the turns of all sessions, and the sessions.
func (w *world) turns() (turns, sessions int) {
	w.t.Helper()
	var usage struct{ Turns, Sessions int }
	w.call("admin", "GET", "/v1/usage", nil, &usage)
	return usage.Turns, usage.Sessions
}

// A request that is repeated with the same Idempotency-Key runs no second turn, neither while
// the first one runs nor later, nor on another server. It gets the same answer. The key of
// another request, or of another token, is another one.
//
// SPEC V-07, V-09
func TestRepeatedRequestsWithAKey(t *testing.T) {
	t.Parallel()
	for what, ask := range asks {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil, nil)
			w.token("other", nil, serve.RoleRun)
			w.model.asked = make(chan string, 10)
			id := w.newSession()
			key := map[string]string{"Idempotency-Key": "k 1"}
			const both = 4
			ended := make(chan *reply, both)
			for range both {
				go func() { ended <- ask(w, "admin", id, "block", key) }()
			}
			<-w.model.asked
			w.model.open <- struct{}{}
			var first *reply
			for range both {
				r := <-ended
				if r.status != http.StatusOK || !strings.Contains(string(r.body), "done: block") {
					t.Fatalf("a request ends with %d %s", r.status, r.body)
				}
				if first == nil {
					first = r
				}
				if a, b := first.header.Get("Belay-Session"), r.header.Get("Belay-Session"); a != b {
					t.Errorf("the requests have the sessions %q and %q", a, b)
				}
			}
			server, err := serve.New(w.host, &serve.Options{Tokens: w.tokens})
			if err != nil {
				t.Fatal(err)
			}
			later := ask(w.again(server), "admin", id, "block", key)
			if later.status != http.StatusOK || !strings.Contains(string(later.body), "done: block") {
				t.Errorf("another server answers %d %s", later.status, later.body)
			}
			if turns, sessions := w.turns(); turns != 1 || sessions > 2 {
				t.Errorf("there are %d turns in %d sessions, want 1 turn", turns, sessions)
			}
			if what == "a response" { // a repeated request has the same id
				ids := make([]string, 2)
				for i, r := range []*reply{first, later} {
					var out struct {
						ID string `json:"id"`
					}
					if err := json.Unmarshal(r.body, &out); err != nil {
						t.Fatal(err)
					}
					ids[i] = out.ID
				}
				if ids[0] != ids[1] || ids[0] == "" {
					t.Errorf("the responses have the ids %q", ids)
				}
			}
			if p := ask(w, "admin", id, "another text", key).problem(t); p.Code != "request.invalid" || !strings.Contains(p.Detail, "was used for another request") {
				t.Errorf("another request with the key gives %+v", p)
			}
			for _, bad := range []string{"", strings.Repeat("x", 256)} {
				if p := ask(w, "admin", id, "x", map[string]string{"Idempotency-Key": bad}).problem(t); p.Code != "request.invalid" {
					t.Errorf("the key %.10q gives %+v", bad, p)
				}
			}
			if r := ask(w, "other", id, "hello", key); r.status != http.StatusOK || !strings.Contains(string(r.body), "done: hello") {
				t.Errorf("another token with the same key gets %d %s", r.status, r.body)
			}
			if r := ask(w, "admin", id, "hello", map[string]string{"Idempotency-Key": "k 2"}); r.status != http.StatusOK {
				t.Errorf("another key gets %d %s", r.status, r.body)
			}
			if turns, _ := w.turns(); turns != 3 {
				t.Errorf("there are %d turns, want 3", turns)
			}
		})
	}
}

// The SDKs of OpenAI repeat a request without a key, and say so in a header. The repeated request
// runs no second turn if the first one has arrived. The same message without this header is a
// new one.
//
// SPEC V-09
func TestRepeatedRequestsWithoutAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	id := w.newSession()
	again, want := map[string]string{"X-Stainless-Retry-Count": "1"}, 0
	for what, ask := range asks {
		if what == "a turn" {
			continue // its clients are not those of OpenAI
		}
		text := "hello, this is " + what
		for _, step := range []struct {
			rule   string
			header map[string]string
			turns  int
		}{
			{"a repeated request whose first one did not arrive", again, 1},
			{"a repeated request", again, 0},
			{"the same message again", map[string]string{"X-Stainless-Retry-Count": "0"}, 1},
			{"the same message without the header", nil, 1},
			{"a repeated request after two messages", again, 0},
		} {
			r := ask(w, "admin", id, text, step.header)
			if r.status != http.StatusOK || !strings.Contains(string(r.body), "done: "+text) {
				t.Fatalf("%s, %s: %d %s", what, step.rule, r.status, r.body)
			}
			want += step.turns
			if turns, _ := w.turns(); turns != want {
				t.Fatalf("%s, %s: there are %d turns, want %d", what, step.rule, turns, want)
			}
		}
	}
}

// A response of a failed turn stays failed when later turns exist, and a response of a turn that
// ended well stays completed.
//
// SPEC V-09
func TestResponsesOfEarlierTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	id := w.newSession()
	type response struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		Error  *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	create := func(text string) response {
		var out response
		w.call("admin", "POST", "/v1/responses", map[string]any{"model": "main", "input": text, "conversation": id}, &out)
		return out
	}
	good := create("hello")
	key := map[string]string{"Idempotency-Key": "failing"}
	failing := map[string]any{"model": "main", "input": "fail boom", "conversation": id}
	var bad, later response
	if r := w.send("admin", "POST", "/v1/responses", failing, key); json.Unmarshal(r.body, &bad) != nil || bad.Status != "failed" {
		t.Fatalf("the failing response is %d %s", r.status, r.body)
	}
	last := create("call write {\"path\": \"a.md\", \"content\": \"x\"}")
	for _, test := range []struct {
		rule string
		of   response
		want string
	}{{"a turn that ended well", good, "completed"}, {"a turn that failed", bad, "failed"}, {"the last turn", last, "completed"}} {
		var read response
		w.call("admin", "GET", "/v1/responses/"+test.of.ID, nil, &read)
		if read.Status != test.want || (read.Error != nil) != (test.want == "failed") {
			t.Errorf("%s: the response is %+v, want %s", test.rule, read, test.want)
		}
	}
	if r := w.send("admin", "POST", "/v1/responses", failing, key); json.Unmarshal(r.body, &later) != nil || later.Status != "failed" || later.ID != bad.ID {
		t.Errorf("the repeated request gives %d %s", r.status, r.body)
	}
}

// If the store does not answer, reading a response fails. It does not say that there is no such
// response.
//
// SPEC V-08
func TestResponsesWithoutAStore(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	h, err := host.Open(t.Context(), &host.Options{Dir: t.TempDir(), UserDir: user, Environ: []string{}, Model: &model{}, NoJobs: true})
	if err != nil {
		t.Fatal(err)
	}
	tokens := serve.OpenTokens(filepath.Join(user, "tokens"))
	secret, err := tokens.Create("reader", []serve.Role{serve.RoleRead}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server, err := serve.New(h, &serve.Options{Tokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{http.StatusNotFound, http.StatusServiceUnavailable} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/v1/responses/resp_0_x_nobody", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+secret)
		rec := newRecorder()
		server.Handler().ServeHTTP(rec, r)
		if rec.Code != want {
			t.Errorf("the status is %d %s, want %d", rec.Code, rec.Body, want)
		}
		if err := h.Close(); err != nil && want == http.StatusNotFound {
			t.Fatal(err)
		}
	}
}
