package demo

import (
	"fmt"
	"strings"

	"github.com/belay-run/belay"
)

// story prints the events of a turn, one line each. Streamed text of the model continues on
// its line.
type story struct {
	*Tour

	speaking bool // the line of the model's text has not ended
	step     int  // the last step whose request was printed
}

// line prints a line: who acts, and what happens.
func (s *story) line(who, what string) {
	s.hush()
	indented := strings.ReplaceAll(strings.TrimSpace(what), "\n", "\n"+strings.Repeat(" ", 12))
	s.Sayf("  %-9s %s", who, indented)
}

// hush ends the line of the model's text.
func (s *story) hush() {
	if s.speaking {
		s.speaking = false
		s.write("\n")
	}
}

func (s *story) tell(e *belay.Event) {
	switch e.Kind {
	case belay.EventTextDelta:
		s.told(e.Step)
		if !s.speaking {
			s.speaking = true
			s.write(fmt.Sprintf("  %-9s ", "model"))
		}
		s.write(e.Text)
	case belay.EventToolUse:
		s.call(e.Call)
	case belay.EventToolUseResult:
		s.result(e.Call, e.Result)
	case belay.EventApprovalRequested:
		s.line("asked", fmt.Sprintf("may %s run? %s (says %s)", e.Call.Tool, e.Approval.Reason, e.Approval.By))
	case belay.EventApprovalDecided:
		s.decided(e.Approval)
	case belay.EventCompactionStart:
		s.line("full", fmt.Sprintf("the context nears the window of %d tokens and is summarized", window))
	case belay.EventCompactionEnd:
		if e.Message != nil {
			s.line("summary", gist(e.Message))
		}
	case belay.EventError:
		s.line("error", e.Text)
	case belay.EventTurnEnd:
		s.end = e.End
		s.line("end", fmt.Sprintf("%s after %d steps", e.End.Reason, e.End.Steps))
	default:
	}
}

// told prints what hooks added to the current request. This is everything after the model's
// last answer, except results and the user's text.
func (s *story) told(step int) {
	if step == s.step {
		return
	}
	s.step = step
	requests := s.model.Requests()
	if len(requests) == 0 {
		return
	}
	request := requests[len(requests)-1]
	if _, rules, ok := strings.Cut(request.System, "## House rules\n\n"); ok && step == 1 {
		s.line("told", "house-rules: "+rules+" (two hooks set the policy, to 20 and 3: the smaller value wins)")
	}
	var news []*belay.Message
	for _, m := range request.Messages {
		if news = append(news, m); m.Role == belay.RoleAssistant {
			news = nil
		}
	}
	for _, m := range news {
		if m.Kind != belay.KindContext && m.Kind != belay.KindReminder {
			continue
		}
		for i := range m.Parts {
			s.line("told", unwrapped(m.Parts[i].Text))
		}
	}
}

func (s *story) call(c *belay.CallPart) {
	s.line("call", fmt.Sprintf("%s %s", c.Tool, c.Input))
	if len(c.RewrittenBy) > 0 {
		s.line("rewritten", fmt.Sprintf("by %s: %s", strings.Join(c.RewrittenBy, ", "), c.Final))
	}
}

func (s *story) result(c *belay.CallPart, r *belay.Result) {
	who := "result"
	if r.IsError {
		who = string(r.Class)
	}
	s.line(who, c.Tool+": "+r.Text)
}

func (s *story) decided(a *belay.Approval) {
	word := "no"
	if a.Decided.Allow {
		word = "yes"
	}
	s.line("decided", fmt.Sprintf("%s, by %s: %s", word, a.Decided.By, a.Decided.Reason))
}

// unwrapped removes the XML element around a text that a hook added.
func unwrapped(text string) string {
	open, rest, _ := strings.Cut(text, "\n")
	body, _, _ := strings.Cut(rest, "\n</")
	if _, from, ok := strings.Cut(open, ` from="`); ok {
		return strings.TrimSuffix(from, `">`) + ": " + body
	}
	return body
}

// gist returns a message as one line.
func gist(m *belay.Message) string {
	var words []string
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Call != nil && len(p.Call.RewrittenBy) > 0:
			words = append(words, fmt.Sprintf("[calls %s, rewritten by %s]", p.Call.Tool, strings.Join(p.Call.RewrittenBy, ", ")))
		case p.Call != nil:
			words = append(words, fmt.Sprintf("[calls %s]", p.Call.Tool))
		case p.Result != nil && p.Result.IsError:
			words = append(words, fmt.Sprintf("[%s: %s]", p.Result.Tool, p.Result.Class))
		case p.Result != nil:
			words = append(words, fmt.Sprintf("[%s]", p.Result.Tool))
		case m.Kind == belay.KindContext || m.Kind == belay.KindReminder:
			words = append(words, unwrapped(p.Text))
		default:
			words = append(words, strings.TrimPrefix(p.Text, "Summary of the conversation so far:\n\n"))
		}
	}
	line, _, _ := strings.Cut(strings.Join(words, " "), "\n")
	return line
}
