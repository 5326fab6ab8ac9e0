package belay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/near"
)

// batch holds the calls of one response.
type batch struct {
	message *Message
	amended *Message // set if the stored message must be replaced because calls were rewritten
	calls   []*call
	stored  []CallRecord  // the calls as they were stored last
	unkept  error         // why the store could not keep the result before tool.post, if the batch has one call
	few     [2]*call      // room for two calls: most messages have no more
	first   [1]CallRecord // room for one record
}

// call is one call of a batch. Only one goroutine uses it at a time.
type call struct {
	Invocation
	part  *CallPart
	index int
	// cutOff says that the response reached its maximum length.
	cutOff bool
	tool   *boundTool
	state  CallState
	// original is the input that the model sent, if it was rewritten or defaults were
	// added.
	original  json.RawMessage
	rewriters []string
	result    *Result
	answered  *ResultPart // has the result, unless an earlier process made it
	// around are the interceptors of the call, if intercepted is set. Interceptors that are
	// added later do not apply to this call.
	around      []*Interceptor
	intercepted bool
	// askers are the parts of the floor and the hooks that ask for approval: the floor
	// first, then hooks in plan order. The list is empty if an earlier process checked the
	// call.
	askers   []asker
	places   string // where the call's paths led at the last permission check
	approval *Approval
	askedNow bool   // the approval was made in this process
	grant    *Grant // made from the decision; not stored yet
	tooLate  string // the approver's answer, if somebody else had already decided
	// Resumes is the name that the tool passed to Park.
	Resumes string
	begun   bool // the tool may hold resources for the call: see AbandonTool
	// question is what the tool has just asked with ParkAsk. There is no approval for it yet.
	question string
	// floored is an earlier approval of the call that the floor asked for. The approval of a
	// tool's question takes its place in the field approval.
	floored *Approval
	// returned is the tool's result while hooks of tool.post run. call.keep stores it.
	returned *Result
	batch    *batch
	run      *batchRun     // nil if the call runs on the turn's goroutine
	kept     chan struct{} // closed when the turn's goroutine has stored the result
	running  bool          // the call runs on its own goroutine; only the turn's goroutine uses this field
	ran      bool          // this process has started the call; only the turn's goroutine uses this field
	stored   bool          // the response is stored
	told     bool          // the event of the result was sent
	followed bool          // the call has a span in this process
	halted   bool
	failure  error  // the failure of a hook of tool.post that fails closed
	by, why  string // who refused the call, and why

	pending     []PendingReminder
	diagnostics []hook.Diagnostic
}

// judge checks the calls of a response with the hooks and the floor, in parallel. After
// that, each call may run, waits for approval, or has a result.
func (t *turn) judge(response *Message) *batch {
	if !slices.ContainsFunc(response.Parts, func(p Part) bool { return p.Call != nil }) {
		t.room.silent = batch{message: response}
		return &t.room.silent
	}
	b := &batch{message: response}
	b.calls = b.few[:0]
	for i := range response.Parts {
		if part := response.Parts[i].Call; part != nil {
			c := t.newCall(part, len(b.calls))
			c.cutOff = response.StopReason == StopMaxTokens
			b.calls = append(b.calls, c)
		}
	}
	if response.StopReason == StopRefusal {
		b.abort("The model refused to answer this message.")
		return b
	}
	t.forEach(b.calls, (*turn).judgeOne, func(t *turn, c *call, sudden any) {
		t.deny(c, "belay", fmt.Sprintf("panic while checking the call: %v", sudden))
	})
	t.gather(b)
	if t.state.Unjudged && slices.ContainsFunc(b.calls, func(c *call) bool { return c.original != nil }) {
		b.amend()
	}
	for _, c := range b.calls {
		if c.original != nil {
			c.part.Final, c.part.RewrittenBy = c.Input, c.rewriters
		}
	}
	t.applyHalt(b)
	if t.ctx.Err() != nil {
		b.abort("The turn was aborted before this call started.")
	}
	return b
}

// amend replaces the batch's message by a copy. Other goroutines share the stored
// message, so it must not change.
func (b *batch) amend() {
	m := b.message
	own := &Message{
		Seq: m.Seq, Turn: m.Turn, Step: m.Step, Role: m.Role, Kind: m.Kind, Parts: slices.Clone(m.Parts), Time: m.Time,
		Model: m.Model, StopReason: m.StopReason, Usage: m.Usage,
	}
	calls := b.calls
	for i := range own.Parts {
		if part := own.Parts[i].Call; part != nil {
			copied := *part
			own.Parts[i].Call, calls[0].part = &copied, &copied
			calls = calls[1:]
		}
	}
	b.message, b.amended = own, own
}

// applyHalt aborts the other calls of the batch if one call was answered with Halt.
func (t *turn) applyHalt(b *batch) {
	if i := slices.IndexFunc(b.calls, func(c *call) bool { return c.halted }); i >= 0 {
		t.end.by, t.end.why = b.calls[i].by, b.calls[i].why
		b.abort("Another call of the same message ended the turn before this one started.")
	}
}

func (t *turn) newCall(part *CallPart, index int) *call {
	return &call{
		part: part, index: index, state: CallJudged,
		Invocation: Invocation{
			ID: part.ID, Tool: part.Tool, Input: part.Input, turn: t, direct: t.directing,
			Session: t.scope.Session, Turn: t.scope.Turn, Step: t.scope.Step, Agent: t.scope.Agent,
		},
	}
}

// gather collects reminders, diagnostics and grants from the calls, in call order.
func (t *turn) gather(b *batch) {
	t.gatherWishes()
	t.applyWishes()
	for _, c := range b.calls {
		t.session.state.Pending = append(t.session.state.Pending, c.pending...)
		t.diagnostics = append(t.diagnostics, c.diagnostics...)
		t.write.clean = false
		c.pending, c.diagnostics = nil, nil
		if c.grant != nil {
			t.session.state.Grants = withGrant(t.session.state.Grants, *c.grant)
			c.grant = nil
		}
	}
}

// judgeOne checks one call in this order: find the tool, check the scope, validate the
// input, call the interceptors, fire tool.pre, ask the floor, ask for approval. If the
// interceptors or tool.pre rewrite the input, the new input is also validated.
func (t *turn) judgeOne(c *call) {
	if !t.resolve(c) || !c.checkInput() {
		t.reportDenied(c, "belay", c.result.Text)
		return
	}
	c.fill()
	if !t.intercept(c) || c.result != nil {
		return
	}
	if len(c.rewriters) > 0 && !c.checkRewritten() {
		t.reportDenied(c, "belay", c.result.Text)
		return
	}
	c.fill()
	if verdict, ok := t.askHooks(c); ok {
		t.decide(c, t.askFloor(c, verdict))
	}
}

// resolve finds the tool. If it is missing or out of scope, the call gets a failed result.
func (t *turn) resolve(c *call) bool {
	c.tool = t.request.tools.byName[c.Tool]
	switch {
	case c.tool == nil:
		c.answer(Failed(ClassNotFound, unknownTool(c.Tool, t.request.tools.names)))
	case !c.tool.inScope:
		c.answer(Failed(ClassScope, "tool not available: "+c.Tool))
	default:
		return true
	}
	return false
}

func unknownTool(name string, known []string) string {
	text := fmt.Sprintf("There is no tool %q.", name)
	if like := near.Names(name, known, 3); len(like) > 0 {
		text += " Did you mean " + strings.Join(like, " or ") + "?"
	}
	if len(known) == 0 {
		return text + " You have no tools."
	}
	return text + " You may call: " + strings.Join(known, ", ") + "."
}

// checkInput validates the input that the model sent.
func (c *call) checkInput() bool {
	switch faults := c.tool.validate(c.Input); {
	case c.part.Malformed != "" && c.cutOff:
		c.answer(Failed(ClassInvalid, "The input was cut off because the response reached its maximum length. Make the call again with a shorter input, or split it into several calls."))
	case c.part.Malformed != "":
		c.answer(Failed(ClassInvalid, "The input is not a JSON object. Make the call again with a JSON object."))
	case len(faults) > 0:
		c.answer(Failed(ClassInvalid, invalidText(c.Tool, faults)))
	default:
		return true
	}
	return false
}

// checkRewritten validates the input after interceptors or hooks have rewritten it.
func (c *call) checkRewritten() bool {
	faults := c.tool.validate(c.Input)
	if len(faults) == 0 {
		return true
	}
	c.answer(Failed(ClassInvalid, invalidText(c.Tool, faults)+fmt.Sprintf(
		"\nYour call was valid, but %s rewrote its input to this invalid one.", strings.Join(c.rewriters, ", "))))
	return false
}

func invalidText(tool string, faults []string) string {
	return fmt.Sprintf("The input of %s does not match its schema:\n- %s", tool, strings.Join(faults, "\n- "))
}

// answer sets the result of the call.
func (c *call) answer(r Result) {
	// The message with the results shares this value: see results.
	part := &ResultPart{Call: c.ID, Tool: c.Tool, Result: c.turn.fit(c, r)}
	c.result, c.answered = &part.Result, part
	c.state = CallDone
}

// refuse sets the result of a denied call. It says who denied the call, why, and what the
// model should do instead.
func (c *call) refuse(by, why string) {
	c.by, c.why = by, why
	c.answer(Failed(ClassDenied, fmt.Sprintf(
		"Denied by %q: %s\nDo not repeat this call. Reach the goal in another way, or tell the user what you need.", by, cmp.Or(strings.TrimSpace(why), "no reason was given"))))
}

// fill adds the defaults of a typed tool to a valid input. So the gates, the floor and the
// person who approves see the same input as the tool.
func (c *call) fill() {
	filled := c.tool.fill(c.Input)
	if c.original == nil && !bytes.Equal(filled, c.Input) {
		c.original = c.part.Input
	}
	c.Input = filled
}

// rewrite replaces the input and records who did it.
func (c *call) rewrite(input json.RawMessage, by ...string) {
	if c.original == nil {
		c.original = c.part.Input
	}
	c.Input = slices.Clone(input)
	c.rewriters = append(c.rewriters, by...)
}

// toolCall returns the call in the form that hooks and the floor get.
func (t *turn) toolCall(c *call) ToolCall {
	return ToolCall{newInput(t.scope, toolCall{
		ID: c.ID, Tool: c.Tool, Input: rawJSON(c.Input), Original: rawJSON(c.original), soFar: t.soFar(), tool: c.tool,
	})}
}

// askHooks fires tool.pre. First the hooks that rewrite inputs run. Then the other hooks
// get the rewritten input.
func (t *turn) askHooks(c *call) (Authorization, bool) {
	var a Authorization
	if !ToolPre.Active(t.snap) {
		return a, true
	}
	outcome, err := ToolPre.Dispatch(t.ctx, t.snap, t.toolCall(c))
	c.diagnostics = append(c.diagnostics, t.showFailures(outcome.Diagnostics)...)
	c.pending = t.addAside(c.pending, outcome.Output.Aside)
	if len(outcome.Rewriters) > 0 {
		c.rewrite(outcome.Input.Input(), outcome.Rewriters...)
	}
	if err != nil && t.ctx.Err() != nil {
		c.answer(Failed(ClassAborted, "The turn was aborted before this call started."))
		return a, false
	}
	if outcome.Unsound && toolSeverity[outcome.Output.Decision] < hook.SeverityDeny && !c.checkRewritten() {
		t.reportDenied(c, "belay", c.result.Text)
		return a, false
	}
	c.askers = outcome.Output.askers
	return Authorization{Decision: outcome.Output.Decision, Reason: outcome.Output.Reason, By: cmp.Or(outcome.By, "tool.pre")}, true
}

// askFloor asks the floor, and the floors of the parents, about the final input. The most
// severe answer wins. So hooks cannot weaken the floor's answer, and a child may do no
// more than its parent.
func (t *turn) askFloor(c *call, verdict Authorization) Authorization {
	var askers []asker
	var places []string
	for _, authorizer := range t.floors() {
		floor, err := authorizer.Authorize(t.ctx, t.toolCall(c))
		if err != nil && t.ctx.Err() != nil {
			c.answer(Failed(ClassAborted, "The turn was aborted before this call started."))
			return Authorization{}
		}
		if err != nil {
			floor = Authorization{Decision: ToolDeny, Reason: "the permission check failed: " + err.Error(), By: cmp.Or(floor.By, "floor")}
		}
		if _, known := toolSeverity[floor.Decision]; !known {
			floor = Authorization{Decision: ToolDeny, Reason: "the floor returned an unknown decision", By: cmp.Or(floor.By, "floor")}
		}
		floor.By = cmp.Or(floor.By, "floor")
		if floor.Places != "" {
			places = append(places, floor.Places)
		}
		if who := (asker{floor.By, floor.Reason, true}); floor.Decision == ToolAsk && !slices.Contains(askers, who) {
			askers = append(askers, who)
		}
		if toolSeverity[floor.Decision] > toolSeverity[verdict.Decision] {
			verdict = floor
		}
	}
	c.places = strings.Join(places, " ")
	c.askers = append(askers, c.askers...)
	return verdict
}

// decide applies the merged decision of the hooks and the floor to the call.
func (t *turn) decide(c *call, a Authorization) {
	switch a.Decision {
	case ToolPass:
	case ToolAsk:
		t.askApproval(c, a)
	default:
		c.halted = a.Decision == ToolHalt
		t.deny(c, a.By, a.Reason)
	}
}

// deny denies the call and fires tool.denied.
func (t *turn) deny(c *call, by, why string) {
	c.refuse(by, why)
	t.reportDenied(c, by, why)
}

// reportDenied fires tool.denied for a call that will not run.
func (t *turn) reportDenied(c *call, by, why string) {
	if !ToolDenied.Active(t.snap) {
		return
	}
	ctx, cancel := t.afterAbort()
	defer cancel()
	outcome, err := ToolDenied.Dispatch(ctx, t.snap, DeniedCall{newInput(t.scope, deniedCall{
		ID: c.ID, Tool: c.Tool, By: by, Reason: why, Class: c.result.Class, soFar: t.soFar(),
	})})
	c.note(t, outcome.Output, outcome.Diagnostics, err)
}

// note keeps the reminders and diagnostics of an observe phase about the call.
func (c *call) note(t *turn, n Note, diagnostics []hook.Diagnostic, err error) {
	c.pending = t.addAside(c.pending, Aside{Note: n})
	c.diagnostics = append(c.diagnostics, t.showFailures(diagnostics)...)
	if err != nil {
		t.agent.opts.Logger.WarnContext(t.base, "an observe phase failed", "session", t.scope.Session, "turn", t.scope.Turn, "error", err)
	}
}

// afterAbort returns the context for phases that fire even if the turn was aborted.
func (t *turn) afterAbort() (context.Context, context.CancelFunc) {
	if t.ctx.Err() == nil {
		return t.ctx, func() {}
	}
	return context.WithTimeout(t.base, t.agent.opts.Limits.End)
}

// abort gives an aborted result to every call without a result. why says that a call has not
// started. A call that its tool has parked has started.
func (b *batch) abort(why string) {
	for _, c := range b.calls {
		if c.result == nil {
			if !c.stored {
				c.approval = nil // nobody was asked yet
			}
			text := why
			if c.begun {
				text = "The turn was ended before this call ended."
			}
			c.answer(Failed(ClassAborted, text))
		}
	}
}

// settled reports whether every call has a result.
func (b *batch) settled() bool {
	return len(b.calls) > 0 && !slices.ContainsFunc(b.calls, func(c *call) bool { return c.result == nil })
}

// asks reports whether a call waits for approval.
func (b *batch) asks() bool {
	return slices.ContainsFunc(b.calls, func(c *call) bool {
		return c.state == CallParked && c.approval != nil && c.approval.Decided == nil
	})
}

// free returns how many calls at the beginning of the batch need not wait for a parked
// call. A serial call waits for all calls before it, and all calls after it wait for it.
func (b *batch) free() int {
	waits := false
	for i, c := range b.calls {
		parked := c.result == nil && c.state == CallParked
		switch {
		case c.serial() && waits:
			return i
		case c.serial() && parked:
			return i + 1
		}
		waits = waits || parked
	}
	return len(b.calls)
}

// records returns the records of the calls. A call that may run is recorded as started,
// because it starts at once. It is not recorded as started if later is true, which means
// that something slow comes first, or if it must wait for a parked call.
func (b *batch) records(later bool) []CallRecord {
	if len(b.calls) == 0 {
		return nil
	}
	records := b.first[:] // the store has already saved the old content
	if len(b.calls) > 1 {
		records = make([]CallRecord, len(b.calls))
	}
	free := b.free()
	for i, c := range b.calls {
		if c.state == CallJudged && !later && i < free {
			c.state = CallStarted
		}
		records[i] = b.record(c)
	}
	b.stored = records
	return records
}

// record returns the record of one call.
func (b *batch) record(c *call) CallRecord {
	return CallRecord{
		Message: b.message.Seq, Index: c.index, ID: c.ID, Tool: c.Tool, State: c.state, Input: c.Input,
		Wait: c.Wait, Resumes: c.Resumes, Result: c.result,
	}
}

// results returns the message with the results, in call order.
func (b *batch) results() *Message {
	m := newMessage(RoleUser, KindResults)
	m.Parts = slices.Grow(m.Parts, len(b.calls))
	for _, c := range b.calls {
		if c.answered == nil || c.result != &c.answered.Result || c.answered.Call != c.part.ID { // the result was stored before
			m.Parts = append(m.Parts, resultPart(c.part, *c.result))
			continue
		}
		m.Parts = append(m.Parts, Part{Type: PartResult, Result: c.answered})
	}
	return m
}

func resultPart(c *CallPart, r Result) Part {
	return Part{Type: PartResult, Result: &ResultPart{Call: c.ID, Tool: c.Tool, Result: r}}
}

// approvals returns the approvals of the calls.
func (b *batch) approvals() []Approval {
	var all []Approval
	for _, c := range b.calls {
		if c.approval != nil {
			all = append(all, *c.approval)
		}
	}
	return all
}
