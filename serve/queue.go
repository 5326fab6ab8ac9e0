package serve

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
)

func listQueue(ctx context.Context, s *Server, q *request, in *sessionIn) (api.Queue, error) {
	out := api.Queue{Turns: []api.QueuedTurn{}}
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return out, err
	}
	waiting, err := s.store.Queued(ctx, info.ID)
	for i := range waiting {
		t := &waiting[i]
		out.Turns = append(out.Turns, api.QueuedTurn{ID: t.ID, Agent: t.Agent, Model: t.Model, Text: t.Text, Time: t.Time})
	}
	return out, err
}

// withdrawTurn removes a message from the queue, if its turn has not begun.
func withdrawTurn(ctx context.Context, s *Server, q *request, in *api.WithdrawTurn) (none, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return none{}, err
	}
	err = s.store.Withdraw(ctx, info.ID, in.Turn)
	if errors.Is(err, belay.ErrNotFound) {
		err = problem(http.StatusNotFound, codes.RequestNotFound, "the queue of the session has no turn %.80q: it may have begun. To abort the open turn, use /abort", in.Turn)
	}
	return none{}, err
}

// waits looks at the queue until the turn has begun or ctx ends. It returns a result if the turn
// cannot begin now, or never will. Events say the same as a rule, but not if the session parked
// before the request came, or if somebody else withdraws the turn.
func (w *awaited) waits(ctx context.Context) *api.TurnResult {
	look := time.NewTicker(w.s.timeouts.look)
	defer look.Stop()
	for gone := 0; ; {
		result, err := w.behind(ctx)
		if err == nil && result == nil && !w.begun.Load() {
			var over bool
			if over, err = w.blocked(ctx, w.after); err == nil && over { // the event of its end may be on its way
				gone++
			}
		}
		switch {
		case w.begun.Load():
			result = nil
		case gone > 1:
			result = &api.TurnResult{Reason: belay.EndBlocked, Why: neverBegun}
		}
		if err != nil && ctx.Err() == nil {
			w.s.log.WarnContext(ctx, "cannot look at the queue of a session: retrying", "session", w.session, "error", err)
		}
		if result != nil {
			return result
		}
		select {
		case <-look.C:
		case <-w.s.draining.Done():
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// neverBegun says why a turn has no message.
const neverBegun = "the turn ended before its message was stored: a hook blocked it, or it was withdrawn from the queue"

// behind returns a result if the turn waits in the queue behind a turn that is parked. It
// returns nil if everything that the earlier turn waits for is decided, because a worker
// continues that turn.
func (w *awaited) behind(ctx context.Context) (*api.TurnResult, error) {
	if w.begun.Load() {
		return nil, nil //nolint:nilnil // it runs
	}
	info, found, err := inspect.FindSession(ctx, w.s.store, w.session)
	if err != nil || !found || info.State.Turn == nil || !info.State.Turn.Parked {
		return nil, err
	}
	if queued, err := w.s.isQueued(ctx, w.session, w.queued); err != nil || !queued {
		return nil, err
	}
	what, ids, err := w.s.waitsFor(ctx, w.session)
	if err != nil || what == "" {
		return nil, err
	}
	return &api.TurnResult{Reason: belay.EndParked, Queued: true, Approvals: ids, Why: "the message is in the queue: an earlier turn of the session is parked, and must end first"}, nil
}

// isQueued reports whether a turn has not begun.
func (s *Server) isQueued(ctx context.Context, session, turn string) (bool, error) {
	waiting, err := s.store.Queued(ctx, session)
	return slices.ContainsFunc(waiting, func(t belay.QueuedTurn) bool { return t.ID == turn }), err
}
