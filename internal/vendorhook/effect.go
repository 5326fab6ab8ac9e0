package vendorhook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay/dialect"
)

// answer translates what a command said to the answer of the phase.
func (p *proto) answer(ev *Event, s *said) map[string]any {
	a := make(map[string]any)
	p.show(a, s.message)
	switch p.event.Kind {
	case dialect.PreToolUse:
		p.beforeTool(ev, s, a)
	case dialect.PostToolUse, dialect.PostToolUseFailure:
		p.afterTool(s, a)
	case dialect.Stop, dialect.SubagentStop:
		p.stopping(s, a)
	case dialect.UserPromptSubmit:
		p.prompt(s, a)
	case dialect.PermissionRequest:
		p.permission(s, a)
	case dialect.SessionStart, dialect.SubagentStart:
		tell(a, s.context...)
		if p.event.Kind == dialect.SessionStart && p.Vendor != dialect.GeminiCLI && !s.denied {
			tell(a, s.plain)
		}
		if s.denied || s.stopped {
			p.show(a, cmp.Or(s.reason, s.stop)) // these events cannot block
		}
	case dialect.PreCompact:
		if !s.denied && !s.stopped {
			instructions(a, append(slices.Clone(s.context), s.plain)...)
		} else {
			p.show(a, cmp.Or(s.reason, s.stop)) // this event cannot block
		}
	case dialect.SessionEnd, dialect.Notification:
	}
	return a
}

// beforeTool answers at tool.pre.
func (p *proto) beforeTool(ev *Event, s *said, a map[string]any) {
	switch {
	case s.stopped:
		a["decision"], a["reason"] = "halt", p.because(cmp.Or(s.stop, s.reason))
		return
	case s.denied:
		a["decision"], a["reason"] = "deny", p.because(s.reason)
		tell(a, s.context...)
		return
	case s.asked:
		a["decision"], a["reason"] = "ask", p.because(s.reason)
	}
	tell(a, s.context...)
	if s.input != nil {
		p.newInput(ev, s, a)
	}
	if s.allowed && !s.asked && a["decision"] == nil {
		if slices.Contains(p.opts.Grants, "approve") {
			p.memory.allow(ev.Session, ev.in.ID, s.reason)
		} else {
			audit(a, "allow_ignored", "the hook allowed the call, but its directory has no grant approve: the usual questions are asked")
		}
	}
}

// newInput replaces the input of a call. Without the grant, a person decides about the
// original input.
func (p *proto) newInput(ev *Event, s *said, a map[string]any) {
	ask := func(why string) { a["decision"], a["reason"] = "ask", why }
	if !slices.Contains(p.opts.Grants, "rewrite_input") {
		ask(fmt.Sprintf("the hook %s wants to change this call, and its directory has no grant rewrite_input: decide about the call as it is", p.decl.ID))
		return
	}
	name, _ := p.when.name(ev.own)
	input, err := p.Vendor.Updated(ev.own, p.opts.Project, name, p.merged(ev, s))
	if err != nil {
		ask(fmt.Sprintf("the hook %s wants to change this call in a way that Belay cannot do (%v): decide about the call as it is", p.decl.ID, err))
		return
	}
	a["input"] = input
}

// merged returns the whole new input in the vendor's form. Gemini CLI names only what
// changes.
func (p *proto) merged(ev *Event, s *said) json.RawMessage {
	if p.Vendor != dialect.GeminiCLI {
		return s.input
	}
	var before, change map[string]json.RawMessage
	if json.Unmarshal(ev.Call.Input, &before) != nil || json.Unmarshal(s.input, &change) != nil {
		return s.input
	}
	maps.Copy(before, change)
	data, err := json.Marshal(before)
	if err != nil {
		return s.input
	}
	return data
}

// afterTool answers at tool.post.
func (p *proto) afterTool(s *said, a map[string]any) {
	tell(a, s.context...)
	rewrites := slices.Contains(p.opts.Grants, "rewrite_output")
	switch {
	case s.result != nil && rewrites:
		a["result"] = *s.result
	case s.result != nil:
		audit(a, "result_ignored", "the hook wants another result, but its directory has no grant rewrite_output")
	}
	switch {
	case s.stopped:
		tell(a, fmt.Sprintf("A hook has stopped this turn: %s. Call no more tools. Tell the user why you stop.", strings.TrimSuffix(p.because(cmp.Or(s.stop, s.reason)), ".")))
	case s.denied && p.Vendor == dialect.GeminiCLI && rewrites:
		a["result"] = p.because(s.reason)
	case s.denied:
		tell(a, "A hook found a problem after this call: "+p.because(s.reason))
	}
}

// stopping answers at turn.stop.
func (p *proto) stopping(s *said, a map[string]any) {
	switch {
	case s.stopped:
		p.show(a, s.stop)
	case s.denied:
		a["decision"], a["reason"] = "continue", p.because(s.reason)
		tell(a, s.context...)
	case strings.TrimSpace(s.advice) != "" && p.Vendor == dialect.ClaudeCode: // the model must act on it
		a["decision"], a["reason"] = "continue", s.advice
	default:
		tell(a, s.context...)
	}
}

// prompt answers at user.prompt.submit.
func (p *proto) prompt(s *said, a map[string]any) {
	if s.denied || s.stopped {
		reason := s.reason
		if s.stopped {
			reason = cmp.Or(s.stop, s.reason)
		}
		a["decision"], a["reason"] = "deny", p.because(reason)
		return
	}
	tell(a, s.context...)
	if p.Vendor != dialect.GeminiCLI {
		tell(a, s.plain)
	}
}

// permission answers at approval.request. The hook runs only with the grant approve.
func (p *proto) permission(s *said, a map[string]any) {
	switch {
	case s.denied || s.stopped:
		a["decision"], a["reason"] = "deny", p.because(cmp.Or(s.reason, s.stop))
	case s.allowed:
		a["decision"], a["reason"] = "allow", cmp.Or(s.reason, "a hook allowed it")
	}
}

// because returns the reason, or a text that says that there is none.
func (p *proto) because(reason string) string {
	if reason = strings.TrimSpace(reason); reason != "" {
		return reason
	}
	return fmt.Sprintf("the hook %s of %s gave no reason", p.decl.ID, p.Vendor.Title())
}

// show adds a text for the user.
func (p *proto) show(a map[string]any, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	if before, ok := a["output"].(string); ok {
		text = before + "\n" + text
	}
	a["output"] = text
}

// tell adds texts for the model.
func tell(a map[string]any, texts ...string) { addTexts(a, "context", texts) }

// instructions adds texts for the summary.
func instructions(a map[string]any, texts ...string) { addTexts(a, "instructions", texts) }

func addTexts(a map[string]any, key string, texts []string) {
	list, _ := a[key].([]map[string]string)
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			list = append(list, map[string]string{"text": text})
		}
	}
	if len(list) > 0 {
		a[key] = list
	}
}

func audit(a map[string]any, code, message string) {
	list, _ := a["audit"].([]map[string]string)
	a["audit"] = append(list, map[string]string{"code": code, "message": message})
}
