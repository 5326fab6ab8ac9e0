package belay

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"
)

// AskedByTool is the By of an [Approval] that is a question of a tool: see [ParkAsk]. The
// Reason is the question. Answer with a Decision that allows the call, and whose Reason is
// the answer.
const AskedByTool = "the tool"

// mostQuestions is how many questions a tool may ask during one call.
const mostQuestions = 50

// ToolAnswer is an answer to a question that a tool asked with [ParkAsk]. Stores keep both
// texts without secrets, and keep 512 characters of each.
type ToolAnswer struct{ Question, Text string }

// ParkAsk returns an error that parks a call with a question to a person. Return it from a
// tool that cannot continue without an answer. The question is an [Approval] whose By is
// [AskedByTool], so everybody who decides approvals can answer it, also from another process
// and after a restart. Then the tool is called again with the same input, and
// [Invocation].Answers has the answer. If the person denies the approval, or it expires, the
// call is denied and the tool is not called again.
func ParkAsk(question string) error {
	return &parkError{Wait: "an answer", question: question}
}

// askForTools asks the questions that tools have asked while they ran. It reports whether
// such a call may run again now.
func (t *turn) askForTools(b *batch) (again bool, err error) {
	var asking []*call
	for _, c := range b.calls {
		if c.question == "" || c.result != nil || c.state != CallParked {
			continue
		}
		if len(c.Answers) >= mostQuestions {
			c.question = ""
			c.answer(Failed(ClassFailed, fmt.Sprintf("The tool asked more than %d questions during one call. It was not called again.", mostQuestions)))
			continue
		}
		asking = append(asking, c)
	}
	if aborted := t.ctx.Err() != nil; aborted || len(asking) == 0 {
		return false, nil //nolint:nilerr // the turn ends its calls
	}
	b.unstart()
	for _, c := range asking {
		t.askForTool(c)
	}
	t.gather(b)
	if err := t.commitAsked(b, true); err != nil { // a question is stored before it is asked
		return false, err
	}
	var open []*call
	for _, c := range asking {
		if c.state == CallParked {
			open = append(open, c)
			t.emitApproval(EventApprovalRequested, c)
		}
	}
	if err := t.askPeople(b, open); err != nil {
		return false, err
	}
	for _, c := range asking {
		again = again || c.mayRun()
	}
	return again, nil
}

// askForTool makes an approval of a tool's question. A hook of approval.request can deny it,
// or answer it with a reason.
func (t *turn) askForTool(c *call) {
	if c.approval != nil && c.approval.Floor {
		c.floored = c.approval
	}
	c.askers = []asker{{by: AskedByTool, reason: c.question}}
	now := time.Now()
	c.approval = &Approval{
		ID: approvalPrefix + strings.ToLower(rand.Text()), Session: t.scope.Session, Turn: t.scope.Turn, Call: c.ID, Tool: c.Tool,
		Hash: approvalHash(c.Input, c.places), Reason: c.question, By: AskedByTool, Asked: now, Expires: now.Add(t.agent.opts.ApprovalExpiry),
	}
	c.askedNow, c.question = true, ""
	c.Wait, c.Resumes = c.approval.ID, c.approval.ID
	if ApprovalRequest.Active(t.snap) {
		outcome, err := ApprovalRequest.Dispatch(t.ctx, t.snap, ApprovalAsked{newInput(t.scope, approvalAsked{
			ID: c.approval.ID, Call: c.ID, Tool: c.Tool, Input: rawJSON(c.Input), Hash: c.approval.Hash, Reason: c.approval.Reason, By: c.approval.By, soFar: t.soFar(),
		})})
		c.pending = t.addAside(c.pending, outcome.Output.Aside)
		c.diagnostics = append(c.diagnostics, t.showFailures(outcome.Diagnostics)...)
		if err != nil && t.ctx.Err() != nil {
			return // the turn was aborted, and so is the call
		}
		said := outcome.Output
		if said.Decision == approvalDeny || said.Decision == approvalAllow && said.Reason != "" && t.mayAllow(outcome.By) {
			t.decidedUnasked(c, Decision{Allow: said.Decision == approvalAllow, By: outcome.By, Reason: said.Reason})
			return
		}
	}
	if t.asking().agent.opts.OnAsk == AskDeny {
		t.decidedUnasked(c, Decision{By: "belay", Reason: c.approval.Reason + " (the tool asks a question, but nobody is available to answer)"})
	}
}

// addAnswer keeps the answer of an approval that is a question of the tool.
func (c *call) addAnswer(a *Approval) {
	if a.By == AskedByTool && a.Decided != nil && a.Decided.Allow {
		c.Answers = append(c.Answers, ToolAnswer{a.Reason, a.Decided.Reason})
	}
}

// recall uses an approval from the store that the call does not wait for: the answer to an
// earlier question of the tool, or the approval that the floor asked for.
func (c *call) recall(turn string, a *Approval) {
	if a.Turn != turn || a.Call != c.ID || c.state == CallParked && a.ID == c.Wait {
		return
	}
	c.addAnswer(a)
	if a.Floor && a.Decided != nil && a.Decided.Allow && a.isAbout(c.Input) {
		c.floored = a
	}
}

// unstart resets calls that are stored as started and have not started, because they wait
// for a parked call.
func (b *batch) unstart() {
	for _, c := range b.calls[b.free():] {
		if c.state == CallStarted {
			c.state = CallJudged
		}
	}
}
