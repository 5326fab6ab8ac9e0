package belay

import (
	"errors"
	"fmt"
	"time"
)

// turnEnd describes how a turn ends.
type turnEnd struct {
	begun    bool   // finish was called
	reported string // the id of the turn for which the phase error was fired
	lost     bool   // the store refused a commit, and another process continues the turn
	by, why  string // the hook or person that ended the turn, and the reason
	err      error
	result   *Turn
}

// markEnd records in the session's state how the turn ends, for the next commit. If no
// end phase has handlers, it already removes the turn from the session's state. Otherwise
// the turn stays there until the handlers have run.
func (t *turn) markEnd(end EndReason) {
	if t.state.ID == "" || end == "" {
		return
	}
	if TurnPostTurn.Active(t.snap) || end == EndError && Error.Active(t.snap) {
		t.state.Ended = end
		t.session.state.Ending = t.endRecord(end)
		return
	}
	t.clearTurn(end)
}

// clearTurn removes the turn from the session's state and records how it ended.
func (t *turn) clearTurn(end EndReason) {
	state := &t.session.state
	if state.Turn == nil {
		return
	}
	state.Turn = nil
	state.Last, state.Ending = end, t.endRecord(end)
	t.session.addUsage(t.state.Usage)
	t.session.underway = nil
}

// mostWhy is how many characters of the end's reason are stored.
const mostWhy = 2000

// endRecord returns why the turn ended. It returns nil if the turn ended normally.
func (t *turn) endRecord(end EndReason) *Ending {
	why := t.end.why
	if t.end.err != nil && (end == EndError || end == EndAborted) {
		why = fmt.Sprint(t.end.err)
	}
	if why == "" && t.end.by == "" {
		return nil
	}
	e := Ending{By: t.end.by, Why: why}
	if first, isCut := firstCharacters(validText(e.Why), mostWhy); isCut {
		e.Why = first + "…"
	} else {
		e.Why = first
	}
	return &e
}

// finish ends the turn: it fires the end phases, makes the last commit and reports the
// result. If the turn is parked, finish only releases the session and reports the result.
func (t *turn) finish(end EndReason) {
	defer func() {
		if !t.session.held {
			t.session.messages = nil // the next turn reads them again
		}
	}()
	t.end.begun = true
	if t.wasHandedOver() || t.end.lost { // the turn has not ended: another process continues it and fires its end phases
		end = EndParked
	}
	if end == EndParked {
		t.session.release(t.base) // another process may resume the turn
		t.report(end)
		return
	}
	t.fireEndPhases(end)
	if t.session.held && !t.write.clean {
		if err := t.commit(nil, nil, nil); err != nil {
			t.end.err = errors.Join(t.end.err, err)
			end = EndError
		}
	}
	if t.agent.opts.ReleaseIdle {
		t.session.release(t.base)
	}
	t.report(end)
}

// fireEndPhases fires the phases error and turn.post_turn. An abort does not cancel them,
// but Limits.End limits their time.
func (t *turn) fireEndPhases(end EndReason) {
	if t.state.ID == "" {
		return // no turn has begun
	}
	if told := &t.session.told; *told != t.state.ID && (TurnPostTurn.Active(t.snap) || Error.Active(t.snap)) {
		ctx := new(boundContext)
		ctx.bind(t.base, time.Now(), t.agent.opts.Limits.End)
		defer ctx.end()
		if end == EndError && t.end.reported != t.state.ID && Error.Active(t.snap) {
			t.end.reported = t.state.ID
			outcome, err := fire(ctx, t, Error, TurnFailure{newInput(t.scope, turnFailure{
				Class: errorClass(t.end.err), Message: fmt.Sprint(t.end.err), soFar: t.soFar(),
			})})
			t.keepNote(outcome.Output, outcome.Diagnostics, err)
		}
		*told = t.state.ID
		if TurnPostTurn.Active(t.snap) {
			ended := turnEnded{Reason: end, Steps: t.state.Step, Usage: t.state.Usage, soFar: t.soFar()}
			if !t.agent.opts.NoPreviews {
				ended.UserText, _ = firstCharacters(t.state.Text, previewCharacters)
				ended.Text, _ = firstCharacters(t.text, previewCharacters)
			}
			outcome, err := fire(ctx, t, TurnPostTurn, TurnEnded{newInput(t.scope, ended)})
			t.keepNote(outcome.Output, outcome.Diagnostics, err)
		}
	}
	if t.session.state.Turn != nil {
		t.clearTurn(end)
		t.write.clean = false
	}
}

// report makes the result of the turn and emits its last events. It is the last action of a
// turn.
func (t *turn) report(end EndReason) {
	t.session.endHelper()
	if t.snap != nil {
		if err := errors.Join(t.reportLastRuns(), t.snap.Release(t.base)); err != nil {
			t.end.err = errors.Join(t.end.err, err)
			end = EndError
		}
	}
	result := &Turn{
		ID: t.state.ID, Reason: end, Text: t.text, Steps: t.state.Step, Usage: t.state.Usage,
		By: t.end.by, Why: t.end.why, Waits: t.waits, Diagnostics: t.diagnostics,
	}
	if end == EndTurn {
		result.Answer = t.answered()
	}
	if _, stays := errors.AsType[*MissingToolError](t.end.err); stays || end == EndError || end == EndAborted {
		result.err = t.end.err
	}
	if end == EndError {
		result.Why = fmt.Sprint(t.end.err)
	}
	t.end.result = result
	t.endTurnSpan(result)
	t.emitHeld()
	if t.quiet || errors.Is(t.end.err, ErrNoTurn) { // no turn was run
		return
	}
	if end == EndError {
		t.emit(Event{Kind: EventError, Text: result.Why})
	}
	t.emit(Event{Kind: EventTurnEnd, End: result})
}

// errorClass returns a stable code for the error that ended a turn.
func errorClass(err error) string {
	var model *ModelError
	switch {
	case errors.As(err, &model):
		return "model." + string(model.Kind)
	case errors.Is(err, ErrFenced), errors.Is(err, ErrHeld), errors.Is(err, ErrConflict):
		return "store.lost"
	default:
		return hookClass(err)
	}
}
