package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
)

// startedTurn is the response of startTurn.
type startedTurn struct{ api.StartedTurn }

func (t startedTurn) httpStatus() int {
	if t.Result != nil {
		return http.StatusOK
	}
	return http.StatusAccepted
}

func startTurn(ctx context.Context, s *Server, q *request, in *api.StartTurn) (startedTurn, error) {
	if s.stopping() {
		p := problem(http.StatusServiceUnavailable, codes.ServerDraining, "the server is stopping: send the request again")
		p.retry = 2
		return startedTurn{}, p
	}
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return startedTurn{}, err
	}
	if inspect.IsChild(info.ID) {
		return startedTurn{}, invalid("/session", "the session belongs to a subagent, and only its parent runs turns in it")
	}
	agent := cmp.Or(in.Agent, info.State.Agent, host.Main)
	if err := s.project.CheckAgent(agent); err != nil {
		return startedTurn{}, invalid("/agent", "%v", err)
	}
	if in.Model != "" {
		if err := s.project.CheckModel(in.Model); err != nil {
			return startedTurn{}, invalid("/model", "%v", err)
		}
	}
	turn, err := belay.NewQueuedTurn(info.ID, agent, in.Text)
	if err != nil {
		return startedTurn{}, invalid("/text", "%v", err)
	}
	turn.Model = in.Model
	if err := s.store.Submit(ctx, turn); err != nil {
		return startedTurn{}, err
	}
	out := startedTurn{api.StartedTurn{ID: turn.ID, Session: info.ID, Agent: agent, After: fmt.Sprint(info.Last)}}
	if in.Wait == "end" {
		_ = http.NewResponseController(q.w).SetWriteDeadline(time.Time{}) // the turn may take long
		out.Result, err = s.await(ctx, info.ID, turn.ID, out.After)
	}
	return out, err
}

// await waits for the end of a queued turn. It returns nil if the server stops before.
func (s *Server) await(ctx context.Context, session, queued, after string) (*api.TurnResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with this function
		select {
		case <-s.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	mine, text := "", ""
	var usage belay.Usage
	for e, err := range s.host.Watch(ctx, &belay.WatchOptions{Session: session, After: after}) {
		if _, missed := errors.AsType[*belay.MissedError](err); missed {
			continue // only deltas are dropped: stored events come from the store
		}
		if err != nil {
			return nil, err
		}
		switch {
		case e.Depth > 0: // of a subagent
		case e.Kind == belay.EventTurnStart && e.Message != nil && e.Message.Queued == queued:
			mine = e.Turn
		case e.Kind == belay.EventTurnStart && e.Message != nil && mine != "" && e.Turn != mine: // a later turn has begun
			return &api.TurnResult{Turn: mine, Text: text, Usage: usage}, nil
		case e.Kind == belay.EventModelResponse && mine != "" && e.Turn == mine && e.Message != nil:
			text = cmp.Or(e.Message.Text(), text)
			if e.Message.Usage != nil {
				usage = addUsage(usage, *e.Message.Usage)
			}
		case e.Kind == belay.EventTurnEnd && (mine != "" && e.Turn == mine || mine == "" && s.isOver(ctx, session, queued)):
			r := &api.TurnResult{Turn: e.Turn, Reason: e.End.Reason, Text: cmp.Or(e.End.Text, text), Steps: e.End.Steps, Usage: e.End.Usage, By: e.End.By, Why: e.End.Why}
			if r.Usage == (belay.Usage{}) {
				r.Usage = usage
			}
			for i := range e.End.Waits {
				r.Approvals = append(r.Approvals, e.End.Waits[i].ID)
			}
			return r, nil
		}
	}
	return nil, nil //nolint:nilnil // the server stops, or the client has left
}

// isOver reports whether a queued turn is no longer queued. A turn that a hook blocks before
// its message is stored ends without a message.
func (s *Server) isOver(ctx context.Context, session, queued string) bool {
	waiting, err := s.store.Queued(ctx, session)
	return err == nil && !slices.ContainsFunc(waiting, func(t belay.QueuedTurn) bool { return t.ID == queued })
}

func addUsage(a, b belay.Usage) belay.Usage {
	return belay.Usage{In: a.In + b.In, Out: a.Out + b.Out, CacheRead: a.CacheRead + b.CacheRead, CacheWrite: a.CacheWrite + b.CacheWrite, Cost: a.Cost + b.Cost}
}

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

// abortTurn aborts the open turn, whichever worker runs it. If this process runs it, it ends at
// once. Otherwise the request is stored, and the worker that runs the turn reads it within a
// second. A turn that nobody runs is ended by the worker that claims it next.
func abortTurn(ctx context.Context, s *Server, q *request, in *sessionIn) (api.Session, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return api.Session{}, err
	}
	by, open := q.token.by(), info.State.Turn
	switch {
	case s.worker != nil && s.worker.Abort(info.ID, fmt.Errorf("aborted by %s", by)):
		return readSession(ctx, s, q, in)
	case open == nil:
		return api.Session{}, problem(http.StatusConflict, codes.TurnNone, "the session has no open turn")
	case inspect.IsChild(info.ID):
		return api.Session{}, invalid("/session", "the session belongs to a subagent: abort the turn of its parent %s", inspect.ParentOf(info.ID))
	case info.Held:
		load, err := s.store.Load(ctx)
		if err != nil {
			return api.Session{}, err
		}
		ours := func(turn belay.DueTurn) bool { return turn.Session == info.ID }
		if !slices.ContainsFunc(load.Holders, func(h belay.HolderLoad) bool { return slices.ContainsFunc(h.Turns, ours) }) {
			return api.Session{}, problem(http.StatusConflict, codes.TurnElsewhere, "a process that is not a worker runs this turn, such as belay run: stop it there")
		}
	}
	turn := dueTurn(&info)
	turn.Abort = by
	if err := s.store.Requeue(ctx, turn); err != nil {
		return api.Session{}, err
	}
	return readSession(ctx, s, q, in)
}

// dueTurn returns the open turn of a session, for the queue.
func dueTurn(info *belay.SessionInfo) belay.DueTurn {
	return belay.DueTurn{Session: info.ID, Agent: cmp.Or(info.State.Agent, host.Main), Model: cmp.Or(info.State.Turn.Model, info.State.Model)}
}

func resumeTurn(ctx context.Context, s *Server, q *request, in *sessionIn) (api.Session, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return api.Session{}, err
	}
	open := info.State.Turn
	switch {
	case open == nil:
		return api.Session{}, problem(http.StatusConflict, codes.TurnNone, "the session has no open turn")
	case info.Held:
		return api.Session{}, problem(http.StatusConflict, codes.SessionHeld, "the turn is already running")
	case inspect.IsChild(info.ID):
		return api.Session{}, invalid("/session", "the session belongs to a subagent: resume its parent %s", inspect.ParentOf(info.ID))
	}
	if err := s.store.Requeue(ctx, dueTurn(&info)); err != nil {
		return api.Session{}, err
	}
	return readSession(ctx, s, q, in)
}

// by returns the name of the token for decisions and aborts.
func (t *Token) by() string { return "token " + t.Name }
