package belay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/belay-run/belay/hook"
)

// turn is a turn under way. It belongs to one goroutine, and so does the session
// while it lasts; the goroutines of calls hand in what they have to say when they
// are done.
type turn struct {
	agent   *Agent
	session *Session
	state   *TurnState // in the session's state
	own     TurnState  // of a turn that began here
	model   *namedModel
	lineage *lineage    // nil for the main agent
	scope   *hook.Scope // of this step; never changed, because inputs and records share it
	snap    *hook.Snapshot

	ctx  context.Context //nolint:containedctx // a turn is a call in itself: it ends when the turn is aborted
	base context.Context //nolint:containedctx // the same, which an abort does not end

	tools   *toolset      // of this step
	stepped *steppedTools // that the turn was told of
	wishes  wishes
	extra   []*boundTool // of this turn alone
	system  string

	out         chan Event // nil if nobody reads the stream
	left        chan struct{}
	emitting    sync.Mutex
	showing     showing
	tooFull     bool                    // the context could not be summed up
	quiet       bool                    // it is housekeeping and no turn
	silent      bool                    // it tells nobody anything
	placed      []*Message              // the conversation with the reminders of a request in their place
	current     *exchange               // with a model that answers at once
	hearing     func(Chunk, error) bool // passes chunks on to it
	commitment  Commit
	carried     [3]*Message // by a commit
	clean       bool        // nothing has happened since the last commit
	ending      bool        // finish has begun
	failing     string      // the turn that the phase error was told of
	diagnostics []hook.Diagnostic
	text        string // the model's last
	recent      []fingerprint
	waits       []Question
	missing     func() string // what the turn must still give, in words for the model
	queued      string        // the queued turn that it takes up with its first message
	yield       <-chan struct{}
	handedOver  bool
	served      bool   // whoever serves the store goes on with it if this process cannot
	lost        bool   // the store did not take a commit of it: it goes on elsewhere
	by, why     string // who ended it, or what went wrong
	err         error
	result      *Turn
}

// user takes the turn of a user message.
func (t *turn) user(text string, parts []Part) EndReason {
	if err := checkInput(text, parts); err != nil {
		return t.failed(err)
	}
	if end := t.settle(); end != "" {
		return end
	}
	t.begin()
	if end := t.prepare(text, parts); end != "" {
		return end
	}
	return t.steps()
}

// settle makes sure that no earlier turn is open. One that was interrupted is
// ended: its calls are told to have been.
func (t *turn) settle() EndReason {
	switch open := t.session.state.Turn; {
	case open == nil:
		return ""
	case open.Parked:
		return t.failed(ErrParked)
	default:
		if err := t.abandon(); err != nil {
			return t.failed(err)
		}
		t.endPhases(cmp.Or(t.state.Ended, EndAborted))
		return ""
	}
}

// resume goes on with the turn that the session was in.
func (t *turn) resume() EndReason {
	if err := t.reopen(); err != nil {
		return t.failed(err)
	}
	open := t.session.state.Turn
	if open == nil {
		return t.failed(ErrNoTurn)
	}
	t.adopt(open)
	t.recallModel()
	if open.Ended != "" { // its process ended between its last commit and its end phases
		return t.resumeEnd(open.Ended)
	}
	t.bindBundles()
	if t.err = t.missingTools(); t.err != nil {
		t.quiet = true // it does not go on
		return EndParked
	}
	open.Parked = false
	t.session.told = "" // it goes on, and will end again
	t.system = t.agent.compile(open.Sections).text
	t.emit(Event{Kind: EventTurnStart, Text: open.Text})
	if response := t.unjudged(); response != nil {
		t.at(response.Step)
		t.recall()
		if end := t.respond(response, nil); end != "" {
			return end
		}
	} else if batch := t.openCalls(); batch != nil {
		t.at(batch.message.Step)
		if err := t.commitResumed(batch); err != nil {
			return t.failed(err)
		}
		if end := t.perform(batch); end != "" {
			return end
		}
	}
	return t.steps()
}

// steps takes steps until the turn is over.
func (t *turn) steps() EndReason {
	for {
		if end := t.step(); end != "" {
			return end
		}
	}
}

// step is one model call and its tools.
func (t *turn) step() EndReason {
	t.tellShown()
	if end := t.bounds(); end != "" {
		return end
	}
	t.state.Step++
	t.at(t.state.Step)
	t.snap.Refresh()
	t.grant()
	t.seeTools()
	if err := t.makeRoom(); err != nil {
		return t.failed(err)
	}
	t.tellShown()
	response, delivered, err := t.ask()
	if err != nil {
		return t.failed(err)
	}
	if t.gatesMayTakeLong(response) {
		if err := t.commitUnjudged(response, delivered); err != nil {
			return t.failed(err)
		}
		delivered = nil
	}
	return t.respond(response, delivered)
}

// respond asks the gates about a response, stores what came of it and runs its calls.
func (t *turn) respond(response, delivered *Message) EndReason {
	t.text = response.Text()
	batch := t.judge(response)
	end := t.verdict(response, batch)
	t.closing(end)
	if err := t.commitResponse(delivered, batch); err != nil {
		return t.failed(err)
	}
	t.observe(batch)
	if end != "" || len(batch.calls) == 0 || batch.settled() {
		return end
	}
	return t.perform(batch)
}

// gatesMayTakeLong reports whether a hook that is asked about the response may take
// long. The response is then stored before the hook is asked: it is paid for, and a
// process that is killed meanwhile must not lose it.
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

// commitUnjudged stores a response before its gates are asked, with the reminders that
// its request carried.
func (t *turn) commitUnjudged(response, delivered *Message) error {
	t.state.Unjudged = true
	messages := t.carried[:0]
	if delivered != nil {
		messages = append(messages, delivered)
	}
	return t.commit(append(messages, response), nil, nil)
}

// verdict says how the turn ends with this response, if it does.
func (t *turn) verdict(response *Message, b *batch) EndReason {
	switch {
	case response.StopReason == StopRefusal && t.ctx.Err() == nil:
		return EndRefused
	case len(b.calls) == 0:
		if response.StopReason == StopMaxTokens {
			t.diagnostics = append(t.diagnostics, hook.Diagnostic{
				Code: hook.CodeAnswerCut, Level: hook.CodeAnswerCut.Level(), Message: fmt.Sprintf("the answer of step %d is cut off: it reached the limit on its length", t.scope.Step),
			})
		}
		return t.stopping()
	case b.settled():
		return t.after(b)
	default:
		return ""
	}
}

// bounds says whether the turn may take another step.
func (t *turn) bounds() EndReason {
	if t.ctx.Err() != nil {
		return t.failed(context.Cause(t.ctx))
	}
	if t.yields() {
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
		t.why = why
		return EndBudget
	}
	return ""
}

// MaxSteps is the turn policy that bounds how many steps a turn may take, below
// the agent's limit.
var MaxSteps = PolicyMin[int]("max_steps")

// stopping says how the turn ends if the model makes no calls: turn.stop may make
// it go on.
func (t *turn) stopping() EndReason {
	if t.missed() {
		return ""
	}
	if TurnStop.Active(t.snap) && t.state.Continuations < t.agent.opts.Limits.Continuations {
		outcome, err := fire(t.ctx, t, TurnStop, StopAttempt{newInput(t.scope, stopAttempt{
			Text: t.text, Continuations: t.state.Continuations, soFar: t.so(),
		})})
		t.hear(outcome.Output.Aside, outcome.Diagnostics)
		if err == nil && outcome.Output.Decision == StopContinue {
			t.goesOn(outcome.By, outcome.Output.Reason)
			return ""
		}
	} else if t.state.Continuations > 0 && TurnStop.Active(t.snap) {
		t.goneOn()
	}
	if t.ctx.Err() != nil {
		return t.failed(context.Cause(t.ctx))
	}
	return EndTurn
}

// commitResponse stores a response, unless commitUnjudged did, the reminders its request
// carried, and the states of its calls. A call that will run now is recorded as started
// before it runs. It is not if something slow comes first: a person who is asked, or a
// hook at model.post.
func (t *turn) commitResponse(delivered *Message, b *batch) error {
	messages := t.carried[:0]
	if delivered != nil {
		messages = append(messages, delivered)
	}
	if !t.state.Unjudged {
		messages = append(messages, b.message)
		b.message.Seq = t.session.last + int64(len(messages)) // calls name it
	}
	t.state.Unjudged = false
	waits := t.asking().agent.opts.OnAsk == AskWait && b.asks() || ModelPost.Slow(t.snap)
	calls := b.records(waits)
	if b.settled() {
		messages = append(messages, b.results())
	}
	t.commitment = Commit{Messages: messages, Calls: calls, Approvals: b.approvals(), Amended: b.amended}
	return t.store()
}

// observe tells everyone about a response that is stored.
func (t *turn) observe(b *batch) {
	response := b.message
	t.emit(Event{Kind: EventModelResponse, Message: response})
	t.emit(Event{Kind: EventTokenConsumption, Usage: response.Usage})
	if ModelPost.Active(t.snap) {
		outcome, err := fire(t.ctx, t, ModelPost, ModelResponse{newInput(t.scope, modelResponse{
			Model: response.Model, StopReason: string(response.StopReason), Usage: *response.Usage, ToolCalls: len(b.calls), soFar: t.so(),
		})})
		t.note(outcome.Output, outcome.Diagnostics, err)
	}
	for _, c := range b.calls {
		c.stored = true
		t.emit(Event{Kind: EventToolUse, Call: c.part})
		if c.approval != nil && c.approval.Decided != nil { // by a hook, or because nobody can be asked
			t.tellApproval(EventApprovalRequested, c)
			t.tellApproval(EventApprovalDecided, c)
		}
	}
	t.tellResults(b)
	t.tellShown()
}

// tellResults tells about the results that nobody was told of yet.
func (t *turn) tellResults(b *batch) {
	for _, c := range b.calls {
		t.tellResult(c)
	}
}

// note keeps what an observe phase said. Its failures change nothing.
func (t *turn) note(n Note, diagnostics []hook.Diagnostic, err error) {
	t.hear(Aside{Note: n}, diagnostics)
	if err != nil {
		t.agent.opts.Logger.WarnContext(t.base, "an observe phase failed", "session", t.scope.Session, "turn", t.scope.Turn, "error", err)
	}
}

// failed says how a turn ends that cannot go on: aborted if that is why, and with
// an error if not.
func (t *turn) failed(err error) EndReason {
	if t.ctx.Err() != nil {
		t.err = context.Cause(t.ctx)
		return EndAborted
	}
	if t.err == nil {
		t.err = err
	}
	return EndError
}

// checkInput refuses what is no message.
func checkInput(text string, parts []Part) error {
	if strings.TrimSpace(text) == "" && len(parts) == 0 {
		return errors.New("the message is empty: give it a text, an image or a file")
	}
	return validParts(append([]Part{Text(text)}, parts...))
}
