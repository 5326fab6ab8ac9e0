package belay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/policy"
)

// turn is a running turn. One goroutine owns the turn and its session until the turn ends.
// The goroutines of tool calls pass their results to this goroutine.
type turn struct {
	agent   *Agent
	session *Session
	state   *TurnState // part of the session's state
	own     TurnState  // the state of a turn that began in this process
	model   *namedModel
	lineage *lineage    // connects a child turn with its parent; nil for the main agent
	limits  *limits     // the resources that this agent and its parents may use
	scope   *hook.Scope // the scope of this step; never modified, because inputs and records share it
	snap    *hook.Snapshot

	ctx  context.Context //nolint:containedctx // a turn is one call: ctx ends when the turn is aborted
	base context.Context //nolint:containedctx // ctx without its cancellation, for what an abort must not stop

	request turnRequest
	outbox  turnOutbox
	spans   turnSpans
	write   turnWrite
	queue   turnQueue
	end     turnEnd

	wishes      wishes
	quiet       bool // not a real turn, but housekeeping such as Session.Compact
	directing   bool // RunTool is running a tool
	diagnostics []hook.Diagnostic
	text        string // the model's last text
	recent      []fingerprint
	room        *turnRoom
	scopes      []hook.Scope // not used yet: see newScope
	waits       []Question
	steered     []*steered // messages of Session.Steer that are not stored yet
	askedBelow  []string   // the ids of calls whose subagents wait for something
	wanted      *wanted    // describes the structured output that the turn must give; nil for none
}

// user runs the turn of a user message.
func (t *turn) user(text string, parts []Part) EndReason {
	if err := checkInput(text, parts); err != nil {
		return t.fail(err)
	}
	if end := t.endInterrupted(); end != "" {
		return end
	}
	t.begin()
	if end := t.prepare(text, parts); end != "" {
		return end
	}
	return t.steps()
}

// endInterrupted ends an earlier turn that was interrupted, or that waits only for approvals
// that have expired. Its calls without results get aborted results.
func (t *turn) endInterrupted() EndReason {
	switch open := t.session.state.Turn; {
	case open == nil:
		return ""
	case open.Parked && !t.hasExpired():
		return t.fail(ErrParked)
	default:
		if err := t.abandon(""); err != nil {
			return t.fail(err)
		}
		t.fireEndPhases(cmp.Or(t.state.Ended, EndAborted))
		return ""
	}
}

// hasExpired reports whether the parked turn waits only for approvals that have expired.
// Nobody can decide about them any more. It reads the store, because another process may
// have stored a decision.
func (t *turn) hasExpired() bool {
	if t.reopen() != nil || t.session.state.Turn == nil || t.session.underway == nil {
		return false
	}
	waits := false
	for _, c := range t.session.underway.calls {
		if c.State != CallParked || c.Result != nil {
			continue
		}
		at := slices.IndexFunc(t.session.underway.asked, func(a Approval) bool { return a.ID == c.Wait })
		if at < 0 || t.session.underway.asked[at].Decided != nil || !t.session.underway.asked[at].expired(time.Now()) {
			return false
		}
		waits = true
	}
	return waits
}

// steps runs steps until the turn is over.
func (t *turn) steps() EndReason {
	defer t.endSteering()
	for {
		if end := t.step(); end != "" {
			return end
		}
	}
}

// step makes one model call and runs its tools.
func (t *turn) step() EndReason {
	t.emitHeld()
	if end := t.checkLimits(); end != "" {
		return end
	}
	t.state.Step++
	t.enterStep(t.state.Step)
	if t.spans.followers != nil {
		return t.inStep(newSpan(Span{Kind: SpanStep}), (*turn).takeStep)
	}
	return t.takeStep()
}

// takeStep is the part of a step inside its span.
func (t *turn) takeStep() EndReason {
	if end := t.takeSteered(); end != "" {
		return end
	}
	if err := t.commitSteered(); err != nil {
		return t.fail(err)
	}
	t.applyWishes()
	t.refresh()
	if err := t.compactIfAsked(); err != nil {
		return t.fail(err)
	}
	t.emitHeld()
	response, delivered, err := t.ask()
	if err != nil {
		return t.fail(err)
	}
	if t.gatesMayTakeLong(response) {
		if err := t.commitUnjudged(response, delivered); err != nil {
			return t.fail(err)
		}
		delivered = nil
	}
	return t.respond(response, delivered)
}

// respond calls the gates for a response, stores the outcome and runs the calls.
func (t *turn) respond(response, delivered *Message) EndReason {
	t.text = response.Text()
	batch := t.judge(response)
	end := t.verdict(response, batch)
	t.markEnd(end)
	if err := t.commitResponse(delivered, batch); err != nil {
		return t.fail(err)
	}
	t.announce(batch)
	if end != "" || len(batch.calls) == 0 || batch.settled() {
		return end
	}
	return t.runBatch(batch)
}

// gatesMayTakeLong reports whether a hook for the response may be slow. The response is
// then stored first: it has cost money, and a killed process must not lose it.
func (t *turn) gatesMayTakeLong(response *Message) bool {
	if response.StopReason == StopRefusal {
		return false
	}
	calls := false
	for i := range response.Parts {
		part := response.Parts[i].Call
		if part == nil {
			continue
		}
		calls = true
		if ToolPre.Slow(t.snap) && ToolPre.Slow(t.snap, ToolCall{newInput(t.scope, toolCall{ID: part.ID, Tool: part.Tool})}) {
			return true
		}
	}
	if !calls {
		return TurnStop.Slow(t.snap) && t.state.Continuations < t.agent.opts.Limits.Continuations
	}
	return ToolDenied.Slow(t.snap) || ApprovalRequest.Slow(t.snap) || ApprovalDecided.Slow(t.snap)
}

// verdict returns how the turn ends with this response. It returns "" if the turn
// continues.
func (t *turn) verdict(response *Message, b *batch) EndReason {
	switch {
	case response.StopReason == StopRefusal && t.ctx.Err() == nil:
		return EndRefused
	case len(b.calls) == 0:
		if response.StopReason == StopMaxTokens {
			t.diagnostics = append(t.diagnostics, hook.Diagnostic{
				Code: codes.AnswerCut, Level: codes.AnswerCut.Level(), Message: fmt.Sprintf("the answer of step %d was cut off at the maximum length of a response", t.scope.Step),
			})
		}
		return t.askStop()
	case b.settled():
		return t.endAfter(b)
	default:
		return ""
	}
}

// checkLimits returns how the turn ends if it was aborted, must be handed over, or has used
// up a limit or budget. It returns "" if the turn may take another step.
func (t *turn) checkLimits() EndReason {
	if t.ctx.Err() != nil {
		return t.fail(context.Cause(t.ctx))
	}
	if t.mustHandOver() {
		return EndParked
	}
	steps := t.agent.opts.Limits.Steps
	if most, ok := MaxSteps.Value(t.state.Policy); ok {
		steps = min(steps, most)
	}
	if t.state.Step >= steps {
		return EndMaxSteps
	}
	if why := t.overspent(); why != "" {
		t.end.why = why
		return EndBudget
	}
	return ""
}

// MaxSteps is the policy setting that limits the steps of a turn. It can only lower the
// agent's limit.
var MaxSteps = policy.Min[int]("max_steps")

// askStop fires turn.stop when the model has made no calls. It returns how the turn ends.
// It returns "" if the turn continues because of a hook or a missing answer.
func (t *turn) askStop() EndReason {
	if t.askForMissing() {
		return ""
	}
	if end := t.takeSteered(); end != "" || len(t.steered) > 0 {
		return end
	}
	if TurnStop.Active(t.snap) && t.state.Continuations < t.agent.opts.Limits.Continuations {
		attempt := stopAttempt{Text: t.text, Continuations: t.state.Continuations, soFar: t.soFar()}
		if l := t.lineage; l != nil {
			attempt.Subagent, attempt.Run = l.name, l.run
		}
		outcome, err := fire(t.ctx, t, TurnStop, StopAttempt{newInput(t.scope, attempt)})
		t.keepAside(outcome.Output.Aside, outcome.Diagnostics)
		if err == nil && outcome.Output.Decision == stopContinue {
			t.continueTurn(outcome.By, outcome.Output.Reason)
			return ""
		}
	} else if t.state.Continuations > 0 && TurnStop.Active(t.snap) {
		t.noteStopLimit()
	}
	if t.ctx.Err() != nil {
		return t.fail(context.Cause(t.ctx))
	}
	return EndTurn
}

// announce emits the events of a stored response and fires model.post.
func (t *turn) announce(b *batch) {
	response := b.message
	t.emit(Event{Kind: EventModelResponse, Message: response})
	t.emit(Event{Kind: EventTokenConsumption, Usage: response.Usage})
	if ModelPost.Active(t.snap) {
		outcome, err := fire(t.ctx, t, ModelPost, ModelResponse{newInput(t.scope, modelResponse{
			Model: response.Model, StopReason: string(response.StopReason), Usage: *response.Usage, ToolCalls: len(b.calls), soFar: t.soFar(),
		})})
		t.keepNote(outcome.Output, outcome.Diagnostics, err)
	}
	t.announceCalls(b)
}

// announceCalls emits the events of checked calls, and of results that some of these
// calls already have.
func (t *turn) announceCalls(b *batch) {
	for _, c := range b.calls {
		c.stored = true
		t.emit(Event{Kind: EventToolUse, Call: c.part, unstored: c.direct})
		if c.approval != nil && c.approval.Decided != nil { // decided without a person: by a grant, a hook or AskDeny
			t.emitApproval(EventApprovalRequested, c)
			t.emitApproval(EventApprovalDecided, c)
		}
	}
	t.emitResults(b)
	t.emitHeld()
}

// emitResults emits the events of all results that were not emitted before.
func (t *turn) emitResults(b *batch) {
	for _, c := range b.calls {
		t.emitResult(c)
	}
}

// keepNote keeps the reminders of an observe phase. It only logs a failure of the phase.
func (t *turn) keepNote(n Note, diagnostics []hook.Diagnostic, err error) {
	t.keepAside(Aside{Note: n}, diagnostics)
	if err != nil {
		t.agent.opts.Logger.WarnContext(t.base, "an observe phase failed", "session", t.scope.Session, "turn", t.scope.Turn, "error", err)
	}
}

// fail ends the turn with an error, or as aborted if its context has ended.
func (t *turn) fail(err error) EndReason {
	if t.ctx.Err() != nil {
		t.end.err = context.Cause(t.ctx)
		return EndAborted
	}
	if t.end.err == nil {
		t.end.err = err
	}
	return EndError
}

// checkInput returns an error for an invalid message.
func checkInput(text string, parts []Part) error {
	if strings.TrimSpace(text) == "" && len(parts) == 0 {
		return errors.New("the message is empty: add a text, an image or a file")
	}
	return validParts(append([]Part{Text(text)}, parts...))
}
