package belay

import (
	"errors"
	"fmt"
)

// closing makes the next commit the turn's last, unless its end phases have
// something to add: then the turn stays on record until they have fired.
func (t *turn) closing(end EndReason) {
	if t.state.ID == "" || end == "" {
		return
	}
	if TurnPostTurn.Active(t.snap) || end == EndError && Error.Active(t.snap) {
		t.state.Ended = end
		t.session.state.Ending = t.ended(end)
		return
	}
	t.close(end)
}

// close takes the turn off the record.
func (t *turn) close(end EndReason) {
	state := &t.session.state
	if state.Turn == nil {
		return
	}
	state.Turn = nil
	state.Last, state.Ending = end, t.ended(end)
	t.session.spent(t.state.Usage)
	t.session.underway = nil
}

// mostWhy is how many characters are kept of why a turn ended.
const mostWhy = 2000

// ended says why the turn ends, if it does not end well.
func (t *turn) ended(end EndReason) *Ending {
	e := Ending{By: t.by, Why: t.why}
	if t.err != nil && (end == EndError || end == EndAborted) {
		e.Why = fmt.Sprint(t.err)
	}
	if e == (Ending{}) {
		return nil
	}
	if first, isCut := firstCharacters(validText(e.Why), mostWhy); isCut {
		e.Why = first + "…"
	} else {
		e.Why = first
	}
	return &e
}

// finish ends the turn: the end phases, the last commit, and the report.
func (t *turn) finish(end EndReason) {
	t.ending = true
	if t.gone() || t.lost { // it has not ended: its end phases fire where it does
		end = EndParked
	}
	if end == EndParked {
		t.session.doubt(t.base) // whoever resumes it need not be this process
		t.conclude(end)
		return
	}
	t.endPhases(end)
	if t.session.held && !t.clean {
		if err := t.commit(nil, nil, nil); err != nil {
			t.err = errors.Join(t.err, err)
			end = EndError
		}
	}
	t.conclude(end)
}

// endPhases fires the phases that end a turn. An abort does not cancel them;
// their own bound does.
func (t *turn) endPhases(end EndReason) {
	if t.state.ID == "" {
		return // it never was a turn
	}
	if told := &t.session.told; *told != t.state.ID && (TurnPostTurn.Active(t.snap) || Error.Active(t.snap)) {
		ctx := new(boundContext)
		ctx.bind(t.base, t.agent.opts.Limits.End)
		defer ctx.end()
		if end == EndError && t.failing != t.state.ID && Error.Active(t.snap) {
			t.failing = t.state.ID
			outcome, err := fire(ctx, t, Error, TurnFailure{newInput(t.scope, turnFailure{
				Class: errorClass(t.err), Message: fmt.Sprint(t.err), soFar: t.so(),
			})})
			t.note(outcome.Output, outcome.Diagnostics, err)
		}
		*told = t.state.ID
		if TurnPostTurn.Active(t.snap) {
			outcome, err := fire(ctx, t, TurnPostTurn, TurnEnded{newInput(t.scope, turnEnded{
				Reason: end, Steps: t.state.Step, Usage: t.state.Usage, soFar: t.so(),
			})})
			t.note(outcome.Output, outcome.Diagnostics, err)
		}
	}
	if t.session.state.Turn != nil {
		t.close(end)
		t.clean = false
	}
}

// conclude reports the turn. It is the last thing that happens in it.
func (t *turn) conclude(end EndReason) {
	if t.snap != nil {
		if err := t.snap.Release(t.base); err != nil {
			t.err = errors.Join(t.err, err)
			end = EndError
		}
	}
	result := &Turn{
		ID: t.state.ID, Reason: end, Text: t.text, Steps: t.state.Step, Usage: t.state.Usage,
		By: t.by, Why: t.why, Waits: t.waits, Diagnostics: t.diagnostics,
	}
	if _, stays := errors.AsType[*MissingToolError](t.err); stays || end == EndError || end == EndAborted {
		result.err = t.err
	}
	if end == EndError {
		result.Why = fmt.Sprint(t.err)
	}
	t.result = result
	t.tellShown()
	if t.quiet || errors.Is(t.err, ErrNoTurn) { // then it never was one
		return
	}
	if end == EndError {
		t.emit(Event{Kind: EventError, Text: result.Why})
	}
	t.emit(Event{Kind: EventTurnEnd, End: result})
}

// errorClass is a stable code for what ended a turn.
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
