package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/toolbox"
)

// abortPatience is how long a command waits for the end of a turn that it has aborted.
const abortPatience = 15 * time.Second

// serverTurn is a turn that a server runs and this command shows.
type serverTurn struct {
	s      *serverSession
	queued string // the id of the queued turn; empty if the turn was resumed
	after  int64  // the number of the last message when it was queued
	yield  func(belay.Event, error) bool

	turn    atomic.Pointer[string] // the id of the turn; nil until it has begun
	earlier map[string]bool        // turns that began before it and have not ended
	once    sync.Once              // aborts the turn once

	withdrawn atomic.Bool // the message was taken back before the turn began
}

// follow yields the events of the turn until it has ended or is parked. When ctx is done, it
// aborts the turn and waits for the end.
func (t *serverTurn) follow(ctx context.Context, after string) {
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		if t.abort(following); t.withdrawn.Load() {
			stop()
			return
		}
		giveUp := time.AfterFunc(abortPatience, stop)
		context.AfterFunc(following, func() { giveUp.Stop() })
	})()
	for e, err := range t.s.c.Events(following, t.s.id, after) {
		if _, missed := errors.AsType[*belay.MissedError](err); missed {
			continue // only events that are not stored are dropped
		}
		if err != nil {
			t.yield(belay.Event{}, err)
			return
		}
		over, err := t.see(ctx, following, &e)
		if err != nil {
			t.yield(belay.Event{}, err)
			return
		}
		if over {
			return
		}
	}
	switch {
	case t.withdrawn.Load():
		t.yield(belay.Event{}, fmt.Errorf("the turn had not begun, and the message was taken back: %w", context.Cause(ctx)))
	case ctx.Err() != nil:
		t.yield(belay.Event{}, fmt.Errorf("the server has not ended the turn yet: %w", context.Cause(ctx)))
	}
}

// abort aborts the turn. If it has not begun, abort takes the message back. Another turn of the
// session must not be aborted.
func (t *serverTurn) abort(ctx context.Context) {
	turn := t.turn.Load()
	if turn == nil {
		t.withdrawn.Store(t.s.c.WithdrawTurn(ctx, t.s.id, t.queued) == nil)
		return // if it has begun in the meantime, see aborts it
	}
	t.once.Do(func() {
		_, _ = t.s.c.AbortTurn(ctx, t.s.id, *turn) // ignore errors: the turn may have ended, and otherwise follow gives up
	})
}

// see handles an event. over is true if the turn has ended or is parked, or if the consumer has
// left.
func (t *serverTurn) see(ctx, following context.Context, e *belay.Event) (over bool, err error) {
	if t.turn.Load() == nil {
		if mine, err := t.begins(following, e); err != nil || !mine {
			return false, err
		}
		if ctx.Err() != nil { // the user pressed Ctrl-C before the turn began
			t.abort(following)
		}
	}
	ended := e.Kind == belay.EventTurnEnd && e.Depth == 0 && e.End != nil
	if ended && e.End.Reason == belay.EndParked {
		goesOn := false
		if ctx.Err() == nil {
			goesOn, err = t.ask(ctx, e.End.Waits)
		}
		if ctx.Err() != nil { // the user pressed Ctrl-C: a worker ends the parked turn
			t.abort(following)
			goesOn, err = true, nil
		}
		if goesOn || err != nil {
			return false, err
		}
	}
	return !t.yield(*e, nil) || ended, nil
}

// begins reports whether an event belongs to the turn. It is called until the turn has begun.
func (t *serverTurn) begins(ctx context.Context, e *belay.Event) (bool, error) {
	switch {
	case e.Depth > 0:
		return false, nil
	case e.Kind == belay.EventTurnStart && e.Message != nil:
		if e.Message.Queued != t.queued {
			t.earlier[e.Turn] = true
			return false, nil
		}
		t.turn.Store(&e.Turn)
		return true, nil
	case e.Kind != belay.EventTurnEnd || e.End == nil:
		return false, nil
	case t.earlier[e.Turn] && e.End.Reason == belay.EndParked:
		return false, t.behind(ctx)
	case t.earlier[e.Turn]:
		delete(t.earlier, e.Turn)
		return false, nil
	}
	// A hook may have blocked the turn before its message was stored. Then it has no turn_start.
	queue, err := t.s.c.ListQueue(ctx, t.s.id)
	if err != nil || slices.ContainsFunc(queue.Turns, func(q api.QueuedTurn) bool { return q.ID == t.queued }) {
		return false, err
	}
	for m, err := range t.s.c.Messages(ctx, t.s.id, t.after) {
		if err != nil {
			return false, err
		}
		if m.Queued == t.queued {
			return false, nil
		}
	}
	t.turn.Store(&e.Turn)
	return true, nil
}

// behind takes the message back if the turn before it waits for somebody, and returns
// belay.ErrParked: a message to a session that is parked is refused in the same way.
func (t *serverTurn) behind(ctx context.Context) error {
	waits, err := t.s.waits(ctx)
	if err != nil || len(waits) == 0 { // decided: a worker continues the turn
		return err
	}
	err = t.s.c.WithdrawTurn(ctx, t.s.id, t.queued)
	switch {
	case errors.Is(err, belay.ErrNotFound): // it has begun
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("session %s: %w", t.s.id, belay.ErrParked)
}

// ask asks the person at the terminal about everything that the turn waits for, and sends the
// decisions. It reports whether the turn continues.
func (t *serverTurn) ask(ctx context.Context, waits []belay.Question) (bool, error) {
	if t.s.approver == nil {
		return false, nil
	}
	decided := false
	for _, q := range waits {
		if q.ID == "" || q.Wait != "" { // its tool has parked it: nobody can decide it
			continue
		}
		if err := t.askOne(ctx, q); err != nil {
			return false, err
		}
		decided = true
	}
	return decided, nil
}

// mostPatterns is how often the user may type a pattern that the server refuses.
const mostPatterns = 5

// askOne asks about one approval. If the server refuses the user's pattern, it asks again.
func (t *serverTurn) askOne(ctx context.Context, q belay.Question) error {
	id, reason := q.ID, q.Reason
	for try := 1; ; try++ {
		d, err := t.s.approver.Approve(ctx, q)
		if err != nil {
			return fmt.Errorf("approval %s: %w", id, err)
		}
		in := api.DecideApproval{Approval: id, Hash: q.Hash, Allow: d.Allow, Reason: d.Reason}
		switch d.Scope.Kind {
		case belay.ScopeSession:
			in.Scope = api.ScopeSession
		case belay.ScopePattern:
			in.Scope, in.Pattern = api.ScopePattern, d.Scope.Pattern
		case belay.ScopeOnce:
		}
		if _, words := toolbox.ReadQuestion(q); words && d.Allow {
			in.Answer, in.Reason = &d.Reason, ""
		}
		_, err = t.s.c.DecideApproval(ctx, in)
		problem, _ := errors.AsType[*api.Problem](err)
		switch {
		case errors.Is(err, belay.ErrDecided), errors.Is(err, belay.ErrExpired): // the turn continues all the same
			return nil
		case problem != nil && problem.Field == "/pattern" && try < mostPatterns:
			q.ID, q.Reason = fmt.Sprintf("%s#%d", id, try), problem.Detail+"; "+reason // a new id, because it is a new question
		default:
			return err
		}
	}
}
