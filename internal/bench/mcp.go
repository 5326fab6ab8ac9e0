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
		{"mcp-call", 1.3, mcpRatio(64)},
		{"mcp-call-large", 1.3, mcpRatio(64 << 10)},
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

// mcpRatio returns the time of a call divided by the time of a call with the bare SDK.
// Both kinds of calls use a server process of the same program.
func mcpRatio(size int) func() (float64, error) {
	return func() (figure float64, err error) {
		program, err := os.Executable()
		if err != nil {
			return 0, fmt.Errorf("server: %w", err)
		}
		input, err := json.Marshal(map[string]string{"text": fmt.Sprintf("%0*d", size, 7)})
		if err != nil {
			return 0, fmt.Errorf("input: %w", err)
		}
		command := exec.CommandContext(ctx, program)
		command.Env = append(os.Environ(), mcpVariable+"=1")
		bare, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: command}, nil)
		if err != nil {
			return 0, fmt.Errorf("bare SDK: %w", err)
		}
		defer func() { err = errors.Join(err, bare.Close()) }()
		servers, err := mcptool.New(ctx, []mcptool.Server{{Name: "bench", Command: program, Env: map[string]string{mcpVariable: "1"}}}, nil)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, servers.Close(ctx)) }()
		tools := servers.StepTools("main")
		if len(tools) != 1 {
			return 0, fmt.Errorf("the server has %d tools: %w", len(tools), servers.Servers()[0].Err)
		}
		return ratio(func(n int) {
			for range n {
				r, err := tools[0].Call(ctx, &belay.Invocation{ID: "call_1", Tool: "bench__echo", Input: input})
				must(err)
				if len(r.Text) != size {
					panic(fmt.Sprintf("the tool answered %d bytes: %s", len(r.Text), r.Class))
				}
			}
		}, func(n int) {
			for range n {
				r, err := bare.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(input)})
				must(err)
				if text, ok := r.Content[0].(*mcp.TextContent); !ok || len(text.Text) != size {
					panic("the tool answered something else")
				}
			}
		}), nil
	}
}
