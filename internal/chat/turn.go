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

// askUser is the tool whose approvals are questions that need text as their answer.
const askUser = "ask_user"

// stepView is what the model has sent in the current step.
type stepView struct {
	text      stream
	full      strings.Builder // the whole text of the step
	printed   bool            // some blocks of the text are printed
	thought   strings.Builder
	thinkFrom time.Time
}

// work prepares the view for a new activity.
func (m *model) work(doing string) {
	m.number++
	m.working, m.aborting, m.doing, m.since = true, false, doing, m.now
	m.step, m.calls, m.spent, m.floor = stepView{}, nil, belay.Usage{}, 0
	m.failures = make(map[string]bool)
	m.commanded, m.ran = false, false
}

// happened shows an event of the running turn.
func (m *model) happened(e *belay.Event) {
	if e.Kind == belay.EventToolProgress {
		if c := m.find(e.Run, e.Call); c != nil {
			c.progress(e.Text)
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
		if e.Text == shellDirective && m.commanded {
			return // the call says it
		}
		m.note(m.look.accent.Render("∙"), strings.TrimSuffix(string(e.Kind), "_invoked")+" "+e.Text)
	case belay.EventSteered:
		m.blocks(m.step.text.flush())
		m.say(kindUser, m.userLines(e.Text)...)
	case belay.EventCompactionStart:
		m.doing = "summarizing"
	case belay.EventCompactionEnd:
		m.compacted(e)
	case belay.EventError:
		m.failed(e)
	case belay.EventTurnEnd:
		m.ended(e.End)
	default:
	}
}

// happenedBelow shows an event of a subagent. It does not show the subagent's text.
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

// subagentNamed returns the name of a subagent. It adds the depth if the depth is more than
// one.
func subagentNamed(name string, depth int) string {
	if depth > 1 {
		return fmt.Sprintf("subagent %s, %d deep", name, depth)
	}
	return "subagent " + name
}

func (m *model) returned(e *belay.Event) {
	mark, text := m.look.accent.Render("↲"), subagentNamed(e.Text, e.Depth)
	switch s := e.Subagent; {
	case s == nil || s.Status == belay.ChildSuccess:
		text += " is done"
	case s.Status == belay.ChildParked:
		text += " is waiting"
	default:
		mark, text = m.look.warn.Render("↲"), text+": "+s.Status
		if s.Message != "" {
			text += ": " + s.Message
		}
	}
	m.note(mark, text)
}

// spoke adds streamed text and prints the blocks that are finished.
func (m *model) spoke(delta string) {
	m.thoughtThrough()
	m.drop("no result")
	m.doing = "working"
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
		m.doing = "thinking"
	}
	m.step.thought.WriteString(e.Text)
}

// thoughtThrough ends the model's thinking. It prints one line, or the full text if the
// user chose that.
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

// responded ends the model's text. It prints a response that was not streamed.
func (m *model) responded(message *belay.Message) {
	m.thoughtThrough()
	if m.commanded && m.ran && message != nil && message.Model == "/"+shellDirective {
		m.step = stepView{}
		return // the result of the call shows the output
	}
	if m.step.full.Len() == 0 && message != nil && message.Text() != "" {
		m.spoke(message.Text())
	}
	m.blocks(m.step.text.flush())
	if m.step.full.Len() > 0 {
		m.answer = m.step.full.String()
	}
	m.step = stepView{}
	if message != nil && message.Model != "" && !strings.HasPrefix(message.Model, "/") { // a directive answers as /name
		m.answers = message.Model
	}
	if message != nil && message.Usage != nil && message.Usage.Tokens() > 0 {
		m.full = message.Usage.Tokens()
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

// decided shows the decision about a call, and who made it.
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
			c.since = e.Time // no call starts before all calls are decided
		}
	}
	if d == nil || e.Kind != belay.EventApprovalDecided { // a request that needs no person is decided already
		return
	}
	mark, word := m.look.bad.Render("✗"), "denied"
	if d.Allow {
		mark, word = m.look.good.Render("✓"), "allowed"+scope(d)
	}
	if d.Allow && (e.Approval.Tool == askUser || e.Approval.By == belay.AskedByTool) {
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

// scope returns the scope of an approval, or "" if it covers only one call.
func scope(d *belay.Decision) string {
	switch d.Scope.Kind {
	case belay.ScopeSession:
		return " for this session"
	case belay.ScopePattern:
		return " like " + visible.All(d.Scope.Pattern)
	default:
		return ""
	}
}

func (m *model) compacted(e *belay.Event) {
	m.doing = "working"
	if e.Message == nil {
		m.note(m.look.bad.Render("✗"), e.Text)
		return
	}
	m.note(m.look.accent.Render("∙"), "the conversation was summarized to free space ("+e.Text+"); the session keeps everything")
}

// failed shows an error. If the attempt will be repeated, its streamed text is dropped.
func (m *model) failed(e *belay.Event) {
	if !e.Retry {
		if strings.Contains(e.Text, belay.ErrParked.Error()) || strings.Contains(e.Text, belay.ErrNoTurn.Error()) {
			return // troubled shows what to do
		}
		m.blocks(m.step.text.flush())
		m.note(m.look.bad.Render("✗"), e.Text)
		return
	}
	printed := m.step.printed
	m.step = stepView{}
	m.note(m.look.warn.Render("↻"), "retrying: "+e.Text)
	if printed {
		m.note(m.look.warn.Render(" "), "ignore the partial answer above")
	}
}

// endings describes how a turn ended, if the model did not end it normally.
var endings = map[belay.EndReason]string{
	belay.EndMaxSteps: "the turn reached its limit of steps; send a message to continue",
	belay.EndBudget:   "the budget is used up",
	belay.EndAborted:  "aborted",
	belay.EndRefused:  "the model refused to answer",
	belay.EndBlocked:  "the turn was blocked",
	belay.EndStuck:    "the model repeated itself and was stopped",
	belay.EndParked:   "the turn is parked: /resume continues it, /abandon ends it",
}

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
		return // a normal end, or an error that was already shown
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
		if q.Wait != "" {
			m.note(m.look.warn.Render("?"), fmt.Sprintf("%s waits for %s", who, q.Wait))
			continue
		}
		m.note(m.look.warn.Render("?"), fmt.Sprintf("%s waits for a decision: %s", who, q.Reason))
	}
}

// over handles the end of an activity. It sends the next queued message. If the turn was
// aborted, or is still open in the store, it puts the queued messages back into the
// input.
func (m *model) over(msg *overMsg) tea.Cmd {
	m.blocks(m.step.text.flush())
	m.drop("no result")
	aborted := m.aborting
	m.stopped = aborted
	m.working, m.aborting, m.floor, m.step = false, false, 0, stepView{}
	m.usage, m.spent = msg.usage, belay.Usage{}
	m.troubled(msg.err, aborted)
	if msg.said != "" && msg.err == nil {
		m.note(m.look.accent.Render("∙"), msg.said)
	}
	if msg.open {
		m.note(m.look.warn.Render("∎"), "the end of the turn was not stored: /resume continues the turn, a new message ends it")
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

// troubled shows an error that no event has reported. It says what to do.
func (m *model) troubled(err error, aborted bool) {
	missing, without := errors.AsType[*belay.MissingToolError](err)
	switch {
	case without:
		m.note(m.look.warn.Render("∎"), "the turn cannot continue: its calls need tools that are missing: "+strings.Join(missing.Tools, ", ")+": use /resume when the tools are available, or /abandon to end the turn")
	case err == nil, aborted && errors.Is(err, context.Canceled):
	case errors.Is(err, belay.ErrParked):
		m.note(m.look.warn.Render("∎"), "an earlier turn is parked: /resume continues it, /abandon ends it")
	case errors.Is(err, belay.ErrNoTurn):
		m.note(m.look.warn.Render("∎"), "there is no turn to resume")
	case errors.Is(err, belay.ErrHeld):
		m.note(m.look.bad.Render("✗"), err.Error()+": close the other chat, or use another session")
	default:
		m.note(m.look.bad.Render("✗"), err.Error())
	}
}
