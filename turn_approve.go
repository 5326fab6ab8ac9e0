package belay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// approvalPrefix is the prefix of the ids of approvals.
const approvalPrefix = "ap-"

// askApproval asks whether a call may run. If a grant covers the call, askApproval asks
// nobody. Otherwise it first fires approval.request, whose hooks may decide instead of a
// person. If they do not decide, Options.OnAsk says what happens.
func (t *turn) askApproval(c *call, a Authorization) {
	left, by := t.stillAsked(c, t.session.state.Grants)
	granted := len(left) == 0 && len(by) > 0
	who := asker{by: a.By, reason: a.Reason}
	switch {
	case granted:
		who = asOne(c.askers)
	case len(left) > 0:
		who = asOne(left)
	}
	now := time.Now()
	c.approval = &Approval{
		ID: approvalPrefix + strings.ToLower(rand.Text()), Session: t.scope.Session, Turn: t.scope.Turn, Call: c.ID, Tool: c.Tool,
		Hash: approvalHash(c.Input, c.places), Reason: who.reason, By: who.by, Floor: who.floor, Asked: now, Expires: now.Add(t.agent.opts.ApprovalExpiry),
	}
	c.askedNow = true
	if granted {
		t.decidedUnasked(c, asGranted(by))
		return
	}
	if ApprovalRequest.Active(t.snap) {
		outcome, err := ApprovalRequest.Dispatch(t.ctx, t.snap, ApprovalAsked{newInput(t.scope, approvalAsked{
			ID: c.approval.ID, Call: c.ID, Tool: c.Tool, Input: rawJSON(c.Input), Hash: c.approval.Hash, Reason: who.reason, By: who.by, Floor: who.floor, soFar: t.soFar(),
		})})
		c.pending = t.addAside(c.pending, outcome.Output.Aside)
		c.diagnostics = append(c.diagnostics, t.showFailures(outcome.Diagnostics)...)
		if err != nil && t.ctx.Err() != nil {
			c.approval = nil
			c.answer(Failed(ClassAborted, "The turn was aborted before this call started."))
			return
		}
		if d := outcome.Output.Decision; d == approvalDeny || d == approvalAllow && t.mayAllow(outcome.By) {
			t.decidedUnasked(c, Decision{Allow: d == approvalAllow, By: outcome.By, Reason: outcome.Output.Reason})
			return
		}
	}
	if t.asking().agent.opts.OnAsk == AskDeny {
		t.decidedUnasked(c, Decision{By: "belay", Reason: cmp.Or(who.reason, "it needs approval") + " (" + cmp.Or(who.by, "it") + " asks for approval, but no approver is available)"})
		return
	}
	c.state, c.Wait = CallParked, c.approval.ID
}

// mayAllow reports whether a hook may approve instead of a person. If a child's questions
// go to its parent, only hooks of the parent may approve. Otherwise hooks of the child
// could approve calls in place of the parent's user.
func (t *turn) mayAllow(subscription string) bool {
	return t.asking() == t || t.snap.Inherited(ApprovalRequest, subscription)
}

// decidedUnasked handles a decision that needed no person. If the call is already stored,
// it still emits both events of the approval.
func (t *turn) decidedUnasked(c *call, d Decision) {
	if c.stored {
		t.emitApproval(EventApprovalRequested, c)
	}
	t.decided(c, d)
}

// decided handles the decision about a call.
func (t *turn) decided(c *call, d Decision) {
	t.close1(c, d)
	t.addGrant(c)
	c.addAnswer(c.approval)
	c.Wait, c.state = c.Resumes, CallJudged
	if !d.Allow {
		t.deny(c, d.By, d.Reason)
	}
	if c.stored { // otherwise emitted when the response is stored
		t.emitApproval(EventApprovalDecided, c)
	}
}

// close1 sets the decision in the call's approval and fires approval.decided.
func (t *turn) close1(c *call, d Decision) {
	approval := *c.approval // a copy, because receivers of the earlier event still use the old value
	d.Approval, d.Hash, d.Time = approval.ID, approval.Hash, cmp.Or(d.Time, time.Now())
	if !d.Scope.wide() {
		d.Scope = ApprovalScope{}
	}
	approval.Decided = &d
	c.approval = &approval
	if t.spans.followers != nil {
		t.reportSpan(newSpan(Span{Kind: SpanApproval, Name: c.Tool, Call: &c.Invocation, Approval: &approval, Began: approval.Asked, Ended: d.Time}))
	}
	if !ApprovalDecided.Active(t.snap) {
		return
	}
	word := "deny"
	if d.Allow {
		word = "allow"
	}
	ctx, cancel := t.afterAbort()
	defer cancel()
	outcome, err := ApprovalDecided.Dispatch(ctx, t.snap, ApprovalOutcome{newInput(t.scope, approvalOutcome{
		ID: approval.ID, Call: c.ID, Tool: c.Tool, Hash: d.Hash, Decision: word, Scope: d.Scope.Kind, By: d.By, Reason: d.Reason, soFar: t.soFar(),
	})})
	c.note(t, outcome.Output, outcome.Diagnostics, err)
}

// expiry is the decision about an approval that has expired.
func expiry() Decision {
	return Decision{By: "expiry", Reason: "nobody decided before the approval expired"}
}

// cancelled denies the pending approvals of calls that will not run. The record of an approval
// that had already expired says so.
func (t *turn) cancelled(b *batch, why string) {
	for _, c := range b.calls {
		if c.approval != nil && c.stored && c.approval.Decided == nil {
			d := Decision{By: "cancel", Reason: why}
			if c.approval.expired(time.Now()) {
				d = expiry()
			}
			t.close1(c, d)
			t.emitApproval(EventApprovalDecided, c)
		}
	}
}

func (t *turn) emitApproval(kind EventKind, c *call) {
	if t.hasAudience() {
		approval := *c.approval
		t.emit(Event{Kind: kind, Approval: &approval, Call: c.part, Text: c.tooLate})
	}
}

// approve emits an event for each call that waits for approval. If OnAsk is AskWait, it
// also asks a person about these calls, and stores the decisions before any call runs.
func (t *turn) approve(b *batch) error {
	var asking []*call
	for _, c := range b.calls {
		if c.state == CallParked && c.approval != nil && c.approval.Decided == nil {
			asking = append(asking, c)
			t.emitApproval(EventApprovalRequested, c)
		}
	}
	return t.askPeople(b, asking)
}

// askPeople asks a person about calls, if OnAsk is AskWait, and stores the decisions.
func (t *turn) askPeople(b *batch, asking []*call) error {
	if len(asking) == 0 || t.asking().agent.opts.OnAsk != AskWait {
		return nil
	}
	q := &inquiry{open: make(map[*call]openQuestion, len(asking))}
	if !b.isDirect() { // the approval of a directive's call is not in the store
		defer q.heed(t)()
	}
	t.forEach(asking, func(t *turn, c *call) { t.askPerson(c, q) }, func(t *turn, c *call, sudden any) {
		t.decided(c, Decision{By: "belay", Reason: fmt.Sprintf("panic while asking for approval: %v", sudden)})
	})
	t.gather(b)
	return t.commitAsked(b, false)
}

// commitAsked stores the approvals of a batch and the states of its calls, unless the
// calls come from RunTool.
func (t *turn) commitAsked(b *batch, waits bool) error {
	if b.isDirect() {
		return nil
	}
	return t.commit(nil, b.records(waits), b.approvals())
}

// askPerson calls the approver. Anything but an approval of exactly this input is a
// denial.
func (t *turn) askPerson(c *call, q *inquiry) {
	expiring, cancel := context.WithDeadline(t.ctx, c.approval.Expires)
	defer cancel()
	ctx, withdraw := context.WithCancelCause(expiring)
	defer withdraw(nil)
	defer q.end(t, c)
	q.begin(t, c, withdraw)
	d, err := t.askApprover(ctx, t.question(c))
	answered, _ := errors.AsType[*answeredError](context.Cause(ctx))
	said := false
	switch {
	case t.ctx.Err() != nil:
		return // the call will be aborted, and its approval cancelled
	case answered != nil && (err != nil || d.By == ""): // somebody else decided, and the approver gave no answer
		d = answered.decision
	case expiring.Err() != nil:
		d = expiry()
	case err != nil:
		d = Decision{By: "belay", Reason: "asking the approver failed: " + err.Error()}
	case d.Approval != "" && d.Approval != c.approval.ID, d.Hash != "" && d.Hash != c.approval.Hash:
		d = Decision{By: "belay", Reason: "the approver's decision was for another call or input"}
	default:
		said = true
	}
	d.By = cmp.Or(d.By, "approver")
	if why := t.scopeFault(c, &d); why != "" {
		t.noteNarrowed(c, why)
		d.Scope = ApprovalScope{}
	}
	stands, theirs := t.recordDecision(c, d)
	if said && theirs && stands.Allow != d.Allow {
		c.tooLate = fmt.Sprintf("%s answered %s here, but somebody else had already decided", d.By, yesOrNo(d.Allow))
	}
	t.decided(c, stands)
}

// question returns the question about a call that waits for approval, or that its tool has
// parked.
func (t *turn) question(c *call) Question {
	q := Question{Input: bytes.Clone(c.Input), Agent: t.agent.opts.Name}
	if c.approval != nil && c.approval.Decided == nil {
		q.Approval = *c.approval
	} else { // the tool has parked the call
		q.Approval, q.Wait = Approval{Session: t.scope.Session, Turn: t.state.ID, Call: c.ID, Tool: c.Tool}, c.Wait
	}
	if t.lineage != nil {
		q.Run, q.Depth = t.lineage.run, t.lineage.depth
	}
	return q
}

// askApprover calls the approver on its own goroutine. When ctx ends, askApprover
// returns, even if the approver still waits for input from a terminal.
func (t *turn) askApprover(ctx context.Context, q Question) (Decision, error) {
	if ctx.Err() != nil {
		return Decision{}, context.Cause(ctx)
	}
	type answer struct {
		decision Decision
		err      error
	}
	done := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("the approver called runtime.Goexit")}
		defer func() {
			if p := recover(); p != nil {
				a.err = fmt.Errorf("the approver panicked: %v", p)
			}
			done <- a
		}()
		a.decision, a.err = t.asking().agent.opts.Approver.Approve(ctx, q)
	}()
	select {
	case a := <-done:
		return a.decision, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-done: // use an answer that arrived when ctx ended
		return a.decision, a.err
	default:
		return Decision{}, context.Cause(ctx)
	}
}

// recordDecision stores a decision. If another decision was stored first, it returns that
// decision and true. If a decision that allows the call cannot be stored, it returns a
// denial.
func (t *turn) recordDecision(c *call, d Decision) (stands Decision, theirs bool) {
	d.Approval, d.Hash, d.Time = c.approval.ID, c.approval.Hash, time.Now()
	if c.direct { // the approval is not stored, so a grant for later calls would have no record
		d.Scope = ApprovalScope{}
		return d, false
	}
	stored, err := t.agent.store.Decide(t.base, d)
	switch {
	case errors.Is(err, ErrDecided) && stored.Decided != nil:
		return *stored.Decided, true
	case err != nil && d.Allow:
		return Decision{By: "belay", Reason: "the decision could not be stored: " + err.Error()}, false
	default:
		return d, false
	}
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// canonicalHash returns a hash of JSON that does not depend on white space or on the order
// of keys.
func canonicalHash(input json.RawMessage) string {
	canonical, err := canonicalJSON(input)
	if err != nil {
		canonical = input
	}
	return textHash(string(canonical))
}

func canonicalJSON(input json.RawMessage) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, errors.Join(errors.New("canonical JSON"), err)
	}
	return json.Marshal(value) // json.Marshal sorts the keys of a map
}
