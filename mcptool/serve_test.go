package mcptool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/mcptool"
)

type greeting struct {
	Name string `json:"name"`
}

// greeter is a server of the SDK with one tool.
func greeter() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Greets."}, func(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name + "."}}}, nil, nil
	})
	return server
}

// inProcess runs a server of the SDK in this process.
func inProcess(server *mcp.Server) func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	return func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	}
}

// A server in this process has no port and no child process, and leaves nothing behind.
func TestServeInProcess(t *testing.T) {
	t.Parallel()
	server := greeter()
	servers := open(t, quick(mcptool.Options{}), mcptool.Server{Name: "local", Serve: inProcess(server), Required: true})
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls("local__greet", `{"name": "Ann"}`), belaytest.Calls("local__greet", `{"nome": "Ann"}`), belaytest.Says("done"),
		belaytest.Calls("local__wave", nil), belaytest.Says("done"),
	), &belay.Options{Extensions: []belay.Extension{servers}})
	turn := agent.Say("greet")
	turn.Result("local__greet", "Hello, Ann.")
	turn.ResultFailed("local__greet", belay.ClassInvalid, "nome")

	mcp.AddTool(server, &mcp.Tool{Name: "wave", Description: "Waves."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, "waved", nil
	})
	await(t, servers, "local", func(s mcptool.Status) bool { return len(s.Tools) == 2 })
	agent.Say("wave").Result("local__wave", "waved")
}

// A server in this process that fails is started again, and says why it failed.
func TestServeInProcessFails(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		fail func(out io.Writer) error
		says string
	}{
		"an error":    {func(io.Writer) error { return errors.New("no more coffee") }, "it ended: no more coffee"},
		"a panic":     {func(io.Writer) error { panic("spilled") }, "it panicked: spilled"},
		"its return":  {func(io.Writer) error { return nil }, "it ended the session"},
		"no protocol": {func(out io.Writer) error { _, err := fmt.Fprintln(out, "Hello!"); return err }, `it printed "Hello!"`},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			var starts atomic.Int32
			again := make(chan struct{})
			servers := open(t, quick(mcptool.Options{}), mcptool.Server{Name: "local", Serve: func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
				if starts.Add(1) == 1 {
					return test.fail(out)
				}
				select {
				case <-again:
					return inProcess(greeter())(ctx, in, out)
				case <-ctx.Done():
					return ctx.Err()
				}
			}})
			down := await(t, servers, "local", func(s mcptool.Status) bool { return s.State == mcptool.StateDown })
			if down.Err == nil || !strings.Contains(down.Err.Error(), test.says) {
				t.Errorf("it is down because of %v, want %q", down.Err, test.says)
			}
			close(again)
			await(t, servers, "local", func(s mcptool.Status) bool { return s.State == mcptool.StateReady })
		})
	}
}

// New rejects a server that has both a function and a URL.
func TestServeAlone(t *testing.T) {
	t.Parallel()
	_, err := mcptool.New(t.Context(), []mcptool.Server{{Name: "local", Serve: inProcess(greeter()), URL: "https://example.com"}}, nil)
	if err == nil || !strings.Contains(err.Error(), "leave out the command, its settings, the url and the headers") {
		t.Errorf("a server with a function and a URL: %v", err)
	}
}
