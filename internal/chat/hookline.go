package chat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/visible"
)

// deeds maps the kind of a hook's contribution to words that say what the hook did.
var deeds = map[string]string{
	"deny": "blocked it", "halt": "halted the turn", "ask": "asked for approval", "allow": "approved it",
	"input": "rewrote the input", "result": "rewrote the result", "prompt": "rewrote the prompt", "answer": "answered instead of the model",
	"context": "reminded the model", "prompt_context": "added context", "section": "added to the prompt", "policy": "set the turn's policy",
	"bundle": "added tools", "continue": "continued the turn", "instruction": "changed the summary",
}

// deed returns what a hook did, in words, or "".
func deed(run *hook.Run) string {
	var did []string
	for _, part := range run.Contributed {
		if word := deeds[part.Kind]; word != "" && !slices.Contains(did, word) {
			did = append(did, word)
		}
	}
	switch run.State {
	case hook.Failed, hook.TimedOut, hook.Interrupted:
		word := strings.ReplaceAll(run.State.String(), "_", " ")
		if run.Class != "" {
			word += " (" + string(run.Class) + ")"
		}
		did = append([]string{word}, did...)
	case hook.Backgrounded:
		did = append(did, "continues in the background")
	default:
	}
	if len(did) > 0 && run.Shadow {
		return "shadow mode, ignored: " + strings.Join(did, ", ")
	}
	return strings.Join(did, ", ")
}

// hooked shows the run of a hook that did something.
func (m *model) hooked(e *belay.Event) {
	if e.HookRun == nil {
		return
	}
	if did := deed(e.HookRun); did != "" {
		m.blocks(m.step.text.flush()) // print the text first: hook runs are reported after the response is complete
		m.note(m.look.warn.Render("⚑"), fmt.Sprintf("hook %s at %s: %s", e.HookRun.Subscription, e.HookRun.Phase, did))
	}
}

// hookSaid shows the output of a hook, or that a hook made the turn continue.
func (m *model) hookSaid(agent string, e *belay.Event) {
	m.blocks(m.step.text.flush())
	if e.Kind == belay.EventTurnContinued {
		m.note(m.look.warn.Render("⚑"), "continues: "+agent+e.By+": "+e.Text)
		return
	}
	text := visible.Clean("hook " + agent + e.By + ": " + strings.TrimSpace(e.Text))
	m.say(kindLine, each(m.look.dim, indented(text, "⚑ ", m.width-1))...)
}

// hookFailed shows that a hook failed, and why. If the same failure was shown before, it
// shows only the first line.
func (m *model) hookFailed(agent string, e *belay.Event) {
	d := e.Diagnostic
	if d == nil {
		return
	}
	if e.Depth == 0 && m.failures != nil {
		m.failures[d.String()] = true
	}
	text := visible.HookFailure(agent+e.By, d.Phase, d.Message, e.Text)
	first, _, _ := strings.Cut(text, "\n")
	if m.warned[text] {
		text = first
	}
	m.warned[text] = true
	m.blocks(m.step.text.flush())
	m.note(m.look.warn.Render("⚑"), text)
}

// note prints a text about an event, without shortening it.
func (m *model) note(mark, text string) {
	m.say(kindLine, indented(visible.Clean(text), mark+" ", m.width-1)...)
}

// diagnosed shows the diagnostics of a turn, except those that hookFailed already showed.
func (m *model) diagnosed(diagnostics []hook.Diagnostic) {
	const most = 5
	diagnostics = slices.DeleteFunc(slices.Clone(diagnostics), func(d hook.Diagnostic) bool { return m.failures[d.String()] })
	for i, d := range diagnostics {
		if i == most && len(diagnostics) > most+1 {
			m.note(m.look.warn.Render("⚑"), fmt.Sprintf("%s more", many(len(diagnostics)-most, "diagnostic")))
			return
		}
		m.note(m.look.warn.Render("⚑"), d.String())
	}
}
