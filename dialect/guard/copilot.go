package guard

import (
	"encoding/json"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
)

// The contract of GitHub Copilot: https://docs.github.com/en/copilot/reference/hooks-reference,
// as of August 2026.
//
// At preToolUse, every exit code but 0 denies; older versions continued. At other events,
// Copilot continues after a failure. So a denial is always JSON with exit code 0: this is
// right for all versions. Its own spelling of events (preToolUse) does not write the name of the event: the
// command needs --event. The other spelling (PreToolUse) has the field hook_event_name.

var copilotEvents = map[string]struct {
	phase string
	can   abilities
}{
	"preToolUse":          {belay.ToolPre.Name(), abilities{ask: true, deny: true, input: true}},
	"postToolUse":         {belay.ToolPost.Name(), abilities{result: true, context: true}},
	"postToolUseFailure":  {belay.ToolPost.Name(), abilities{}},
	"userPromptSubmitted": {belay.UserPromptSubmit.Name(), abilities{}},
	"agentStop":           {belay.TurnStop.Name(), abilities{deny: true}},
	"subagentStop":        {belay.SubagentStop.Name(), abilities{}},
	"sessionStart":        {belay.SessionStart.Name(), abilities{context: true}},
	"sessionEnd":          {belay.SessionEnd.Name(), abilities{}},
	"preCompact":          {belay.TurnPreCompaction.Name(), abilities{}},
}

// copilotName returns Copilot's own spelling of an event.
func copilotName(name string) string {
	switch name {
	case "UserPromptSubmit":
		return "userPromptSubmitted"
	case "Stop":
		return "agentStop"
	case "":
		return ""
	}
	return strings.ToLower(name[:1]) + name[1:]
}

func readCopilot(f fields, name, project string) (*event, error) {
	known := copilotEvents[copilotName(name)]
	e := &event{agent: dialect.Copilot, phase: known.phase, can: known.can}
	e.session, e.dir = f.text("sessionId", "session_id"), f.text("cwd")
	e.continued = f.isTrue("stop_hook_active")
	switch e.phase {
	case belay.ToolPre.Name(), belay.ToolPost.Name():
		input := f.first("toolArgs", "tool_input")
		if text := shown(input); strings.HasPrefix(strings.TrimSpace(text), "{") { // JSON in a string
			input = json.RawMessage(text)
		}
		if err := e.setCall(f.text("toolName", "tool_name"), input, "", project); err != nil {
			if e.phase == belay.ToolPre.Name() {
				return nil, err
			}
			e.calls = []dialect.Call{{Tool: "unknown", Input: json.RawMessage("{}")}} // the call has run: record it
		}
		e.text = shown(f.first("error"))
		if result, err := readFields(f.first("toolResult", "tool_result")); err == nil {
			e.text = result.text("textResultForLlm", "text_result_for_llm")
			kind := result.text("resultType", "result_type")
			e.failed = kind != "" && kind != "success"
		}
		e.failed = e.failed || strings.HasSuffix(name, "Failure")
	case belay.UserPromptSubmit.Name():
		e.text = f.text("prompt")
	case belay.SessionStart.Name():
		e.detail = f.text("source")
	case belay.SessionEnd.Name():
		e.detail = f.text("reason")
	case belay.SubagentStop.Name():
		e.detail = f.text("agentName", "agent_name")
	case belay.TurnPreCompaction.Name():
		e.detail = f.text("trigger")
	}
	return e, nil
}

type copilotOutput struct {
	Permission string          `json:"permissionDecision,omitempty"`
	Reason     string          `json:"permissionDecisionReason,omitempty"`
	Input      json.RawMessage `json:"modifiedArgs,omitempty"`
	Decision   string          `json:"decision,omitempty"`
	Why        string          `json:"reason,omitempty"`
	Result     *copilotResult  `json:"modifiedResult,omitempty"`
	Context    string          `json:"additionalContext,omitempty"`
}

type copilotResult struct {
	Type string `json:"resultType"`
	Text string `json:"textResultForLlm"`
}

func writeCopilot(e *event, a answer) Output {
	var out copilotOutput
	switch {
	case e.phase == belay.ToolPre.Name():
		out.Input = a.input
		if a.decision != belay.ToolPass {
			out.Permission, out.Reason = "deny", a.reason
		}
		if a.decision == belay.ToolAsk {
			out.Permission = "ask"
		}
	case a.blocks():
		out.Decision, out.Why = "block", a.reason
	case a.result != nil:
		out.Result = &copilotResult{"success", orNoText(*a.result)}
	}
	if e.can.context {
		out.Context = a.joined()
	}
	if out.Permission == "" && out.Input == nil && out.Decision == "" && out.Result == nil && out.Context == "" {
		return silent(a)
	}
	return printed(out, a)
}

// refuseCopilot denies the call, if the event is about one. Copilot ignores this output at
// other events.
func refuseCopilot(_, reason string) Output {
	return printed(copilotOutput{Permission: "deny", Reason: oneParagraph(reason)}, answer{lost: reason})
}
