package guard

import (
	"encoding/json"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
)

// The contract of Cursor: https://cursor.com/docs/hooks, as of 2026.
//
// Cursor reads JSON from standard output if the exit code is 0. With exit code 2 it blocks.
// After any other exit code it continues, unless the hook has failClosed. Only
// beforeShellExecution and beforeMCPExecution ask the user: Cursor accepts "ask" at
// preToolUse, but its documentation says that it does not enforce it.

var cursorEvents = map[string]struct {
	phase string
	can   abilities
}{
	"preToolUse":           {belay.ToolPre.Name(), abilities{deny: true, input: true}},
	"beforeShellExecution": {belay.ToolPre.Name(), abilities{ask: true, deny: true}},
	"beforeMCPExecution":   {belay.ToolPre.Name(), abilities{ask: true, deny: true}},
	"beforeReadFile":       {belay.ToolPre.Name(), abilities{deny: true}},
	"beforeTabFileRead":    {belay.ToolPre.Name(), abilities{deny: true}},
	"postToolUse":          {belay.ToolPost.Name(), abilities{context: true}},
	"postToolUseFailure":   {belay.ToolPost.Name(), abilities{}},
	"afterShellExecution":  {belay.ToolPost.Name(), abilities{}},
	"afterMCPExecution":    {belay.ToolPost.Name(), abilities{}},
	"afterFileEdit":        {belay.ToolPost.Name(), abilities{}},
	"afterTabFileEdit":     {belay.ToolPost.Name(), abilities{}},
	"beforeSubmitPrompt":   {belay.UserPromptSubmit.Name(), abilities{deny: true}},
	"stop":                 {belay.TurnStop.Name(), abilities{deny: true}},
	"subagentStop":         {belay.SubagentStop.Name(), abilities{}},
	"sessionStart":         {belay.SessionStart.Name(), abilities{context: true}},
	"sessionEnd":           {belay.SessionEnd.Name(), abilities{}},
	"preCompact":           {belay.TurnPreCompaction.Name(), abilities{}},
}

func readCursor(f fields, name, project string) (*event, error) {
	known := cursorEvents[name]
	e := &event{agent: dialect.Cursor, phase: known.phase, can: known.can}
	e.session, e.turn, e.dir = f.text("conversation_id", "session_id"), f.text("generation_id"), f.text("cwd")
	var rounds int
	_ = json.Unmarshal(f["loop_count"], &rounds) // without a count, the turn was not continued
	e.continued = rounds > 0
	switch e.phase {
	case belay.ToolPre.Name(), belay.ToolPost.Name():
		tool, input, err := cursorCall(f, name)
		if err == nil {
			err = e.setCall(tool, input, f.text("tool_use_id"), project)
		}
		e.server = cursorServer(f, tool)
		if err != nil && e.phase == belay.ToolPre.Name() {
			return nil, err
		}
		if err != nil {
			e.calls = []dialect.Call{{Tool: "unknown", Input: json.RawMessage("{}")}} // the call has run: record it
		}
		e.text = shown(f.first("tool_output", "output", "result_json", "error_message"))
		e.failed = name == "postToolUseFailure"
	case belay.UserPromptSubmit.Name():
		e.text = f.text("prompt")
	case belay.SessionStart.Name():
		e.detail = "startup"
	case belay.SessionEnd.Name():
		e.detail = f.text("reason")
	case belay.SubagentStop.Name():
		e.detail = f.text("subagent_type")
	case belay.TurnPreCompaction.Name():
		e.detail = f.text("trigger")
	}
	return e, nil
}

// cursorCall returns the call that an event is about.
func cursorCall(f fields, name string) (tool string, input json.RawMessage, err error) {
	switch name {
	case "beforeShellExecution", "afterShellExecution":
		in := fields{"command": f.first("command")}
		if dir := f.first("cwd"); dir != nil {
			in["cwd"] = dir
		}
		input, err = json.Marshal(in)
		return "Shell", input, err
	case "beforeReadFile", "beforeTabFileRead":
		input, err = json.Marshal(fields{"file_path": f.first("file_path")})
		return "Read", input, err
	case "afterFileEdit", "afterTabFileEdit":
		input, err = json.Marshal(fields{"file_path": f.first("file_path"), "edits": f.first("edits")})
		return "MultiEdit", input, err
	}
	input = f.first("tool_input")
	if text := shown(input); strings.HasPrefix(strings.TrimSpace(text), "{") { // MCP inputs are JSON in a string
		input = json.RawMessage(text)
	}
	tool = f.text("tool_name")
	mcp := name == "beforeMCPExecution" || name == "afterMCPExecution"
	if rest, ok := strings.CutPrefix(tool, "MCP:"); ok {
		tool, mcp = strings.Replace(strings.TrimSpace(rest), ":", "__", 1), true
	}
	if mcp && tool != "" && !strings.Contains(tool, "__") { // Cursor does not always name the server
		tool = nameless + "__" + tool
	}
	return tool, input, nil
}

// cursorServer returns what an event says about the MCP server of a call.
func cursorServer(f fields, tool string) server {
	name, nameOnly := strings.CutPrefix(tool, nameless+"__")
	if !nameOnly {
		return server{}
	}
	return server{tool: name, name: f.text("server_name", "mcp_server_name"), url: f.text("url"), command: f.text("command")}
}

type cursorOutput struct {
	Permission   string          `json:"permission,omitempty"`
	Continue     *bool           `json:"continue,omitempty"`
	UserMessage  string          `json:"user_message,omitempty"`
	AgentMessage string          `json:"agent_message,omitempty"`
	Input        json.RawMessage `json:"updated_input,omitempty"`
	Context      string          `json:"additional_context,omitempty"`
	FollowUp     string          `json:"followup_message,omitempty"`
}

func writeCursor(e *event, a answer) Output {
	out := cursorOutput{Input: a.input, Context: a.joined()}
	switch e.phase {
	case belay.ToolPre.Name():
		if a.decision != belay.ToolPass {
			out.Permission, out.UserMessage, out.AgentMessage = "deny", a.reason, a.reason
		}
		if a.decision == belay.ToolAsk {
			out.Permission = "ask"
		}
	case belay.UserPromptSubmit.Name():
		if a.blocks() {
			out.Continue, out.UserMessage = new(false), a.reason
		}
	case belay.TurnStop.Name():
		if a.blocks() {
			out.FollowUp = a.reason
		}
	}
	return printed(out, a) // an empty object is valid JSON, which failClosed requires
}
