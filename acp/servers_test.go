package acp_test

import (
	"context"
	"os"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/serve"
)

// mcpValue is the variable that makes this test program an MCP server.
const mcpValue = "BELAY_TEST_MCP_VALUE"

// serveMCP serves an agent as an MCP tool. Its answer is the value.
func serveMCP(value string) {
	dir, err := os.MkdirTemp("", "acp-mcp-*")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	h, err := host.Open(context.Background(), options(dir, scripted.Step{Text: "the value is " + value}))
	if err != nil {
		panic(err)
	}
	defer func() { _ = h.Close() }()
	server, err := serve.New(h, &serve.Options{Tokens: serve.OpenTokens(dir), Workers: 1})
	if err != nil {
		panic(err)
	}
	if err := server.ServeMCP(context.Background(), os.Stdin, os.Stdout); err != nil {
		panic(err)
	}
}

// An MCP server that the editor passes along starts without trust, and gets its variables as
// they are. The floor checks the calls of its tools: this one asks.
//
// SPEC U-05
func TestServersOfTheEditor(t *testing.T) {
	t.Parallel()
	dir := project(t, nil)
	c := connect(t, hosts(dir, scripted.Step{Calls: []scripted.Call{{ID: "m", Tool: "editor-s__main", Input: `{"text": "hi"}`}}}, scripted.Step{Text: "done"}), dir)
	c.initialize(nil)
	asked := make(chan string, 1)
	c.permit = func(_ context.Context, p *sdk.RequestPermissionRequest) (sdk.RequestPermissionOutcome, error) {
		asked <- *p.ToolCall.Title
		return selected("allow-once"), nil
	}
	out, err := c.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: dir, McpServers: []sdk.McpServer{{Stdio: &sdk.McpServerStdio{
		Name: "editor-s", Command: os.Args[0], Args: []string{}, Env: []sdk.EnvVariable{{Name: mcpValue, Value: "${HOME} as it is"}},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	c.say(out.SessionId, "Use the server.")
	if title := <-asked; !strings.Contains(title, "editor-s__main") {
		t.Errorf("the editor was asked about %q", title)
	}
	if _, end := c.call("m"); *end.Status != sdk.ToolCallStatusCompleted || !strings.Contains(c.transcript(), "the value is ${HOME} as it is") {
		t.Errorf("the result is %+v", end)
	}
}
