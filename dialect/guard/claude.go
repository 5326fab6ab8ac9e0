package guard

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
)

// The contract of Claude Code: https://code.claude.com/docs/en/hooks
//
// Claude Code reads JSON from standard output if the exit code is 0. With exit code 2 it
// blocks, with standard error as the reason. After any other exit code it continues.

// claudeEvents maps the events to phases, and says what an answer can express.
var claudeEvents = map[string]struct {
	phase string
	can   abilities
}{
	"PreToolUse":         {belay.ToolPre.Name(), abilities{ask: true, deny: true, halt: true, input: true, context: true}},
	"PostToolUse":        {belay.ToolPost.Name(), abilities{halt: true, context: true}},
	"PostToolUseFailure": {belay.ToolPost.Name(), abilities{halt: true, context: true}},
	"UserPromptSubmit":   {belay.UserPromptSubmit.Name(), abilities{deny: true, context: true}},
	"Stop":               {belay.TurnStop.Name(), abilities{deny: true}},
	"SubagentStop":       {belay.SubagentStop.Name(), abilities{}},
	"SessionStart":       {belay.SessionStart.Name(), abilities{context: true}},
	"SessionEnd":         {belay.SessionEnd.Name(), abilities{}},
	"PreCompact":         {belay.TurnPreCompaction.Name(), abilities{}},
}

func readClaude(f fields, name, project string) (*event, error) {
	known := claudeEvents[name]
	e := &event{agent: dialect.ClaudeCode, phase: known.phase, can: known.can}
	return e, readCommon(e, f, name, project)
}

// readCommon reads the inputs that Claude Code, Codex and Gemini CLI spell alike.
func readCommon(e *event, f fields, name, project string) error {
	e.session, e.turn, e.dir = f.text("session_id"), f.text("turn_id"), f.text("cwd")
	e.continued = f.isTrue("stop_hook_active")
	switch e.phase {
	case belay.ToolPre.Name(), belay.ToolPost.Name():
		if err := e.setCall(f.text("tool_name"), f.first("tool_input"), f.text("tool_use_id"), project); err != nil {
			if e.phase == belay.ToolPre.Name() {
				return err
			}
			e.calls = []dialect.Call{{Tool: cmp.Or(e.call.Tool, "unknown"), Input: json.RawMessage("{}")}} // the call has run: record it
		}
		e.readResult(f, name)
	case belay.UserPromptSubmit.Name():
		e.text = f.text("prompt", "user_prompt")
	case belay.TurnStop.Name():
		e.text = f.text("last_assistant_message", "prompt_response")
	case belay.SessionStart.Name():
		e.detail = f.text("source")
	case belay.SessionEnd.Name():
		e.detail = f.text("reason")
	case belay.SubagentStop.Name():
		e.detail, e.callID = f.text("agent_type", "agent_name"), f.text("agent_id")
	case belay.TurnPreCompaction.Name():
		e.detail = f.text("trigger")
	}
	return nil
}

// readResult reads the result of a tool.
func (e *event) readResult(f fields, name string) {
	if e.phase != belay.ToolPost.Name() {
		return
	}
	result := f.first("tool_response", "tool_output", "tool_result", "error")
	e.text = shown(result)
	e.failed = strings.HasSuffix(name, "Failure")
	if in, err := readFields(result); err == nil {
		e.failed = e.failed || in.isTrue("is_error") || in.isTrue("isError") || in.first("error") != nil
	}
}

// claudeOutput is the JSON that Claude Code and Codex read.
type claudeOutput struct {
	Continue       *bool           `json:"continue,omitempty"`
	StopReason     string          `json:"stopReason,omitempty"`
	Decision       string          `json:"decision,omitempty"`
	Reason         string          `json:"reason,omitempty"`
	SystemMessage  string          `json:"systemMessage,omitempty"`
	SpecificOutput *claudeSpecific `json:"hookSpecificOutput,omitempty"`
}

type claudeSpecific struct {
	EventName  string          `json:"hookEventName"`
	Permission string          `json:"permissionDecision,omitempty"`
	Reason     string          `json:"permissionDecisionReason,omitempty"`
	Input      json.RawMessage `json:"updatedInput,omitempty"`
	Context    string          `json:"additionalContext,omitempty"`
}

func writeClaude(e *event, a answer) Output {
	var out claudeOutput
	specific := claudeSpecific{EventName: e.name, Context: a.joined(), Input: a.input}
	switch {
	case e.phase == belay.ToolPre.Name() && a.decision != belay.ToolPass:
		specific.Permission, specific.Reason = "deny", a.reason
		if a.decision == belay.ToolAsk {
			specific.Permission = "ask"
		}
	case a.blocks() && a.decision == belay.ToolDeny:
		out.Decision, out.Reason = "block", a.reason
	}
	if a.decision == belay.ToolHalt {
		out.Continue, out.StopReason = new(false), a.reason
	}
	if specific.Permission != "" || specific.Input != nil || specific.Context != "" {
		out.SpecificOutput = &specific
	}
	if e.name == "UserPromptSubmit" || e.name == "SessionStart" {
		out.SystemMessage = a.lost // Claude Code gives standard error of these events to nobody
	}
	if out == (claudeOutput{}) {
		return silent(a)
	}
	return printed(out, a)
}
