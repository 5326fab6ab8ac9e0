package guard

import (
	"encoding/json"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
)

// The contract of Gemini CLI: https://geminicli.com/docs/hooks/reference
//
// Gemini CLI reads JSON from standard output if the exit code is 0. With exit code 2 it
// blocks, with standard error as the reason. Its timeouts are in milliseconds.

var geminiEvents = map[string]struct {
	phase string
	can   abilities
}{
	"BeforeTool":   {belay.ToolPre.Name(), abilities{deny: true, halt: true, input: true}},
	"AfterTool":    {belay.ToolPost.Name(), abilities{halt: true, result: true, context: true}},
	"BeforeAgent":  {belay.UserPromptSubmit.Name(), abilities{deny: true, context: true}},
	"AfterAgent":   {belay.TurnStop.Name(), abilities{deny: true}},
	"SessionStart": {belay.SessionStart.Name(), abilities{context: true}},
	"SessionEnd":   {belay.SessionEnd.Name(), abilities{}},
	"PreCompress":  {belay.TurnPreCompaction.Name(), abilities{}},
}

func readGemini(f fields, name, project string) (*event, error) {
	known := geminiEvents[name]
	e := &event{agent: dialect.GeminiCLI, phase: known.phase, can: known.can}
	if err := readCommon(e, f, name, project); err != nil {
		return nil, err
	}
	if server, err := readFields(f.first("mcp_context")); err == nil {
		e.server.name, e.server.tool = server.text("server_name"), server.text("tool_name")
	}
	if result, err := readFields(f.first("tool_response")); err == nil && e.phase == belay.ToolPost.Name() {
		if content := result.first("llmContent"); content != nil {
			e.text = shown(content)
		}
	}
	return e, nil
}

type geminiOutput struct {
	Continue       *bool           `json:"continue,omitempty"`
	StopReason     string          `json:"stopReason,omitempty"`
	Decision       string          `json:"decision,omitempty"`
	Reason         string          `json:"reason,omitempty"`
	SpecificOutput *geminiSpecific `json:"hookSpecificOutput,omitempty"`
}

type geminiSpecific struct {
	EventName string          `json:"hookEventName"`
	Input     json.RawMessage `json:"tool_input,omitempty"`
	Context   string          `json:"additionalContext,omitempty"`
}

func writeGemini(e *event, a answer) Output {
	var out geminiOutput
	switch {
	case a.blocks():
		out.Decision, out.Reason = "deny", a.reason
	case a.result != nil: // the reason replaces the result
		out.Decision, out.Reason = "deny", orNoText(*a.result)
	}
	if a.decision == belay.ToolHalt {
		out.Continue, out.StopReason = new(false), a.reason
	}
	if text := a.joined(); text != "" || a.input != nil {
		out.SpecificOutput = &geminiSpecific{EventName: e.name, Input: a.input, Context: text}
	}
	if out == (geminiOutput{}) {
		return silent(a)
	}
	return printed(out, a)
}
