//go:build unix

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// "belay mcp serve" speaks MCP on standard input and output, and nothing else. Its user decides
// approvals in the client. It ends when the client closes the stream, and other commands see the
// same session.
//
// SPEC V-09
func TestMCPServe(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{
		"s.yaml": "follow_transcript: true\nsteps:\n  - calls: [{tool: write, input: {path: notes.md, content: x}}]\n  - text: It is written.\n",
	})
	asked := make(chan string, 1)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked <- r.Params.Message
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}, nil
	}})
	cmd := command(t, dir, "mcp", "serve", "--model", "scripted/s.yaml", "--mode", "strict")
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "main", Arguments: map[string]any{"text": "write it"}})
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Session string `json:"session"`
		Reason  string `json:"reason"`
		Text    string `json:"text"`
	}
	data, err := json.Marshal(got.StructuredContent)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil || out.Reason != "end_turn" || !strings.HasSuffix(out.Text, "It is written.") {
		t.Errorf("the result is %s, %v", data, err)
	}
	if message := <-asked; !strings.Contains(message, "notes.md") {
		t.Errorf("the client was asked %q", message)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "notes.md")); err != nil || string(text) != "x" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if err := session.Close(); err != nil {
		t.Errorf("belay mcp serve ended with %v", err)
	}
	if out, errs, code := belay(t, dir, "show", out.Session); code != 0 || !strings.Contains(out, "It is written.") {
		t.Errorf("show: exit code %d, %s, %s", code, out, errs)
	}
}

// With --http, "belay mcp serve" serves only MCP, behind the tokens of the API.
//
// SPEC V-09
func TestMCPServeHTTP(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"s.yaml": "steps:\n  - text: Hello over MCP.\n"})
	c := start(t, dir, "mcp", "serve", "--http", "127.0.0.1:0", "--model", "scripted/s.yaml", "--grace", "10m")
	_, rest, _ := strings.Cut(c.await(c.stderr, "http://"), "http://")
	url := "http://" + strings.TrimSpace(rest)
	c.await(c.stderr, "your token is in ")
	secret, err := os.ReadFile(filepath.Join(dir, "belay", "tokens", "local.secret"))
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	stranger := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withToken("wrong")}}
	if _, err := client.Connect(t.Context(), stranger, nil); err == nil {
		t.Error("a client with a wrong token connects")
	}
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: withToken(strings.TrimSpace(string(secret)))}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "main", Arguments: map[string]any{"text": "hello"}})
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := got.Content[0].(*mcp.TextContent); !ok || text.Text != "Hello over MCP." {
		t.Errorf("the result is %v", got.Content)
	}
	resp, err := http.Get(strings.TrimSuffix(url, "/mcp") + "/v1/sessions") //nolint:noctx // loopback
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("the API is there, too: %d", resp.StatusCode)
	}
	c.signal(syscall.SIGTERM) // the client is still connected, and does not keep the server from stopping
	if rest, code := c.ended(); code != 0 {
		t.Errorf("exit code %d: %s", code, rest)
	}
	_ = session.Close() // ignore errors: the server is gone
}

// withToken adds a token to each request.
type withToken string

func (secret withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(secret))
	return http.DefaultTransport.RoundTrip(r)
}
