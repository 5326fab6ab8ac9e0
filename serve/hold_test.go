package serve_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
)

// mcpSend sends a JSON-RPC request to /mcp, in a session or without one.
func (w *world) mcpSend(as, session, method string, params any) *reply {
	w.t.Helper()
	header := map[string]string{"Accept": "application/json, text/event-stream"}
	if session != "" {
		header["Mcp-Session-Id"] = session
	}
	return w.send(as, "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, header)
}

// mcpBegin begins a session of an MCP client. Nobody ends it.
func (w *world) mcpBegin(as string) *reply {
	w.t.Helper()
	return w.mcpSend(as, "", "initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}})
}

// The limits of a token hold for MCP clients too: requests, streams, calls and sessions. The
// sessions that a client leaves open end with the server.
//
// SPEC V-06, V-09
func TestMCPIsLimited(t *testing.T) {
	t.Parallel()
	t.Run("requests", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, nil, func(_ *host.Options, o *serve.Options) { o.Rate = 0.001 })
		w.token("greedy", nil, serve.RoleRun)
		if r := w.mcpBegin("greedy"); r.status != http.StatusOK {
			t.Fatalf("the first request gives %d %s", r.status, r.body)
		}
		if p := w.mcpBegin("greedy").problem(t); p.Status != 429 || p.Code != "request.rate_limited" {
			t.Errorf("the second request gives %+v", p)
		}
	})
	t.Run("streams, calls and sessions", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, nil, func(_ *host.Options, o *serve.Options) { o.Streams = 1 })
		first := w.mcpBegin("admin")
		session := first.header.Get("Mcp-Session-Id")
		if first.status != http.StatusOK || session == "" {
			t.Fatalf("the session begins with %d %s", first.status, first.body)
		}
		if r := w.mcpBegin("admin"); !strings.Contains(string(r.body), "has 1 MCP sessions, which is the maximum") {
			t.Errorf("one more session gives %d %s", r.status, r.body)
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/mcp", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Authorization": "Bearer " + w.secret["admin"], "Accept": "text/event-stream", "Mcp-Session-Id": session} {
			r.Header.Set(name, value)
		}
		stream, err := http.DefaultClient.Do(r)
		if err != nil || stream.StatusCode != http.StatusOK {
			t.Fatalf("the stream gives %v, %v", stream, err)
		}
		for what, one := range map[string]*reply{
			"one more stream": w.send("admin", "GET", "/mcp", nil, map[string]string{"Accept": "text/event-stream", "Mcp-Session-Id": session}),
			"a call":          w.mcpSend("admin", session, "tools/call", map[string]any{"name": "main", "arguments": map[string]any{"text": "hello"}}),
			"an event stream": w.send("admin", "GET", "/v1/events", nil, nil),
		} {
			if p := one.problem(t); p.Status != 429 || p.Code != "request.rate_limited" {
				t.Errorf("%s gives %+v", what, p)
			}
		}
		if r := w.mcpSend("admin", session, "tools/list", nil); r.status != http.StatusOK || !strings.Contains(string(r.body), "main") {
			t.Errorf("a short request gives %d %s", r.status, r.body)
		}
		leave()
		_ = stream.Body.Close()
		eventually(t, "there is room for a call", func() bool {
			r := w.mcpSend("admin", session, "tools/call", map[string]any{"name": "main", "arguments": map[string]any{"text": "hello"}})
			return r.status == http.StatusOK && strings.Contains(string(r.body), "done: hello")
		})
	})
}

// held are the requests that hold a connection for as long as a turn takes.
func (w *world) held(session string) map[string]func() *reply {
	send := func(path string, body map[string]any) func() *reply {
		return func() *reply { return w.send("limited", "POST", path, body, nil) }
	}
	messages := []map[string]any{{"role": "user", "content": "block"}}
	return map[string]func() *reply{
		"a turn with wait=end": send("/v1/sessions/"+session+"/turns", map[string]any{"text": "block", "wait": "end"}),
		"a chat":               send("/v1/chat/completions", map[string]any{"model": "main", "messages": messages}),
		"a streamed chat":      send("/v1/chat/completions", map[string]any{"model": "main", "messages": messages, "stream": true}),
		"a response":           send("/v1/responses", map[string]any{"model": "main", "input": "block"}),
		"a streamed response":  send("/v1/responses", map[string]any{"model": "main", "input": "block", "stream": true}),
	}
}

// A request that waits for a turn counts as a stream. A request that is refused stores no
// message.
//
// SPEC V-06
func TestWaitingRequestsAreLimited(t *testing.T) { //nolint:tparallel // its parts use the only stream
	t.Parallel()
	w := newWorld(t, nil, func(_ *host.Options, o *serve.Options) { o.Streams = 1 })
	w.token("limited", nil, serve.RoleRun)
	w.model.asked = make(chan string, 10)
	id := w.newSession()
	waiting := w.held(id)
	for what := range waiting { //nolint:paralleltest // each uses the only stream
		t.Run(what, func(t *testing.T) {
			one := w.newSession()
			ended := make(chan *reply, 1)
			go func() { ended <- w.held(one)[what]() }()
			<-w.model.asked
			for more, send := range waiting {
				r := send()
				if p := r.problem(t); p.Status != 429 || p.Code != "request.rate_limited" || r.header.Get("Retry-After") == "" {
					t.Errorf("%s gives %+v", more, p)
				}
			}
			if p := w.send("limited", "GET", "/v1/events", nil, nil).problem(t); p.Status != 429 {
				t.Errorf("an event stream gives %+v", p)
			}
			w.model.open <- struct{}{}
			if r := <-ended; r.status != http.StatusOK {
				t.Errorf("the first request ends with %d %s", r.status, r.body)
			}
		})
	}
	var queue struct{ Turns []struct{ ID string } }
	w.call("admin", "GET", "/v1/sessions/"+id+"/queue", nil, &queue)
	var info session
	if w.call("admin", "GET", "/v1/sessions/"+id, nil, &info); len(queue.Turns) > 0 || info.Last > 0 {
		t.Errorf("a refused request stored a message: %+v %+v", queue, info)
	}
}

// When a token is revoked, the requests that wait for a turn end, and say why. The turn goes on.
//
// SPEC V-05
func TestRevokedTokensEndRequests(t *testing.T) { //nolint:tparallel // its parts revoke the same token
	t.Parallel()
	w := newWorld(t, nil, nil)
	w.model.asked = make(chan string, 10)
	id := w.newSession()
	waiting := w.held(id)
	waiting["an MCP call"] = func() *reply {
		return w.mcpSend("limited", w.mcpBegin("limited").header.Get("Mcp-Session-Id"), "tools/call", map[string]any{"name": "main", "arguments": map[string]any{"text": "block"}})
	}
	w.token("limited", nil, serve.RoleRun)
	for what, send := range waiting {
		t.Run(what, func(t *testing.T) {
			ended := make(chan *reply, 1)
			go func() { ended <- send() }()
			<-w.model.asked
			if err := w.tokens.Revoke("limited"); err != nil {
				t.Fatal(err)
			}
			select {
			case r := <-ended:
				if !strings.Contains(string(r.body), `was revoked`) {
					t.Errorf("the request ends with %d %s", r.status, r.body)
				}
			case <-time.After(patience):
				t.Error("the request goes on")
			}
			w.token("limited", nil, serve.RoleRun)
			w.model.open <- struct{}{}
		})
	}
	eventually(t, "the turns end", func() bool {
		var list struct{ Sessions []session }
		w.call("admin", "GET", "/v1/sessions", nil, &list)
		for _, one := range list.Sessions {
			if one.State != "done" {
				return false
			}
		}
		return len(list.Sessions) == len(waiting)
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/mcp", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + w.secret["limited"], "Accept": "text/event-stream", "Mcp-Session-Id": w.mcpBegin("limited").header.Get("Mcp-Session-Id")} { //nolint:paralleltest // the parts above revoke the same token
		r.Header.Set(name, value)
	}
	stream, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	if err := w.tokens.Revoke("limited"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Errorf("the stream of MCP ends with %v", err)
	}
}

// The user of an MCP client has a limited time to fill in a form. Then the call ends, and the
// approval stays open.
//
// SPEC V-09
func TestMCPFormsHaveATimeLimit(t *testing.T) {
	t.Parallel()
	w := newOpenAIWorld(t)
	server, err := serve.New(w.host, &serve.Options{Tokens: w.tokens})
	if err != nil {
		t.Fatal(err)
	}
	server.SetAskTimeout(50 * time.Millisecond)
	asked := make(chan struct{}, 1)
	client := w.again(server).connect("admin", mcpWays[0], &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked <- struct{}{}
		<-t.Context().Done()
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}})
	got, whole := callAgent(t, client, "careful", map[string]any{"text": needsApproval})
	if len(asked) != 1 || got.Reason != "parked" || len(got.Approvals) != 1 || !strings.Contains(textOf(whole), got.Approvals[0]) {
		t.Errorf("the call ends with %+v %s, asked %d times", got, textOf(whole), len(asked))
	}
}
