package belay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrHandedOver says that a turn was let go of where it stood, for another process to
// go on with. It is the cause to cancel a context with that a turn was taken under, if
// it cannot wait for the end of its step: nothing is stored from then on, calls that
// run are cancelled, and whoever resumes the turn treats it as one whose process has
// ended.
var ErrHandedOver = errors.New("belay: the turn was handed over")

// TakeOptions are the settings of [Session.Take]. A nil *TakeOptions is valid.
type TakeOptions struct {
	// Yield, when it is closed, has the turn handed over at the end of its step: what
	// was done is stored, and anybody can resume it. Defaults to never.
	Yield <-chan struct{}
}

// Take takes the turn that is due: it goes on with the one under way, or else takes up
// the oldest queued one. ErrNoTurn: there is neither. ErrHandedOver: see
// TakeOptions. If the store does not take a commit, because the hold was lost or the
// store cannot be reached, the turn has not ended: that is the error, its end phases do
// not fire, and taking it again goes on from what is stored. It is for whoever serves a
// [TurnStore]; users call Run or Turn.
func (s *Session) Take(ctx context.Context, opts *TakeOptions) (*Turn, error) {
	store, ok := s.agent.store.(TurnStore)
	if !ok {
		return nil, fmt.Errorf("take the turn of session %q: %w", s.id, errNoTurnStore)
	}
	var taken *turn
	end, err := s.take(ctx, func(t *turn) EndReason {
		taken, t.served = t, true
		if opts != nil {
			t.yield = opts.Yield
		}
		if open := s.state.Turn; open != nil {
			if err := t.fits(s.state.Agent, cmp.Or(open.Model, s.state.Model)); err != nil {
				return t.leave(err)
			}
			return t.resume()
		}
		waiting, err := store.Queued(t.ctx, s.id)
		switch {
		case err != nil:
			return t.failed(fmt.Errorf("session %q: %w", s.id, err))
		case len(waiting) == 0:
			return t.failed(ErrNoTurn)
		}
		if err := t.fits(waiting[0].Agent, cmp.Or(waiting[0].Model, s.state.Model)); err != nil {
			return t.leave(err)
		}
		return t.takeUp(&waiting[0])
	})
	switch {
	case taken == nil:
	case taken.handedOver:
		err = fmt.Errorf("session %q: %w", s.id, ErrHandedOver)
	case taken.lost:
		err = taken.err
	}
	return end, err
}

// MissingModelError says that a turn cannot be taken here: its model is not to be had.
// The turn is as it was, for whoever has it. It is what [Session.Take] returns; others
// answer with the agent's own model and say so.
type MissingModelError struct {
	// Model is its name.
	Model string
	// Err says why.
	Err error
}

func (e *MissingModelError) Error() string {
	return fmt.Sprintf("the model that is to answer is not to be had here, and the turn is left to others: %v", e.Err)
}

// Unwrap returns why.
func (e *MissingModelError) Unwrap() error { return e.Err }

// fits says why the turn of an agent that a model answers in cannot be taken here.
func (t *turn) fits(agent, model string) error {
	if own := t.agent.opts.Name; agent != "" && agent != own {
		return fmt.Errorf("session %q: the turn is agent %q's, and this is %q: it is left to others", t.session.id, agent, own)
	}
	if model == "" || model == t.model.info.Name || t.agent.opts.OwnModelFirst {
		return nil
	}
	if _, err := t.chosen(model); err != nil {
		return fmt.Errorf("session %q: %w", t.session.id, &MissingModelError{model, err})
	}
	return nil
}

// leave leaves the turn as it is, to others.
func (t *turn) leave(err error) EndReason {
	t.err, t.lost, t.quiet = err, true, true
	return EndParked
}

// takeUp takes a queued turn.
func (t *turn) takeUp(sub *QueuedTurn) EndReason {
	t.begin()
	t.queued = sub.ID
	if sub.Model != "" && sub.Model != t.model.info.Name {
		n, err := t.chosen(sub.Model)
		if err != nil { // whoever asked for it wants no other
			return t.failed(fmt.Errorf("session %q: the model that is to answer: %w", t.session.id, err))
		}
		t.model, t.state.Model = n, sub.Model
	}
	if end := t.prepare(sub.Text, sub.Parts); end != "" {
		return end
	}
	return t.steps()
}

// takesUp is the queued turn that a commit takes up, if any: the commit that stores its
// message, or that ends its turn. Until then it waits, and whoever comes next begins
// anew.
func (t *turn) takesUp(messages []*Message) (id string) {
	ends := t.session.state.Turn == nil || t.session.state.Turn.Ended != ""
	if ends || slices.ContainsFunc(messages, func(m *Message) bool { return m.Kind == KindUser }) {
		id, t.queued = t.queued, ""
	}
	return id
}

// yields reports whether the turn is to be handed over at the end of its step.
func (t *turn) yields() bool {
	select {
	case <-t.yield:
		t.handedOver = true
	default:
	}
	return t.handedOver
}

// gone reports whether the turn was handed over before its step has ended. Nothing of
// it is stored any more.
func (t *turn) gone() bool {
	if t.ctx.Err() != nil && errors.Is(context.Cause(t.ctx), ErrHandedOver) {
		t.handedOver = true
		return true
	}
	return false
}
