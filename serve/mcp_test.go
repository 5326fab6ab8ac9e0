package serve_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/serve"
)

// bearer adds a token to each request.
type bearer struct{ secret string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.secret)
	return http.DefaultTransport.RoundTrip(r)
}

// mcpWay is how a test connects. In the older protocol the server sends requests to the client.
// In the newer one results ask the user.
type mcpWay struct {
	name, protocol string
	pipe           bool // a pair of streams, and not HTTP
}

// mcpWays are the ways that the tests use. Over HTTP, the SDK uses the newer protocol only without
// sessions.
var mcpWays = []mcpWay{
	{"HTTP, older protocol", "2025-06-18", false},
	{"HTTP, what the client wants", "", false},
	{"streams, older protocol", "2025-06-18", true},
	{"streams, newer protocol", "2026-07-28", true},
}

// connect connects the client of the MCP SDK.
func (w *world) connect(as string, way mcpWay, opts *mcp.ClientOptions) *mcp.ClientSession {
	w.t.Helper()
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: w.url + "/mcp", HTTPClient: &http.Client{Transport: bearer{w.secret[as]}}}
	ended := make(chan error, 1)
	if way.pipe {
		server, err := serve.New(w.host, &serve.Options{Tokens: w.tokens}) // the worker of the world runs the turns
		if err != nil {
			w.t.Fatal(err)
		}
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		go func() {
			ended <- server.ServeMCP(context.WithoutCancel(w.t.Context()), in, out)
			_ = out.Close()
		}()
		transport = &mcp.IOTransport{Reader: fromServer, Writer: toServer}
	} else {
		ended <- nil
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	session, err := client.Connect(w.t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: way.protocol})
	if err != nil {
		w.t.Fatal(err)
	}
	if got := session.InitializeResult().ProtocolVersion; way.protocol != "" && got != way.protocol {
		w.t.Errorf("the protocol is %s, want %s", got, way.protocol)
	}
	w.t.Cleanup(func() {
		_ = session.Close() // ignore errors: a test may have closed it
		if err := <-ended; err != nil {
			w.t.Errorf("the server ends with %v", err)
		}
	})
	return session
}

// mcpResult is the structured result of the tool of an agent.
type mcpResult struct {
	Session   string   `json:"session"`
	Turn      string   `json:"turn"`
	Reason    string   `json:"reason"`
	Text      string   `json:"text"`
	Approvals []string `json:"approvals"`
}

// callAgent calls the tool of an agent.
func callAgent(t *testing.T, session *mcp.ClientSession, agent string, input map[string]any) (mcpResult, *mcp.CallToolResult) {
	t.Helper()
	params := &mcp.CallToolParams{Name: agent, Arguments: input}
	params.SetProgressToken("p1")
	got, err := session.CallTool(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	var out mcpResult
	data, err := json.Marshal(got.StructuredContent)
	if err == nil && got.StructuredContent != nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out, got
}

// textOf returns the text of a result.
func textOf(r *mcp.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

// The client of the MCP SDK lists the agents as tools, calls them, sees progress, continues a
// session, and gets errors that it understands.
//
// SPEC V-09
func TestMCPClients(t *testing.T) {
	t.Parallel()
	for _, way := range mcpWays {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			w := newOpenAIWorld(t)
			w.token("reader", nil, serve.RoleRead)
			var mu sync.Mutex
			progress := ""
			client := w.connect("admin", way, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				mu.Lock()
				defer mu.Unlock()
				progress += r.Params.Message
			}})
			tools, err := client.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			names := make(map[string]string)
			for _, tool := range tools.Tools {
				names[tool.Name] = tool.Description
			}
			if len(names) != 2 || names["main"] == "" || names["careful"] != "asks before it writes" {
				t.Errorf("the tools are %v", names)
			}
			first, whole := callAgent(t, client, "main", map[string]any{"text": "one two three"})
			if first.Reason != "end_turn" || first.Text != "done: one two three" || first.Session == "" || first.Turn == "" || textOf(whole) != first.Text {
				t.Errorf("the result is %+v with %q", first, textOf(whole))
			}
			t.Cleanup(func() {
				mu.Lock()
				defer mu.Unlock()
				if t.Failed() {
					t.Logf("the progress is %q", progress)
				}
			})
			eventually(t, "the progress arrives", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return progress == "done: one two three"
			})
			next, _ := callAgent(t, client, "main", map[string]any{"text": "again", "session": first.Session})
			if next.Session != first.Session || next.Turn == first.Turn || next.Text != "done: again" {
				t.Errorf("the next result is %+v", next)
			}
			for rule, input := range map[string]map[string]any{
				"a session must exist":        {"text": "x", "session": "nobody"},
				"a message is required":       {"session": first.Session},
				"an empty message is refused": {"text": ""},
				"an unknown field is refused": {"text": "x", "other": 1},
			} {
				if _, got := callAgent(t, client, "main", input); !got.IsError || textOf(got) == "" {
					t.Errorf("%s: the result is %q", rule, textOf(got))
				}
			}
			for as, want := range map[string]int{"": 401, "reader": 403} {
				r := w.send(as, "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ping"}, map[string]string{"Accept": "application/json, text/event-stream"})
				if p := r.problem(t); p.Status != want {
					t.Errorf("token %q: %+v, want %d", as, p, want)
				}
			}
		})
	}
}

// A turn that needs approval asks the user of the client, if the client has forms and the token
// may approve. Otherwise the result names the approval, and the turn waits.
//
// SPEC V-09
func TestMCPApprovals(t *testing.T) {
	t.Parallel()
	for _, way := range mcpWays {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			w := newOpenAIWorld(t)
			w.token("runner", nil, serve.RoleRun)
			asked := make(chan string, 10)
			forms := func(answer *mcp.ElicitResult) *mcp.ClientOptions {
				return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked <- r.Params.Message
					return answer, nil
				}}
			}
			accept := func(fields map[string]any) *mcp.ElicitResult {
				return &mcp.ElicitResult{Action: "accept", Content: fields}
			}
			twice := `call write {"path": "a.md", "content": "x"}` + "\n" + `call write {"path": "b.md", "content": "x"}`
			for _, test := range []struct {
				rule, as, text string
				opts           *mcp.ClientOptions
				asks           int
				reason         string
				decided        string // what the approvals say
			}{
				{"an approval lets the call run", "admin", needsApproval, forms(accept(map[string]any{"decision": "approve"})), 1, "end_turn", "true"},
				{"each call is asked about", "admin", twice, forms(accept(map[string]any{"decision": "approve"})), 2, "end_turn", "true, true"},
				{"a denial has a reason", "admin", needsApproval, forms(accept(map[string]any{"decision": "deny", "reason": "not now"})), 1, "end_turn", "false not now"},
				{"declining is a denial", "admin", needsApproval, forms(&mcp.ElicitResult{Action: "decline"}), 1, "end_turn", "false the user declined"},
				{"a closed form decides nothing", "admin", needsApproval, forms(&mcp.ElicitResult{Action: "cancel"}), 1, "parked", "open"},
				{"a question gets an answer", "admin", `call ask_user {"question": "May I?"}`, forms(accept(map[string]any{"answer": "yes"})), 1, "end_turn", "true"},
				{"a token without the role cannot approve", "runner", needsApproval, forms(accept(map[string]any{"decision": "approve"})), 0, "parked", "open"},
				{"a client without forms gets the id", "admin", needsApproval, nil, 0, "parked", "open"},
			} {
				if way.pipe && test.as != "admin" {
					continue // the user of a process has no token
				}
				t.Run(test.rule, func(t *testing.T) {
					client := w.connect(test.as, way, test.opts)
					got, whole := callAgent(t, client, "careful", map[string]any{"text": test.text})
					if got.Reason != test.reason {
						t.Errorf("the turn ends with %+v: %s", got, textOf(whole))
					}
					if test.reason == "parked" && test.asks == 0 && (len(got.Approvals) != 1 || !strings.Contains(textOf(whole), got.Approvals[0])) {
						t.Errorf("the result does not name the approval: %+v %s", got, textOf(whole))
					}
					for range test.asks {
						if message := <-asked; !strings.Contains(message, "needs approval") && !strings.Contains(message, "May I?") {
							t.Errorf("the client asked %q", message)
						}
					}
					if len(asked) > 0 {
						t.Errorf("the client asked more often than %d times", test.asks)
					}
					var decided []string
					var list struct {
						Approvals []struct {
							Session string
							Decided *struct {
								Allow      bool
								By, Reason string
							}
						}
					}
					w.call("admin", "GET", "/v1/approvals?all=true&session="+got.Session, nil, &list)
					for _, a := range list.Approvals {
						switch {
						case a.Decided == nil:
							decided = append(decided, "open")
						case a.Decided.By != "token "+test.as && !(way.pipe && a.Decided.By == "mcp"):
							t.Errorf("the approval is decided by %q", a.Decided.By)
						case a.Decided.Allow:
							decided = append(decided, "true")
						default:
							decided = append(decided, "false "+a.Decided.Reason)
						}
					}
					if got := strings.Join(decided, ", "); got != test.decided {
						t.Errorf("the approvals are %q, want %q", got, test.decided)
					}
				})
			}
		})
	}
}

// A client that cancels its call aborts the turn.
//
// SPEC V-09
func TestMCPCancel(t *testing.T) {
	t.Parallel()
	for _, way := range mcpWays {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			w := newOpenAIWorld(t)
			w.model.asked = make(chan string, 1)
			client := w.connect("admin", way, nil)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := client.CallTool(ctx, &mcp.CallToolParams{Name: "main", Arguments: map[string]any{"text": "block"}})
				ended <- err
			}()
			<-w.model.asked
			cancel()
			if err := <-ended; err == nil {
				t.Error("a cancelled call succeeded")
			}
			eventually(t, "the turn is aborted", func() bool {
				var list struct{ Sessions []session }
				w.call("admin", "GET", "/v1/sessions", nil, &list)
				return len(list.Sessions) == 1 && list.Sessions[0].State == "aborted"
			})
		})
	}
}

// A token cannot use the MCP session of another token, and no session of another tenant.
//
// SPEC V-09, V-05
func TestMCPSessionsBelongToTheirToken(t *testing.T) {
	t.Parallel()
	w := newOpenAIWorld(t)
	w.token("a", map[string]string{"tenant": "a"}, serve.RoleRun)
	w.token("b", map[string]string{"tenant": "b"}, serve.RoleRun)
	client := w.connect("a", mcpWays[0], nil)
	mine, _ := callAgent(t, client, "main", map[string]any{"text": "hello"})
	r := w.send("b", "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": 9, "method": "tools/list"}, map[string]string{"Accept": "application/json, text/event-stream", "Mcp-Session-Id": client.ID()})
	if r.status < 400 || strings.Contains(string(r.body), "careful") {
		t.Errorf("another token uses the session: %d %s", r.status, r.body)
	}
	other := w.connect("b", mcpWays[0], nil)
	if _, got := callAgent(t, other, "main", map[string]any{"text": "hello", "session": mine.Session}); !got.IsError || !strings.Contains(textOf(got), "there is no session") {
		t.Errorf("another tenant continues the session: %s", textOf(got))
	}
}

// A body that decoders of JSON read in different ways is refused: a call that the server counts as something else would hold a
// connection that no limit knows.
//
// SPEC V-06, V-09
func TestMCPBodiesHaveOneMeaning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	const call = `"params":{"name":"main","arguments":{"text":"hello"}}`
	for rule, body := range map[string]string{
		"a key that occurs twice":            `{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping",` + call + `}`,
		"a key in another case":              `{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"ping",` + call + `}`,
		"a key with an escape":               `{"jsonrpc":"2.0","id":1,"method":"tools/call","m\u0065thod":"ping",` + call + `}`,
		"a key of the arguments":             `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"main","arguments":{"text":"hello","TEXT":"other"}}}`,
		"text after the message":             `{"jsonrpc":"2.0","id":1,"method":"tools/call",` + call + `}{}`,
		"text that is not UTF-8":             `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"main","arguments":{"text":"` + "\xff" + `"}}}`,
		"a message of a batch with two keys": `[{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping",` + call + `}]`,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + w.secret["admin"]}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if p := w.do(r).problem(t); p.Status != http.StatusBadRequest || p.Code != codes.RequestInvalid {
			t.Errorf("%s: %+v", rule, p)
		}
	}
	var sessions struct{ Sessions []session }
	if w.call("admin", http.MethodGet, "/v1/sessions", nil, &sessions); len(sessions.Sessions) > 0 {
		t.Errorf("a turn was taken: %+v", sessions.Sessions)
	}
}
