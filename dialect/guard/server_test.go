package guard_test

import (
	"context"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/guard"
)

// A rule about server__tool denies the call in every agent, also if the agent writes the name
// in a form with several meanings or without the server.
func TestADeniedToolOfAServerIsDeniedInEveryAgent(t *testing.T) { // SPEC B-03
	t.Parallel()
	const tool = "my-db__drop_table"
	floor := floorFunc(func(call belay.ToolCall) belay.Authorization {
		if call.Tool() == tool {
			return belay.Authorization{Decision: belay.ToolDeny, Reason: "no drops", By: "rule deny " + tool}
		}
		return belay.Authorization{Decision: belay.ToolAsk, Reason: "unknown tool", By: "zone 5"}
	})
	known := []guard.Server{{Name: "other"}, {Name: "my-db", Tools: []string{"drop_table"}}}
	for name, c := range map[string]struct {
		agent        dialect.Vendor
		event, stdin string
		servers      []guard.Server
	}{
		"Claude Code":                        {dialect.ClaudeCode, "", `{"hook_event_name":"PreToolUse","tool_name":"mcp__my-db__drop_table","tool_input":{}}`, nil},
		"Codex":                              {dialect.Codex, "", `{"hook_event_name":"PreToolUse","tool_name":"mcp__my-db__drop_table","tool_input":{}}`, nil},
		"Gemini CLI":                         {dialect.GeminiCLI, "", `{"hook_event_name":"BeforeTool","tool_name":"mcp_my-db_drop_table","tool_input":{}}`, nil},
		"Gemini CLI with two underscores":    {dialect.GeminiCLI, "", `{"hook_event_name":"BeforeTool","tool_name":"mcp__my-db__drop_table","tool_input":{}}`, nil},
		"Gemini CLI with mcp_context":        {dialect.GeminiCLI, "", `{"hook_event_name":"BeforeTool","tool_name":"drop_table","mcp_context":{"server_name":"my-db","tool_name":"drop_table"},"tool_input":{}}`, nil},
		"Copilot":                            {dialect.Copilot, "preToolUse", `{"toolName":"my-db-drop_table","toolArgs":{}}`, nil},
		"Copilot in an editor":               {dialect.Copilot, "preToolUse", `{"toolName":"mcp_my-db_drop_table","toolArgs":{}}`, nil},
		"Cursor, by the command":             {dialect.Cursor, "", `{"hook_event_name":"beforeMCPExecution","tool_name":"drop_table","tool_input":"{}","command":"npx db"}`, []guard.Server{{Name: "other"}, {Name: "my-db", Command: "npx db"}}},
		"Cursor, by the address":             {dialect.Cursor, "", `{"hook_event_name":"beforeMCPExecution","tool_name":"drop_table","tool_input":"{}","url":"https://db"}`, []guard.Server{{Name: "my-db", URL: "https://db"}}},
		"Cursor, with an unknown server":     {dialect.Cursor, "", `{"hook_event_name":"beforeMCPExecution","tool_name":"drop_table","tool_input":"{}","url":"https://x"}`, []guard.Server{{Name: "other"}, {Name: "my-db"}}},
		"Cursor, before any tool":            {dialect.Cursor, "", `{"hook_event_name":"preToolUse","tool_name":"MCP:drop_table","tool_input":{}}`, []guard.Server{{Name: "my-db"}}},
		"Cursor, with the server's name":     {dialect.Cursor, "", `{"hook_event_name":"preToolUse","tool_name":"MCP:my-db:drop_table","tool_input":{}}`, nil},
		"Cursor, with the name as an input":  {dialect.Cursor, "", `{"hook_event_name":"beforeMCPExecution","server_name":"my-db","tool_name":"drop_table","tool_input":"{}"}`, nil},
		"Copilot, in the spelling of others": {dialect.Copilot, "PreToolUse", `{"tool_name":"my-db-drop_table","tool_input":{}}`, nil},
		"Gemini CLI, the bare name":          {dialect.GeminiCLI, "", `{"hook_event_name":"BeforeTool","tool_name":"drop_table","tool_input":{}}`, known},
		"Gemini CLI, other signs":            {dialect.GeminiCLI, "", `{"hook_event_name":"BeforeTool","tool_name":"mcp_my_db_drop_table","tool_input":{}}`, known},
		"Claude Code, other signs":           {dialect.ClaudeCode, "", `{"hook_event_name":"PreToolUse","tool_name":"mcp__my_db__drop_table","tool_input":{}}`, known},
		"VS Code, lower case":                {dialect.Copilot, "preToolUse", `{"toolName":"mcp_my_db_Drop-Table","toolArgs":{}}`, known},
		"VS Code, the second of a name":      {dialect.Copilot, "preToolUse", `{"toolName":"mcp_my-db2_drop_table","toolArgs":{}}`, known},
		"Cursor, other signs":                {dialect.Cursor, "", `{"hook_event_name":"beforeMCPExecution","server_name":"My.DB","tool_name":"drop_table","tool_input":"{}"}`, known},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newEngine(t, floor)
			g.Servers = c.servers
			out := string(g.answer(t, c.agent, c.event, c.stdin).Stdout)
			if !strings.Contains(out, "deny") || !strings.Contains(out, "no drops") {
				t.Errorf("the answer is %s, want a denial by the rule", out)
			}
		})
	}
}

// A call with several meanings waits for one approval, not for one approval of each meaning.
func TestACallWithSeveralMeaningsNeedsOneApproval(t *testing.T) { // SPEC B-05
	t.Parallel()
	g := newEngine(t, asked)
	g.Servers = []guard.Server{{Name: "a"}, {Name: "b"}}
	call := `{"conversation_id":"k1","hook_event_name":"preToolUse","tool_name":"MCP:query","tool_input":{"sql":"select 1"}}`
	if out := g.answer(t, dialect.Cursor, "", call); !strings.Contains(string(out.Stdout), `"deny"`) {
		t.Fatalf("the call gets %s, want a denial with an approval", out.Stdout)
	}
	g.decide(t, true, "") // there is exactly one
	if out := g.answer(t, dialect.Cursor, "", call); strings.Contains(string(out.Stdout), "deny") {
		t.Errorf("the approved call gets %s", out.Stdout)
	}
}

// VS Code cuts the names of servers, and a rule about the whole name must not be missed.
func TestACutNameOfAServerIsDenied(t *testing.T) { // SPEC B-03
	t.Parallel()
	const tool = "io.github.acme/database__drop"
	g := newEngine(t, floorFunc(func(call belay.ToolCall) belay.Authorization {
		if call.Tool() == tool {
			return belay.Authorization{Decision: belay.ToolDeny, Reason: "no drops", By: "rule deny " + tool}
		}
		return belay.Authorization{}
	}))
	g.Servers = []guard.Server{{Name: "io.github.acme/database", Tools: []string{"drop"}}}
	for _, name := range []string{"mcp_io.github.acm_drop", "mcp_io.github.acm2_drop"} {
		if out := string(g.answer(t, dialect.Copilot, "preToolUse", `{"toolName":"`+name+`","toolArgs":{}}`).Stdout); !strings.Contains(out, "no drops") {
			t.Errorf("%s gets %s, want a denial by the rule", name, out)
		}
	}
	if out := string(g.answer(t, dialect.Copilot, "preToolUse", `{"toolName":"mcp_other_drop","toolArgs":{}}`).Stdout); strings.Contains(out, "deny") {
		t.Errorf("another server gets %s", out)
	}
}

// A name with more meanings than can be checked is denied.
func TestANameWithTooManyMeaningsIsDenied(t *testing.T) { // SPEC B-03
	t.Parallel()
	g := newEngine(t, floorFunc(func(belay.ToolCall) belay.Authorization { return belay.Authorization{} }))
	for count, denied := range map[int]bool{10: false, 100: true} {
		out := string(g.answer(t, dialect.Copilot, "preToolUse", `{"toolName":"a`+strings.Repeat("-b", count)+`","toolArgs":{}}`).Stdout)
		if strings.Contains(out, "too many tools") != denied || !denied && strings.Contains(out, "deny") {
			t.Errorf("a name with %d parts gets %s, want a denial: %t", count, out, denied)
		}
	}
}

// A hook on the result of a server's tool sees the result in every agent, and only once.
func TestAHookOnAResultOfAServer(t *testing.T) { // SPEC B-03
	t.Parallel()
	for name, c := range map[string]struct {
		agent        dialect.Vendor
		event, stdin string
	}{
		"Gemini CLI":  {dialect.GeminiCLI, "", `{"hook_event_name":"AfterTool","tool_name":"mcp_my-db_drop_table","tool_input":{},"tool_response":{"llmContent":"secret"}}`},
		"Copilot":     {dialect.Copilot, "postToolUse", `{"toolName":"my-db-drop_table","toolArgs":{},"toolResult":{"resultType":"success","textResultForLlm":"secret"}}`},
		"Claude Code": {dialect.ClaudeCode, "", `{"hook_event_name":"PostToolUse","tool_name":"mcp__my_db__drop_table","tool_input":{},"tool_response":"secret"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen []string
			g := newEngine(t, asked, belay.ToolPost.On("sees", func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
				seen = append(seen, r.Tool())
				return belay.ToolReaction{}, nil
			}, nil))
			g.Servers = []guard.Server{{Name: "my-db", Tools: []string{"drop_table"}}}
			g.answer(t, c.agent, c.event, c.stdin)
			if strings.Join(seen, " ") != "my-db__drop_table" {
				t.Errorf("the hook saw %q", seen)
			}
		})
	}
}
