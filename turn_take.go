package belay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// turnQueue connects a turn with the queue of turns. It is empty for a turn of Run or
// Turn.
type turnQueue struct {
	id         string // the queued turn that the first commit removes from the queue
	yield      <-chan struct{}
	handedOver bool
	served     bool // RunDue runs the turn, so another process can continue it
	begun      func(turn string)
}

// ErrHandedOver says that a turn was stopped so that another process can continue it. Use
// it as the cancel cause of the context of [Session.RunDue] if you cannot wait for the end
// of a step. Belay then stores nothing more and cancels running calls. The process that
// resumes the turn treats it like a turn whose process has ended.
var ErrHandedOver = errors.New("belay: the turn was handed over")

// RunDueOptions are the settings of [Session.RunDue]. A nil *RunDueOptions is valid.
type RunDueOptions struct {
	// Yield is a channel. When the caller closes it, the turn finishes and stores its
	// current step. Then RunDue returns ErrHandedOver, and any process can resume the turn.
	// Defaults to nil: the turn is not handed over.
	Yield <-chan struct{}
	// Abort is the id of a turn that somebody wants to abort. If it is the open turn, RunDue
	// does not resume the turn, but ends it as [Session.Abandon] does. Otherwise Abort has no
	// effect. Defaults to "": no turn is aborted.
	Abort string
	// Begun is called with the id of the turn, before the turn does anything. Defaults to
	// nil.
	Begun func(turn string)
}

// RunDue runs the turn that is due: it resumes the open turn, or begins the oldest queued
// turn. It is for workers that serve a [TurnStore]. Other programs call Run or Turn.
//
// RunDue returns ErrNoTurn if there is no such turn, and ErrHandedOver if the turn was
// handed over: see RunDueOptions. If a commit fails, because the hold was lost or the store
// is unavailable, RunDue returns that error. The turn has then not ended, and its end
// phases do not fire. The next RunDue continues from the stored state.
func (s *Session) RunDue(ctx context.Context, opts *RunDueOptions) (*Turn, error) {
	store, ok := s.agent.store.(TurnStore)
	if !ok {
		return nil, fmt.Errorf("run the turn of session %q: %w", s.id, errNoTurnStore)
	}
	var taken *turn
	end, err := s.take(ctx, func(t *turn) EndReason {
		taken, t.queue.served = t, true
		if opts != nil {
			t.queue.yield, t.queue.begun = opts.Yield, opts.Begun
		}
		if open := s.state.Turn; open != nil {
			if opts != nil && opts.Abort == open.ID {
				return t.abandonOpen(opts.Abort)
			}
			if err := t.checkAgentAndModel(s.state.Agent, cmp.Or(open.Model, s.state.Model)); err != nil {
				return t.leaveToOthers(err)
			}
			return t.resume()
		}
		waiting, err := store.Queued(t.ctx, s.id)
		switch {
		case err != nil:
			return t.fail(fmt.Errorf("session %q: %w", s.id, err))
		case len(waiting) == 0:
			return t.fail(ErrNoTurn)
		}
		if err := t.checkAgentAndModel(waiting[0].Agent, cmp.Or(waiting[0].Model, s.state.Model)); err != nil {
			return t.leaveToOthers(err)
		}
		return t.beginQueued(&waiting[0])
	})
	switch {
	case taken == nil:
	case taken.queue.handedOver:
		err = fmt.Errorf("session %q: %w", s.id, ErrHandedOver)
	case taken.end.lost:
		err = taken.end.err
	}
	return end, err
}

// MissingModelError says that this process cannot run a turn, because the model of the turn
// is unavailable here. The turn does not change, and another process can run it. Only
// [Session.RunDue] returns this error. Other methods use the agent's own model and add a
// diagnostic.
type MissingModelError struct {
	// Model is the name of the model.
	Model string
	// Err says why the model is unavailable.
	Err error
}

func (e *MissingModelError) Error() string {
	return fmt.Sprintf("the model of the turn is unavailable in this process, so other workers must run the turn: %v", e.Err)
}

// Unwrap returns Err.
func (e *MissingModelError) Unwrap() error { return e.Err }

// checkAgentAndModel returns an error if this process cannot run a turn of the given agent
// with the given model.
func (t *turn) checkAgentAndModel(agent, model string) error {
	if own := t.agent.opts.Name; agent != "" && agent != own {
		return fmt.Errorf("session %q: the turn belongs to agent %q, but this agent is %q: other workers must run it", t.session.id, agent, own)
	}
	if model == "" || model == t.model.info.Name || t.agent.opts.OwnModelFirst {
		return nil
	}
	if _, err := t.chosen(model); err != nil {
		return fmt.Errorf("session %q: %w", t.session.id, &MissingModelError{model, err})
	}
	return nil
}

// leaveToOthers leaves the turn unchanged, so that another process can run it.
func (t *turn) leaveToOthers(err error) EndReason {
	t.end.err, t.end.lost, t.quiet = err, true, true
	return EndParked
}

// beginQueued begins a queued turn.
func (t *turn) beginQueued(sub *QueuedTurn) EndReason {
	t.begin()
	t.queue.id = sub.ID
	if sub.Model != "" && sub.Model != t.model.info.Name {
		n, err := t.chosen(sub.Model)
		if err != nil { // the user asked for this model, so no other model may answer
			return t.fail(fmt.Errorf("session %q: the model of the turn: %w", t.session.id, err))
		}
		t.model, t.state.Model = n, sub.Model
	}
	if end := t.prepare(sub.Text, sub.Parts); end != "" {
		return end
	}
	return t.steps()
}

// queuedIDFor returns the id of the queued turn that a commit removes from the queue.
// Only the commit that stores the user message or ends the turn removes it; for other
// commits the id is "". Until then the turn stays queued, so that another process can
// begin it again.
func (t *turn) queuedIDFor(messages []*Message) (id string) {
	ends := t.session.state.Turn == nil || t.session.state.Turn.Ended != ""
	if ends || slices.ContainsFunc(messages, func(m *Message) bool { return m.Kind == KindUser }) {
		id, t.queue.id = t.queue.id, ""
	}
	return id
}

// mustHandOver reports whether the turn must be handed over before the next step.
func (t *turn) mustHandOver() bool {
	select {
	case <-t.queue.yield:
		t.queue.handedOver = true
	default:
	}
	return t.queue.handedOver
}

// wasHandedOver reports whether the turn was handed over in the middle of a step. Then
// nothing more of the turn may be stored.
func (t *turn) wasHandedOver() bool {
	if t.ctx.Err() != nil && errors.Is(context.Cause(t.ctx), ErrHandedOver) {
		t.queue.handedOver = true
		return true
	}
	return false
}
