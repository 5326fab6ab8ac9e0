package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

// followed is a queued turn that a client waits for.
type followed struct {
	session, queued string
	after           string // the position of the session when the turn was queued
	open            string // the id of the turn that was open then, or ""
	turn            string // the id of the turn, if it began before that position
	token           *Token // who follows it
	// see gets the events of the turn, and nil when events that are not stored were lost. It may
	// be nil.
	see func(*belay.Event)
}

// followed returns how to follow the turn.
func (t startedTurn) followed(see func(*belay.Event)) *followed {
	return &followed{session: t.Session, queued: t.ID, after: t.After, open: t.open, token: t.token, see: see}
}

// follow waits until a queued turn has ended or is parked. It returns nil if the server stops
// before.
func (s *Server) follow(ctx context.Context, f *followed) (*api.TurnResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	after, err := numberOf(f.after)
	if err != nil {
		return nil, err
	}
	w := &awaited{s: s, session: f.session, queued: f.queued, after: after, turn: f.turn, earlier: make(map[string]bool), result: api.TurnResult{Turn: f.turn}}
	w.begun.Store(f.turn != "")
	if f.open != "" { // the end of a turn without a message has no id
		w.earlier[f.open] = true
	}
	waiting := make(chan *api.TurnResult, 1)
	go func() { // ends with this function
		waiting <- w.waits(ctx)
		cancel()
	}()
	for e, err := range s.host.Watch(ctx, &belay.WatchOptions{Session: f.session, After: f.after}) {
		_, missed := errors.AsType[*belay.MissedError](err)
		switch {
		case missed && f.see != nil:
			f.see(nil)
			continue // only deltas are dropped: stored events come from the store
		case missed:
			continue
		case err != nil:
			return nil, err
		}
		var result *api.TurnResult
		if e.Depth == 0 { // not of a subagent
			result, err = w.see(ctx, &e)
		}
		if f.see != nil && w.turn != "" && e.Turn == w.turn {
			f.see(&e)
		}
		if result != nil {
			result.Why = f.token.why(result.Reason, result.Why)
		}
		if err != nil || result != nil {
			return result, err
		}
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) { // the token was revoked
		return nil, cause
	}
	if stuck := <-waiting; stuck != nil {
		return stuck, nil
	}
	return nil, nil //nolint:nilnil // the server stops, or the client has left
}

// numberOf returns the number of the message in a position: see belay.Event.Position.
func numberOf(position string) (int64, error) {
	number, _, _ := strings.Cut(position, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the position %q is not valid: %w", position, err)
	}
	return n, nil
}

// awaited is a queued turn whose end a request waits for.
type awaited struct {
	s               *Server
	session, queued string
	after           int64           // the number of the last message when it was queued
	turn            string          // the id of the turn; empty until it has begun
	begun           atomic.Bool     // turn is set
	earlier         map[string]bool // turns that began before it and have not ended
	answered        bool            // the last stored message of the turn is an answer of the model
	result          api.TurnResult
}

// see handles an event of the session. It returns the result if the turn has ended.
func (w *awaited) see(ctx context.Context, e *belay.Event) (*api.TurnResult, error) {
	switch e.Kind { //nolint:exhaustive // the others say nothing about the end of a turn
	case belay.EventTurnStart:
		return w.started(ctx, e)
	case belay.EventModelResponse:
		if m := e.Message; w.turn != "" && e.Turn == w.turn && m != nil {
			w.answered = answers(m)
			w.result.Text = cmp.Or(m.Text(), w.result.Text)
			if m.Usage != nil {
				w.result.Usage = addUsage(w.result.Usage, *m.Usage)
			}
		}
	case belay.EventTurnEnd:
		return w.ended(ctx, e)
	}
	return nil, nil //nolint:nilnil // the turn has not ended
}

// started handles the beginning of a turn.
func (w *awaited) started(ctx context.Context, e *belay.Event) (*api.TurnResult, error) {
	switch {
	case e.Message == nil: // a parked turn continues
		return nil, nil //nolint:nilnil // the turn has not ended
	case e.Message.Queued == w.queued:
		w.turn, w.result.Turn = e.Turn, e.Turn
		w.begun.Store(true)
		return nil, nil //nolint:nilnil // see above
	case w.turn != "" && e.Turn != w.turn: // a later turn has begun
		if !w.answered {
			w.result.Why = unknownEnd
		}
		return &w.result, nil
	}
	w.earlier[e.Turn] = true
	over, err := w.blocked(ctx, e.Message.Seq)
	if err != nil || !over {
		return nil, err
	}
	return &w.result, nil // a later turn has begun
}

// ended handles the end of a turn.
func (w *awaited) ended(ctx context.Context, e *belay.Event) (*api.TurnResult, error) {
	switch {
	case w.turn != "" && e.Turn != w.turn:
		return nil, nil //nolint:nilnil // the turn has not ended
	case w.turn == "" && w.earlier[e.Turn]:
		if e.End.Reason == belay.EndParked {
			return w.behind(ctx)
		}
		delete(w.earlier, e.Turn)
		return nil, nil //nolint:nilnil // see above
	case w.turn == "":
		if over, err := w.blocked(ctx, w.after); err != nil || !over {
			return nil, err
		}
	}
	r := &w.result
	r.Turn, r.Reason, r.Steps, r.By, r.Why = e.Turn, e.End.Reason, e.End.Steps, e.End.By, e.End.Why
	r.Text = cmp.Or(e.End.Text, r.Text)
	if e.End.Usage != (belay.Usage{}) {
		r.Usage = e.End.Usage
	}
	for i := range e.End.Waits {
		r.Approvals = append(r.Approvals, e.End.Waits[i].ID)
	}
	return r, nil
}

// blocked reports whether a hook has blocked the turn before its message was stored: it is no
// longer queued, and the session has no message of it after the given number.
func (w *awaited) blocked(ctx context.Context, after int64) (bool, error) {
	if waits, err := w.s.isQueued(ctx, w.session, w.queued); err != nil || waits {
		return false, err
	}
	for m, err := range w.s.store.Read(ctx, w.session, after) {
		if errors.Is(err, belay.ErrNotFound) {
			break
		}
		if err != nil {
			return false, err
		}
		if m.Queued == w.queued {
			return false, nil
		}
	}
	return true, nil
}

func addUsage(a, b belay.Usage) belay.Usage {
	return belay.Usage{In: a.In + b.In, Out: a.Out + b.Out, CacheRead: a.CacheRead + b.CacheRead, CacheWrite: a.CacheWrite + b.CacheWrite, Cost: a.Cost + b.Cost}
}
