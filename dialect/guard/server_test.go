package guard_test

import (
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
