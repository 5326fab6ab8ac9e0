package guard

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
)

// The contract of Codex: https://developers.openai.com/codex/hooks, and the schemas and the
// parser in codex-rs/hooks of https://github.com/openai/codex.
//
// Codex has the events and most outputs of Claude Code, but it treats an output that it does
// not support as a failed hook, and continues. So Belay writes only what Codex supports: at
// PreToolUse no question, no "continue": false, and a new input only with the decision
// "allow".

var codexEvents = map[string]struct {
	phase string
	can   abilities
}{
	"PreToolUse":       {belay.ToolPre.Name(), abilities{deny: true, input: true, context: true}},
	"PostToolUse":      {belay.ToolPost.Name(), abilities{result: true, context: true}},
	"UserPromptSubmit": {belay.UserPromptSubmit.Name(), abilities{deny: true, context: true}},
	"Stop":             {belay.TurnStop.Name(), abilities{deny: true}},
	"SubagentStop":     {belay.SubagentStop.Name(), abilities{}},
	"SessionStart":     {belay.SessionStart.Name(), abilities{context: true}},
	"PreCompact":       {belay.TurnPreCompaction.Name(), abilities{}},
}

func readCodex(f fields, name, project string) (*event, error) {
	known := codexEvents[name]
	e := &event{agent: dialect.Codex, phase: known.phase, can: known.can}
	return e, readCommon(e, f, name, project)
}

func writeCodex(e *event, a answer) Output {
	var out claudeOutput
	specific := claudeSpecific{EventName: e.name, Context: a.joined()}
	switch {
	case e.phase == belay.ToolPre.Name() && a.blocks():
		specific.Permission, specific.Reason = "deny", a.reason
	case e.phase == belay.ToolPre.Name() && a.input != nil:
		specific.Permission, specific.Input = "allow", a.input // Codex still asks its user if its own rules say so
	case a.result != nil: // the reason replaces the result
		out.Decision, out.Reason = "block", orNoText(*a.result)
	case a.blocks():
		out.Decision, out.Reason = "block", a.reason
	}
	if specific.Permission != "" || specific.Context != "" {
		out.SpecificOutput = &specific
	}
	if out == (claudeOutput{}) {
		return silent(a)
	}
	return printed(out, a)
}

// orNoText returns a text that is not blank, because the agents ignore a blank one.
func orNoText(text string) string {
	if oneParagraph(text) == "" {
		return "(a hook removed the text)"
	}
	return text
}
