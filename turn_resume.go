package belay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// resume continues the open turn of the session.
func (t *turn) resume() EndReason {
	if err := t.reopen(); err != nil {
		return t.fail(err)
	}
	open := t.session.state.Turn
	if open == nil {
		return t.fail(ErrNoTurn)
	}
	t.useState(open)
	t.recallText()
	t.recallModel()
	if open.Ended != "" { // the process ended after the last commit and before the end phases
		return t.resumeEnd(open.Ended)
	}
	t.bindBundles()
	t.refresh()
	if t.end.err = t.missingTools(); t.end.err != nil {
		t.quiet = true // the turn does not continue
		return EndParked
	}
	open.Parked, open.Waits = false, nil
	t.session.told = "" // the end phases must fire again when the turn ends
	t.request.system = t.agent.compile(open.Sections).text
	t.emit(Event{Kind: EventTurnStart, Text: open.Text})
	if end := t.resumeOpenStep(); end != "" {
		return end
	}
	return t.steps()
}

// resumeOpenStep ends the step in which the turn was interrupted or parked, if it was in one.
func (t *turn) resumeOpenStep() EndReason {
	if s := t.openStep(); s != nil {
		return t.inStep(s, (*turn).resumeStep)
	}
	return t.resumeStep()
}

func (t *turn) resumeStep() EndReason {
	if response := t.unjudged(); response != nil {
		t.enterStep(response.Step)
		t.recallRecent()
		return t.respond(response, nil)
	}
	batch := t.openCalls()
	if batch == nil {
		return ""
	}
	t.enterStep(batch.message.Step)
	if err := t.commitResumed(batch); err != nil {
		return t.fail(err)
	}
	return t.runBatch(batch)
}

// MissingToolError says that an open turn cannot be resumed here, because the agent does
// not have the tools of calls that must run now. The turn and its decisions do not change.
// Resume the turn with an agent that has the tools, or abandon it.
type MissingToolError struct {
	Session, Turn string
	// Tools are the names of the missing tools, in the order of the calls.
	Tools []string
}

func (e *MissingToolError) Error() string {
	return fmt.Sprintf("belay: cannot resume turn %s of session %q: the agent does not have the tools of the open calls: %s: resume the turn with an agent that has these tools, or abandon the turn",
		e.Turn, e.Session, strings.Join(e.Tools, ", "))
}

// reopen reads the session from the store again, because any process may have decided
// approvals of a parked turn.
func (t *turn) reopen() error {
	t.session.release(t.base)
	return t.session.open(t.ctx)
}

// resumeEnd ends a turn whose process ended between its last commit and its end phases.
func (t *turn) resumeEnd(end EndReason) EndReason {
	if e := t.session.state.Ending; e != nil {
		t.end.by, t.end.why = e.By, e.Why
	}
	if end == EndError {
		t.end.err = errors.New(cmp.Or(t.end.why, "the turn failed; the reason is unknown because its process ended"))
	}
	t.emit(Event{Kind: EventTurnStart, Text: t.state.Text})
	return end
}

// recallText finds the model's last text in a resumed or abandoned turn.
func (t *turn) recallText() {
	for _, m := range slices.Backward(t.session.messages) {
		if m.Turn == t.state.ID && m.Role == RoleAssistant {
			t.text = m.Text()
			return
		}
	}
}

// openCalls returns the calls of the last response from the store, if they have no
// results yet. Hooks of tool.pre have already checked these calls and do not check them
// again. The floor does, with its current rules.
func (t *turn) openCalls() *batch {
	t.recallRecent()
	b := t.unanswered()
	if b == nil {
		return nil
	}
	t.forEach(b.calls, (*turn).resumeCall, func(t *turn, c *call, sudden any) {
		t.deny(c, "belay", fmt.Sprintf("panic while checking the call again: %v", sudden))
	})
	t.applyHalt(b)
	t.abandonCalls(b)
	return b
}

// unjudged returns the stored response whose gates have not answered yet. If there is none,
// it clears TurnState.Unjudged and returns nil.
func (t *turn) unjudged() *Message {
	if n := len(t.session.messages); t.state.Unjudged && n > 0 && t.session.messages[n-1].Role == RoleAssistant {
		return t.session.messages[n-1]
	}
	t.state.Unjudged = false
	return nil
}

// missingTools returns an error if the agent does not have the tools of calls that must run
// now. The calls stay open, because the tools may be added again.
func (t *turn) missingTools() error {
	b := t.unanswered()
	if b == nil || t.state.Unjudged { // respond will check these calls, and judge answers a call of an unknown tool
		return nil
	}
	missing := &MissingToolError{Session: t.session.id, Turn: t.state.ID}
	now := time.Now()
	for _, c := range b.calls {
		if c.result != nil || c.state == CallStarted || t.request.tools.byName[c.Tool] != nil || slices.Contains(missing.Tools, c.Tool) {
			continue
		}
		if d, waits, fault := c.standing(now); !waits && fault == "" && (d == nil || d.Allow) {
			missing.Tools = append(missing.Tools, c.Tool)
		}
	}
	if len(missing.Tools) == 0 {
		return nil
	}
	return missing
}

// unanswered returns the calls of the last message with their stored states, or nil if the
// message has no calls.
func (t *turn) unanswered() *batch {
	if len(t.session.messages) == 0 {
		return nil
	}
	last := t.session.messages[len(t.session.messages)-1]
	parts := last.Calls()
	if len(parts) == 0 {
		return nil
	}
	known := t.session.underway
	if known == nil {
		known = new(openTurn)
	}
	b := &batch{message: last}
	for i, part := range parts {
		c := t.newCall(part, i)
		c.stored = true
		c.Step = last.Step
		if part.Final != nil {
			c.Input, c.original, c.rewriters = part.Final, part.Input, part.RewrittenBy
		}
		if at := slices.IndexFunc(known.calls, func(r CallRecord) bool { return r.Message == last.Seq && r.Index == i }); at >= 0 {
			r := known.calls[at]
			c.state, c.Wait, c.Resumes, c.result = r.State, r.Wait, r.Resumes, r.Result
			if r.State == CallStarted {
				c.result, c.returned = nil, r.Result
			}
			c.begun = r.Result == nil && (r.State == CallStarted || r.Resumes != "")
		}
		c.told = c.result != nil
		for _, a := range known.asked { // the approval that the call waits for, or the last one about the call
			if a.Turn == t.state.ID && a.Call == c.ID && (c.approval == nil || c.approval.ID != c.Wait) {
				c.approval = &a
			}
			c.recall(t.state.ID, &a)
		}
		b.calls = append(b.calls, c)
	}
	return b
}

// commitResumed stores as started the calls that will run now, so that they do not run
// twice if this process also ends. It also stores new approvals, because the store can
// decide only stored approvals.
func (t *turn) commitResumed(b *batch) error {
	runs := slices.ContainsFunc(b.calls[:b.free()], func(c *call) bool { return c.result == nil && c.state != CallParked })
	if !runs && !slices.ContainsFunc(b.calls, func(c *call) bool { return c.askedNow }) {
		return nil
	}
	t.gather(b)
	return t.commit(nil, b.records(false), b.approvals())
}

// resumeCall decides how a call without a result continues.
func (t *turn) resumeCall(c *call) {
	if c.returned != nil {
		c.answer(t.askAfter(c, *c.returned, 0))
		return
	}
	here := t.request.tools.byName[c.Tool] != nil
	if c.result != nil {
		return
	}
	if here && !t.resolve(c) {
		t.reportDenied(c, "belay", c.result.Text)
		return
	}
	if c.state == CallStarted && !(here && c.tool.traits.Idempotent) {
		c.answer(t.askAfter(c, Failed(ClassAborted, interrupted), 0))
		return
	}
	approved := c.approval != nil && c.approval.Decided != nil && c.approval.Decided.Allow
	d, waits, fault := c.standing(time.Now())
	switch {
	case fault != "":
		t.deny(c, "belay", fault)
		return
	case waits:
		return
	case d != nil:
		t.decided(c, *d)
	}
	if d != nil && !d.Allow {
		return
	}
	if !here && !t.resolve(c) {
		t.reportDenied(c, "belay", c.result.Text)
		return
	}
	switch a := t.askFloor(c, Authorization{}); {
	case c.result == nil && approved && c.hasPlaces() && c.moved():
		t.decide(c, c.askAgain(a))
	case a.Decision == ToolPass, a.Decision == ToolAsk && approved && t.sameQuestion(c, a):
		if c.state == CallParked { // the tool had parked the call
			c.state = CallStarted
		}
	default:
		t.decide(c, a)
	}
}

// standing returns the state of the approval that a parked call waits for. d is the
// decision. waits is true if there is no decision yet. fault is the reason why the
// approval is unusable. All three are zero if the call does not wait for an approval.
func (c *call) standing(now time.Time) (d *Decision, waits bool, fault string) {
	switch {
	case c.state != CallParked:
		return nil, false, ""
	case c.approval == nil && strings.HasPrefix(c.Wait, approvalPrefix):
		return nil, false, "the approval of this call is missing in the store"
	case c.approval == nil || c.Wait != c.approval.ID: // the tool has parked the call
		return nil, false, ""
	case !c.approval.isAbout(c.Input):
		return nil, false, "the approval is for another input than this call has now"
	case c.approval.Decided != nil:
		return c.approval.Decided, false, ""
	case c.approval.expired(now):
		return new(expiry()), false, ""
	default:
		return nil, true, ""
	}
}

// sameQuestion reports whether the floor asks the same question that was approved. While
// the call waited, the rules may have changed, and the floor may ask another question now.
func (t *turn) sameQuestion(c *call, a Authorization) bool {
	given := c.approval
	if given.By == AskedByTool && c.floored != nil {
		given = c.floored
	}
	return given.Floor && isAsker(given.By, a.By)
}

const interrupted = "The process ended during this call, so its result is lost. The call may have run completely, partly or not at all. Find out before you repeat it."

// abandonOpen ends the open turn of the session, if it has the id only. An empty id means
// any turn.
func (t *turn) abandonOpen(only string) EndReason {
	if err := t.abandon(only); err != nil {
		return t.fail(err)
	}
	return cmp.Or(t.state.Ended, EndAborted)
}

// abandon gives aborted results to the open calls of the turn that is open in the store. It
// returns ErrNoTurn if there is no open turn, or if its id is not only.
func (t *turn) abandon(only string) error {
	if err := t.reopen(); err != nil {
		return err
	}
	open := t.session.state.Turn
	if open == nil || only != "" && open.ID != only {
		return ErrNoTurn
	}
	t.useState(open)
	t.recallText()
	if open.Ended != "" {
		return nil
	}
	s := t.openStep()
	if s == nil {
		return t.answerOpen(true)
	}
	var err error
	t.inStep(s, func(t *turn) EndReason {
		err = t.answerOpen(true)
		return ""
	})
	return err
}

// answerOpen gives a result to every call that has none: the tool's own result, if the
// store has it, otherwise an aborted result. If ask is true, it fires tool.post for
// started calls and denies pending approvals, which fires approval.decided. ask is false
// after a panic.
func (t *turn) answerOpen(ask bool) error {
	b := t.unanswered()
	if b == nil {
		return nil
	}
	for _, c := range b.calls {
		if c.result == nil && c.state == CallStarted {
			result := Failed(ClassAborted, interrupted)
			if c.returned != nil {
				result = *c.returned
			}
			if ask {
				result = t.askAfter(c, result, 0)
			}
			c.answer(result)
		}
	}
	b.abort("The turn was ended before this call started.")
	if ask {
		t.cancelled(b, "the turn was ended before anybody decided")
	}
	t.abandonCalls(b)
	t.gather(b)
	for _, c := range b.calls {
		if !c.told { // it had no result before
			t.reportResult(c)
		}
	}
	return t.commit([]*Message{b.results()}, b.records(false), b.approvals())
}
