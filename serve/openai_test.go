package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
)

// wordModel is the model of the tests, and sends each text word by word first.
type wordModel struct{ *model }

// Stream implements belay.Model.
func (m wordModel) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		for chunk, err := range m.model.Stream(ctx, req) {
			if chunk.Response != nil && err == nil {
				for _, part := range chunk.Response.Parts {
					for _, word := range strings.SplitAfter(part.Text, " ") {
						if word != "" && !yield(belay.Chunk{Text: word}, nil) {
							return
						}
					}
				}
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// newOpenAIWorld starts a server with an agent "careful", whose writes need approval.
func newOpenAIWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, map[string]string{
		".belay/agents/careful.yaml": "name: careful\ndescription: asks before it writes\nprompt: You are careful.\nmode: strict\n",
	}, func(o *host.Options, _ *serve.Options) {
		m, ok := o.Model.(*model)
		if !ok {
			t.Fatal("the model is another one")
		}
		o.Model = wordModel{m}
	})
}

// clientSays is what the clients in testdata/openai print.
const clientSays = `models: main careful
chat: done: hello stop 11
chat in the session: done: again
chat with a tool: done: call write {"path": "notes.md", "content": "x"} stop
streamed chat: done: one two three stop 11 in parts: true
response: done: hello completed 11
next response: done: again completed true
branch: done: again true
read: done: hello completed
response with a tool: done: call write {"path": "notes.md", "content": "x"} completed
streamed response: done: one two three / completed done: one two three
events: response.created response.in_progress response.output_item.added response.content_part.added response.output_text.delta response.output_text.done response.content_part.done response.output_item.done response.completed
an unknown agent: 400 invalid_request_error request.invalid model
an unsupported field: 400 invalid_request_error request.invalid temperature
another unsupported field: 400 invalid_request_error request.invalid max_output_tokens
a wrong key: 401 authentication_error auth.required 
waiting chat: approval_required true
waiting response: incomplete approval_required true
a message while it waits: true turn.parked
after the approval: done: call write {"path": "other.md", "content": "x"} completed
`

// The official SDKs of OpenAI for Go and JavaScript list the agents, run turns with and without
// streaming, continue and branch conversations, understand errors, and see that a turn waits for
// an approval and how it ends afterwards.
//
// SPEC V-09
func TestOpenAIClients(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		command []string
		missing string // a file that must exist
	}{
		{"the Go SDK works", []string{filepath.Join(t.TempDir(), "client")}, ""},
		{"the JavaScript SDK works", []string{"node", "client.mjs"}, "testdata/openai/node_modules/openai/package.json"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if test.missing != "" {
				if _, err := os.Stat(test.missing); err != nil {
					t.Fatalf("the SDK is not installed: run make clients: %v", err)
				}
			} else { // "make clients" has built it with the same settings, so this takes seconds
				build := exec.CommandContext(t.Context(), "go", "build", "-o", test.command[0], ".")
				build.Dir, build.Env = "testdata/openai", append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOPROXY=off")
				if out, err := build.CombinedOutput(); err != nil {
					t.Fatalf("the SDK cannot be built: run make clients: %v\n%s", err, out)
				}
			}
			w := newOpenAIWorld(t)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, test.command[0], test.command[1:]...)
			cmd.Dir = "testdata/openai"
			cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+w.url+"/v1", "OPENAI_API_KEY="+w.secret["admin"])
			var out, wrong bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &wrong
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s%s", err, out.String(), wrong.String())
			}
			if diff := cmp.Diff(clientSays, out.String()); diff != "" {
				t.Errorf("the client got (-want +got):\n%s", diff)
			}
		})
	}
}

// openAIError is an error in the form of OpenAI.
type openAIError struct {
	Error *struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	} `json:"error"`
}

// Requests that the server cannot honour get an error in the form of OpenAI that names the field.
// Fields with their default values, and fields without effect, are accepted. No request that was
// refused leaves a session.
//
// SPEC V-09
func TestOpenAIRequests(t *testing.T) { //nolint:tparallel // each case counts the sessions before and after
	t.Parallel()
	w := newOpenAIWorld(t)
	user := []any{map[string]any{"role": "user", "content": "hi"}}
	message := func(fields map[string]any) map[string]any {
		m := map[string]any{"role": "user", "content": "hi"}
		maps.Copy(m, fields)
		return map[string]any{"messages": []any{m}}
	}
	const chat, responses = "/v1/chat/completions", "/v1/responses"
	for _, test := range []struct { //nolint:paralleltest // each case counts the sessions before and after
		rule, path string
		fields     map[string]any
		header     map[string]string
		status     int
		param      string
	}{
		{"the agent is required", chat, map[string]any{"model": ""}, nil, 400, "model"},
		{"an unknown field is named", chat, map[string]any{"max_tokens": 3}, nil, 400, "max_tokens"},
		{"a default is accepted", chat, map[string]any{"temperature": 1, "top_p": 1, "n": 1, "response_format": map[string]any{"type": "text"}, "tools": []any{}, "store": true}, nil, 200, ""},
		{"fields without effect are accepted", chat, map[string]any{"user": "u1", "metadata": map[string]string{"a": "b"}, "safety_identifier": "s", "prompt_cache_key": "k"}, nil, 200, ""},
		{"null means absent", chat, map[string]any{"temperature": nil, "user": nil, "stream": nil, "metadata": nil, "stream_options": nil, "tools": nil}, nil, 200, ""},
		{"null means absent in a response", responses, map[string]any{"temperature": nil, "conversation": nil, "previous_response_id": nil, "instructions": nil}, nil, 200, ""},
		{"tools of the client are refused", chat, map[string]any{"tools": []any{map[string]any{"type": "function"}}}, nil, 400, "tools"},
		{"store=false is refused", chat, map[string]any{"store": false}, nil, 400, "store"},
		{"structured output is refused", chat, map[string]any{"response_format": map[string]any{"type": "json_object"}}, nil, 400, "response_format"},
		{"a role must exist", chat, message(map[string]any{"role": "tool"}), nil, 400, "messages[0].role"},
		{"an image is refused", chat, message(map[string]any{"content": []any{map[string]any{"type": "image_url"}}}), nil, 400, "messages[0].content[0].type"},
		{"the last message is of the user", chat, message(map[string]any{"role": "assistant"}), nil, 400, "messages[0]"},
		{"an empty message is refused", chat, message(map[string]any{"content": " "}), nil, 400, "messages[0]"},
		{"a session must exist", chat, nil, map[string]string{"Belay-Session": "nobody"}, 404, ""},
		{"a response must exist", responses, map[string]any{"previous_response_id": "resp_0_x_nobody"}, nil, 404, ""},
		{"a response id has its form", responses, map[string]any{"previous_response_id": "x"}, nil, 400, "previous_response_id"},
		{"an unknown item is refused", responses, map[string]any{"input": []any{map[string]any{"type": "function_call_output", "output": "x"}}}, nil, 400, "input[0].type"},
		{"an unknown field of an item is refused", responses, map[string]any{"input": []any{map[string]any{"role": "user", "content": "x", "other": 1}}}, nil, 400, "input[0]"},
		{"a reasoning effort is refused", responses, map[string]any{"reasoning": map[string]any{"effort": "low"}}, nil, 400, "reasoning"},
		{"a background response is refused", responses, map[string]any{"background": true}, nil, 400, "background"},
		{"a conversation must exist", responses, map[string]any{"conversation": "nobody"}, nil, 404, ""},
		{"a conversation is an id", responses, map[string]any{"conversation": 3}, nil, 400, "conversation"},
		{"a response and a session exclude each other", responses, map[string]any{"conversation": "a", "previous_response_id": "resp_0_x_a"}, nil, 400, "previous_response_id"},
		{"the input is a text or messages", responses, map[string]any{"input": 3}, nil, 400, "input"},
		{"a page of another site is refused", responses, nil, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			body := map[string]any{"model": "main"}
			if test.path == chat {
				body["messages"] = user
			} else {
				body["input"] = "hi"
			}
			maps.Copy(body, test.fields)
			before := w.sessions()
			r := w.send("admin", "POST", test.path, body, test.header)
			if r.status != test.status {
				t.Fatalf("the status is %d, want %d: %s", r.status, test.status, r.body)
			}
			if test.status == http.StatusOK {
				return
			}
			var e openAIError
			if err := json.Unmarshal(r.body, &e); err != nil || e.Error == nil || e.Error.Message == "" || e.Error.Type == "" || e.Error.Code == "" {
				t.Fatalf("the error is %s, %v", r.body, err)
			}
			if test.param != "" && (e.Error.Param == nil || *e.Error.Param != test.param) {
				t.Errorf("the error does not name %s: %s", test.param, r.body)
			}
			if r.header.Get("X-Should-Retry") != "false" {
				t.Error("an SDK would send the request again")
			}
			if after := w.sessions(); after != before {
				t.Errorf("there were %d sessions and now there are %d", before, after)
			}
		})
	}
}

// sessions returns the number of sessions.
func (w *world) sessions() int {
	w.t.Helper()
	var list struct{ Sessions []session }
	w.call("admin", "GET", "/v1/sessions?limit=500", nil, &list)
	return len(list.Sessions)
}

// Without a session the earlier messages become part of the first message of a new session.
// With a session only the new messages are sent. Instructions of the client stay a part of the
// user's message. The labels of the token apply.
//
// SPEC V-09
func TestOpenAIHistory(t *testing.T) {
	t.Parallel()
	w := newOpenAIWorld(t)
	say := func(role, text string) any { return map[string]any{"role": role, "content": text} }
	history := []any{say("system", "be brief"), say("user", "one"), say("assistant", "two"), say("user", "three")}
	ask := func(header map[string]string) string {
		t.Helper()
		r := w.send("admin", "POST", "/v1/chat/completions", map[string]any{"model": "main", "messages": history}, header)
		if r.status != http.StatusOK {
			t.Fatalf("%d %s", r.status, r.body)
		}
		return r.header.Get("Belay-Session")
	}
	last := func(session string) string {
		t.Helper()
		var all struct{ Messages []*belay.Message }
		w.call("admin", "GET", "/v1/sessions/"+session+"/messages", nil, &all)
		text := ""
		for _, m := range all.Messages {
			if m.Kind == belay.KindUser {
				text = m.Text()
			}
		}
		return text
	}
	fresh := ask(nil)
	if got, want := last(fresh), "Instructions of the user's program:\n\nbe brief\n\nThe conversation so far:\n\nuser: one\n\nassistant: two\n\nThe new message:\n\nthree"; got != want {
		t.Errorf("the first message of a new session is %q", got)
	}
	w.token("b", map[string]string{"tenant": "b"}, serve.RoleRun)
	body := map[string]any{"model": "main", "messages": history}
	if r := w.send("b", "POST", "/v1/chat/completions", body, map[string]string{"Belay-Session": fresh}); r.status != http.StatusNotFound {
		t.Errorf("another tenant continues the session: %d %s", r.status, r.body)
	}
	var theirs session
	r := w.send("b", "POST", "/v1/chat/completions", body, nil)
	if w.call("admin", "GET", "/v1/sessions/"+r.header.Get("Belay-Session"), nil, &theirs); theirs.Labels["tenant"] != "b" {
		t.Errorf("the session of a limited token has the labels %v", theirs.Labels)
	}
	if again := ask(map[string]string{"Belay-Session": fresh}); again != fresh || last(fresh) != "three" {
		t.Errorf("session %s continues as %s with %q", fresh, again, last(fresh))
	}
}

// A session continues with the next response, and the response is that of the new turn.
//
// SPEC V-09
func TestOpenAIResponsesContinue(t *testing.T) {
	t.Parallel()
	w := newOpenAIWorld(t)
	ask := func(text, previous string) (id, session string) {
		t.Helper()
		body := map[string]any{"model": "main", "input": text}
		if previous != "" {
			body["previous_response_id"] = previous
		}
		r := w.send("admin", "POST", "/v1/responses", body, nil)
		var out struct {
			ID     string `json:"id"`
			Status string `json:"status"`
			Belay  struct {
				Session string `json:"session"`
			} `json:"belay"`
		}
		if err := json.Unmarshal(r.body, &out); r.status != http.StatusOK || err != nil || out.Status != "completed" {
			t.Fatalf("%q after %q gives %d %s", text, previous, r.status, r.body)
		}
		return out.ID, out.Belay.Session
	}
	first, session := ask("one", "")
	second, again := ask("two", first)
	if third, still := ask("three", second); again != session || still != session || first == second || second == third {
		t.Errorf("the responses %s, %s and %s are in the sessions %s, %s and %s", first, second, third, session, again, still)
	}
}

// A turn that fails, that a hook blocks, or that the server leaves behind is told in the form
// of OpenAI, and no SDK repeats it.
//
// SPEC V-09
func TestOpenAITurnsThatDoNotEndWell(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{
		".belay/hooks/quiet.yaml": "hooks:\n  - {id: quiet, phase: user.prompt.submit, action: {deny: do not say this}}\n",
	}, nil)
	var chat struct {
		Choices []struct {
			Message struct{ Content string } `json:"message"`
			Finish  string                   `json:"finish_reason"`
		} `json:"choices"`
	}
	w.call("admin", "POST", "/v1/chat/completions", map[string]any{"model": "main", "messages": []any{map[string]any{"role": "user", "content": "x"}}}, &chat)
	if c := chat.Choices[0]; c.Finish != "content_filter" || !strings.Contains(c.Message.Content, "do not say this") {
		t.Errorf("a blocked chat is %+v", c)
	}
	var response struct {
		ID     string                         `json:"id"`
		Status string                         `json:"status"`
		Error  struct{ Code, Message string } `json:"error"`
	}
	w.call("admin", "POST", "/v1/responses", map[string]any{"model": "main", "input": "x"}, &response)
	if response.Status != "failed" || response.Error.Code != "blocked" || !strings.Contains(response.Error.Message, "do not say this") {
		t.Errorf("a blocked response is %+v", response)
	}
	w.call("admin", "GET", "/v1/responses/"+response.ID, nil, &response)
	if response.Status != "failed" {
		t.Errorf("the blocked response is read as %+v", response)
	}

	slow := newOpenAIWorld(t)
	slow.model.asked = make(chan string, 2)
	for _, streamed := range []bool{true, false} {
		got := make(chan *reply, 1)
		go func() {
			got <- slow.send("admin", "POST", "/v1/responses", map[string]any{"model": "main", "input": "block", "stream": streamed}, nil)
		}()
		<-slow.model.asked
		if streamed {
			var list struct{ Sessions []session }
			slow.call("admin", "GET", "/v1/sessions", nil, &list)
			slow.call("admin", "POST", "/v1/sessions/"+list.Sessions[0].ID+"/abort", nil, nil)
			if r := <-got; !strings.Contains(string(r.body), "event: response.failed\n") || !strings.Contains(string(r.body), `"code":"aborted"`) {
				t.Errorf("an aborted stream is %s", r.body)
			}
			continue
		}
		slow.stop() // the server stops while the turn runs
		r := <-got
		var e openAIError
		if err := json.Unmarshal(r.body, &e); err != nil || e.Error == nil || e.Error.Code != "server.draining" || r.header.Get("X-Should-Retry") != "false" {
			t.Errorf("a server that stops answers %d %s, %v", r.status, r.body, err)
		}
		close(slow.model.gate) // the server need not wait until its grace is over
	}
}

// A tenant cannot read, continue or guess the responses of another tenant. Its own sessions
// have its labels.
//
// SPEC V-09, V-05
func TestOpenAITenants(t *testing.T) {
	t.Parallel()
	w := newOpenAIWorld(t)
	for _, tenant := range []string{"a", "b"} {
		w.token(tenant, map[string]string{"tenant": tenant}, serve.RoleRun)
	}
	var mine struct {
		ID    string `json:"id"`
		Belay struct {
			Session string `json:"session"`
		} `json:"belay"`
	}
	r := w.send("a", "POST", "/v1/responses", map[string]any{"model": "main", "input": "the word is swordfish"}, nil)
	if err := json.Unmarshal(r.body, &mine); err != nil || r.status != http.StatusOK {
		t.Fatalf("%d %s", r.status, r.body)
	}
	for _, as := range []string{"a", "b"} {
		for what, r := range map[string]*reply{
			"reads it":                      w.send(as, "GET", "/v1/responses/"+mine.ID, nil, nil),
			"continues it":                  w.send(as, "POST", "/v1/responses", map[string]any{"model": "main", "input": "go on", "previous_response_id": mine.ID}, nil),
			"names its session":             w.send(as, "POST", "/v1/responses", map[string]any{"model": "main", "input": "go on", "conversation": mine.Belay.Session}, nil),
			"names its session in a chat":   w.send(as, "POST", "/v1/chat/completions", map[string]any{"model": "main", "messages": []any{map[string]any{"role": "user", "content": "go on"}}}, map[string]string{"Belay-Session": mine.Belay.Session}),
			"names its session as a header": w.send(as, "POST", "/v1/responses", map[string]any{"model": "main", "input": "go on"}, map[string]string{"Belay-Session": mine.Belay.Session}),
		} {
			if got, want := r.status == http.StatusOK, as == "a"; got != want || as == "b" && r.status != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", as, what, r.status, r.body)
			}
			if as == "b" && strings.Contains(string(r.body), "swordfish") {
				t.Errorf("%s %s, and sees its text: %s", as, what, r.body)
			}
		}
	}
	var list struct {
		Sessions []session `json:"sessions"`
	}
	w.call("b", "GET", "/v1/sessions", nil, &list)
	if len(list.Sessions) != 0 {
		t.Errorf("the refused requests left sessions: %+v", list.Sessions)
	}
	w.call("admin", "GET", "/v1/sessions", nil, &list)
	for _, s := range list.Sessions {
		if s.Labels["tenant"] != "a" {
			t.Errorf("the session %s has the labels %v", s.ID, s.Labels)
		}
	}
}
