package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/visible"
)

// askUser is the tool whose approvals are questions, answered by what they are decided with.
const askUser = "ask_user"

// stepView is what the model is saying now.
type stepView struct {
	text      stream
	full      strings.Builder // the text of the step
	printed   bool            // some of it is
	thought   strings.Builder
	thinkFrom time.Time
}

// work begins something that takes a while.
func (m *model) work(doing string) {
	m.number++
	m.working, m.aborting, m.doing, m.since = true, false, doing, m.now
	m.step, m.calls, m.spent, m.floor = stepView{}, nil, belay.Usage{}, 0
	m.failures = make(map[string]bool)
}

// happened shows an event of the turn.
func (m *model) happened(e *belay.Event) {
	if e.Kind == belay.EventToolProgress {
		if c := m.find(e.Run, e.Call); c != nil {
			c.news = e.Text
		}
		return
	}
	if e.Depth > 0 {
		m.happenedBelow(e)
		return
	}
	switch e.Kind {
	case belay.EventTextDelta:
		m.spoke(e.Text)
	case belay.EventThinkingDelta:
		m.thinks(e)
	case belay.EventModelResponse:
		m.responded(e.Message)
	case belay.EventTokenConsumption:
		m.consumed(e.Usage)
	case belay.EventToolUse:
		m.used(e)
	case belay.EventToolUseResult:
		m.answered(e)
	case belay.EventApprovalRequested, belay.EventApprovalDecided:
		m.decided(e)
	case belay.EventHookRun:
		m.hooked(e)
	case belay.EventHookFailed:
		m.hookFailed("", e)
	case belay.EventHookOutput, belay.EventTurnContinued:
		m.hookSaid("", e)
	case belay.EventHookInvoked, belay.EventSkillInvoked:
		m.note(m.look.accent.Render("∙"), strings.TrimSuffix(string(e.Kind), "_invoked")+" "+e.Text)
	case belay.EventCompactionStart:
		m.doing = "sums up"
	case belay.EventCompactionEnd:
		m.compacted(e)
	case belay.EventError:
		m.failed(e)
	case belay.EventTurnEnd:
		m.ended(e.End)
	default:
	}
}

// happenedBelow shows an event of a subagent: what it does, and not what it says.
func (m *model) happenedBelow(e *belay.Event) {
	switch e.Kind {
	case belay.EventToolUse:
		m.used(e)
	case belay.EventToolUseResult:
		m.answered(e)
	case belay.EventApprovalRequested, belay.EventApprovalDecided:
		m.decided(e)
	case belay.EventHookRun:
		m.hooked(e)
	case belay.EventHookFailed:
		m.hookFailed(e.Agent+": ", e)
	case belay.EventHookOutput, belay.EventTurnContinued:
		m.hookSaid(e.Agent+": ", e)
	case belay.EventTokenConsumption:
		m.consumed(e.Usage)
	case belay.EventSubagentInvoked:
		m.note(m.look.accent.Render("↳"), subagentNamed(e.Text, e.Depth))
	case belay.EventSubagentCompleted:
		m.returned(e)
	case belay.EventHookInvoked, belay.EventSkillInvoked:
		m.note(m.look.accent.Render("∙"), e.Agent+": "+strings.TrimSuffix(string(e.Kind), "_invoked")+" "+e.Text)
	case belay.EventError:
		mark := m.look.bad.Render("✗")
		if e.Retry {
			mark = m.look.warn.Render("↻")
		}
		m.note(mark, e.Agent+": "+e.Text)
	default:
	}
}

// subagentNamed names a subagent, and how deep it is where that is more than one.
func subagentNamed(name string, depth int) string {
	if depth > 1 {
		return fmt.Sprintf("subagent %s, %d deep", name, depth)
	}
	return "subagent " + name
}

// returned shows how a subagent ended.
func (m *model) returned(e *belay.Event) {
	mark, text := m.look.accent.Render("↲"), subagentNamed(e.Text, e.Depth)
	switch s := e.Subagent; {
	case s == nil || s.Status == belay.ChildSuccess:
		text += " is done"
	case s.Status == belay.ChildParked:
		text += " waits"
	default:
		mark, text = m.look.warn.Render("↲"), text+": "+s.Status
		if s.Message != "" {
			text += ": " + s.Message
		}
	}
	m.note(mark, text)
}

// spoke shows text as it comes. What is finished of it is printed.
func (m *model) spoke(delta string) {
	m.thoughtThrough()
	m.drop("no result")
	m.doing = "works"
	m.step.full.WriteString(delta)
	m.blocks(m.step.text.add(delta))
}

// blocks prints finished blocks.
func (m *model) blocks(done []block) {
	for _, b := range done {
		lines := m.md.lines(b.text)
		if b.glued {
			m.append(kindText, lines...)
		} else {
			m.say(kindText, lines...)
		}
		m.step.printed = true
	}
}

func (m *model) thinks(e *belay.Event) {
	if m.step.thought.Len() == 0 {
		m.drop("no result")
		m.step.thinkFrom = e.Time
		m.doing = "thinks"
	}
	m.step.thought.WriteString(e.Text)
}

// thoughtThrough ends thinking: it becomes a line, or is printed in full.
func (m *model) thoughtThrough() {
	if m.step.thought.Len() == 0 {
		return
	}
	m.thought = m.step.thought.String()
	m.step.thought.Reset()
	if m.thinking {
		m.say(kindText, m.thoughtLines(m.thought)...)
		return
	}
	m.say(kindLine, m.look.dim.Render(short(fmt.Sprintf("∴ thought for %s · ctrl+t shows it", took(m.now.Sub(m.step.thinkFrom))), m.width-1)))
}

func (m *model) thoughtLines(text string) []string {
	return each(m.look.dim, indented(strings.TrimSpace(visible.Clean(text)), "∴ ", m.width-1))
}

// responded ends what the model was saying. A response that was not streamed is
// shown now.
func (m *model) responded(message *belay.Message) {
	m.thoughtThrough()
	if m.step.full.Len() == 0 && message != nil && message.Text() != "" {
		m.spoke(message.Text())
	}
	m.blocks(m.step.text.flush())
	if m.step.full.Len() > 0 {
		m.answer = m.step.full.String()
	}
	m.step = stepView{}
	if message != nil && message.Model != "" {
		m.answers = message.Model
	}
}

func (m *model) consumed(u *belay.Usage) {
	if u == nil {
		return
	}
	m.spent.In += u.In
	m.spent.Out += u.Out
	m.spent.CacheRead += u.CacheRead
	m.spent.CacheWrite += u.CacheWrite
	m.spent.Cost += u.Cost
}

// decided shows what was decided about a call, by whom.
func (m *model) decided(e *belay.Event) {
	if e.Approval == nil {
		return
	}
	d := e.Approval.Decided
	if c := m.find(e.Run, e.Call); c != nil {
		c.waits = d == nil
	}
	for _, c := range m.calls {
		if c.result == nil {
			c.since = e.Time // none runs before all are decided
		}
	}
	if d == nil {
		return
	}
	mark, word := m.look.bad.Render("✗"), "denied"
	if d.Allow {
		mark, word = m.look.good.Render("✓"), "allowed"+scope(d)
	}
	if d.Allow && e.Approval.Tool == askUser {
		word = "answered"
	}
	text := fmt.Sprintf("%s %s by %s", e.Approval.Tool, word, d.By)
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	if e.Text != "" {
		text += " (" + e.Text + ")"
	}
	m.note(mark, text)
}

// scope says how far a yes reaches, if it is further than one call.
func scope(d *belay.Decision) string {
	switch d.Scope.Kind {
	case belay.ScopeSession:
		return " in this session"
	case belay.ScopePattern:
		return " like " + visible.All(d.Scope.Pattern)
	default:
		return ""
	}
}

func (m *model) compacted(e *belay.Event) {
	m.doing = "works"
	if e.Message == nil {
		m.note(m.look.bad.Render("✗"), e.Text)
		return
	}
	m.note(m.look.accent.Render("∙"), "the conversation was summed up to make room ("+e.Text+"); the session keeps all of it")
}

// failed shows an error. Where the attempt is made again, what was streamed of it
// is void.
func (m *model) failed(e *belay.Event) {
	if !e.Retry {
		if strings.Contains(e.Text, belay.ErrParked.Error()) || strings.Contains(e.Text, belay.ErrNoTurn.Error()) {
			return // over says what can be done
		}
		m.blocks(m.step.text.flush())
		m.note(m.look.bad.Render("✗"), e.Text)
		return
	}
	printed := m.step.printed
	m.step = stepView{}
	m.note(m.look.warn.Render("↻"), "trying again: "+e.Text)
	if printed {
		m.note(m.look.warn.Render(" "), "what stands above of this answer is void")
	}
}

// endings say how a turn ended that the model did not end.
var endings = map[belay.EndReason]string{
	belay.EndMaxSteps: "the turn took as many steps as it may; say how to go on",
	belay.EndBudget:   "the budget is spent",
	belay.EndAborted:  "aborted",
	belay.EndRefused:  "the model refused to answer",
	belay.EndBlocked:  "the turn was blocked",
	belay.EndStuck:    "the model went in circles and was stopped",
	belay.EndParked:   "the turn waits: /resume goes on, /abandon gives it up",
}

// ended shows how the turn ended.
func (m *model) ended(end *belay.Turn) {
	m.blocks(m.step.text.flush())
	m.thoughtThrough()
	m.drop("no result")
	if end == nil {
		return
	}
	m.diagnosed(end.Diagnostics)
	text := endings[end.Reason]
	if text == "" {
		return // as it should, or with an error that was told
	}
	if end.By != "" {
		text += " by " + end.By
	}
	if end.Why != "" {
		text += ": " + end.Why
	}
	m.note(m.look.warn.Render("∎"), text)
	for i := range end.Waits {
		q := &end.Waits[i]
		who := q.Tool
		if q.Depth > 0 {
			who = fmt.Sprintf("%s of %s", q.Tool, subagentNamed(q.Agent, q.Depth))
		}
		m.note(m.look.warn.Render("?"), fmt.Sprintf("%s waits for a decision: %s", who, q.Reason))
	}
}

// over goes on after what was under way: with what was typed meanwhile, unless it
// was aborted or can be resumed; then it is put back to be looked at again.
func (m *model) over(msg *overMsg) tea.Cmd {
	m.blocks(m.step.text.flush())
	m.drop("no result")
	aborted := m.aborting
	m.working, m.aborting, m.floor, m.step = false, false, 0, stepView{}
	m.usage, m.spent = msg.usage, belay.Usage{}
	m.troubled(msg.err, aborted)
	if msg.said != "" && msg.err == nil {
		m.note(m.look.accent.Render("∙"), msg.said)
	}
	if msg.open {
		m.note(m.look.warn.Render("∎"), "the end of the turn was not stored: /resume goes on with it; a new message gives it up")
	}
	if m.leaving || len(m.queue) == 0 {
		return nil
	}
	if aborted || msg.open {
		m.editor.set(strings.TrimSpace(strings.Join(append(m.queue, m.editor.text()), "\n")))
		m.queue = nil
		return nil
	}
	next := m.queue[0]
	m.queue = m.queue[1:]
	return m.submit(next)
}

// troubled tells of an error that no event has told of, and what can be done.
func (m *model) troubled(err error, aborted bool) {
	missing, without := errors.AsType[*belay.MissingToolError](err)
	switch {
	case without:
		m.note(m.look.warn.Render("∎"), "the turn waits as it did: calls that are to run are of tools that are not here: "+strings.Join(missing.Tools, ", ")+": /resume goes on when they are, /abandon gives it up")
	case err == nil, aborted && errors.Is(err, context.Canceled):
	case errors.Is(err, belay.ErrParked):
		m.note(m.look.warn.Render("∎"), "an earlier turn waits: /resume goes on with it, /abandon gives it up")
	case errors.Is(err, belay.ErrNoTurn):
		m.note(m.look.warn.Render("∎"), "there is no turn to go on with")
	case errors.Is(err, belay.ErrHeld):
		m.note(m.look.bad.Render("✗"), err.Error()+": close the other one, or take another session")
	default:
		m.note(m.look.bad.Render("✗"), err.Error())
	}
}
