package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
)

// mcpPromises are the promises about MCP servers: a call of a tool with 64 bytes and one
// with 64 KiB. The floor is a call with the bare SDK.
func mcpPromises() []promise {
	return []promise{
		{"mcp-call", 1.3, pairRatio(mcpCalls(64))},
		{"mcp-call-large", 1.3, pairRatio(mcpCalls(64 << 10))},
	}
}

// mcpVariable is an environment variable. If it is set, this program is an MCP server.
const mcpVariable = "BELAY_BENCH_MCP"

// serveMCP runs this program as an MCP server, if mcpVariable is set. It returns false if
// the variable is not set.
func serveMCP() bool {
	if os.Getenv(mcpVariable) == "" {
		return false
	}
	type text struct {
		Text string `json:"text"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	_ = server.Run(ctx, &mcp.StdioTransport{}) // ignore the error: the server ends when its input ends
	return true
}

// mcpCalls returns calls of a tool. The floor is calls with the bare SDK. Both kinds of
// calls use a server process of the same program.
func mcpCalls(size int) func() (*pair, error) {
	return func() (_ *pair, err error) {
		program, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
		input, err := json.Marshal(map[string]string{"text": fmt.Sprintf("%0*d", size, 7)})
		if err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		command := exec.CommandContext(ctx, program)
		command.Env = append(os.Environ(), mcpVariable+"=1")
		bare, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: command}, nil)
		if err != nil {
			return nil, fmt.Errorf("bare SDK: %w", err)
		}
		servers, err := mcptool.New(ctx, []mcptool.Server{{Name: "bench", Command: program, Env: map[string]string{mcpVariable: "1"}}}, nil)
		if err != nil {
			return nil, errors.Join(err, bare.Close())
		}
		end := func() error { return errors.Join(servers.Close(ctx), bare.Close()) }
		tools := servers.StepTools("main")
		if len(tools) != 1 {
			return nil, errors.Join(fmt.Errorf("the server has %d tools: %w", len(tools), servers.Servers()[0].Err), end())
		}
		return &pair{ours: func(n int) {
			for range n {
				r, err := tools[0].Call(ctx, &belay.Invocation{ID: "call_1", Tool: "bench__echo", Input: input})
				must(err)
				if len(r.Text) != size {
					panic(fmt.Sprintf("the tool answered %d bytes: %s", len(r.Text), r.Class))
				}
			}
		}, floor: func(n int) {
			for range n {
				r, err := bare.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(input)})
				must(err)
				if text, ok := r.Content[0].(*mcp.TextContent); !ok || len(text.Text) != size {
					panic("the tool answered something else")
				}
			}
		}, close: end}, nil
	}
}
