package serve

import (
	"cmp"
	"context"
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
type startedTurn struct {
	api.StartedTurn

	open  string // the id of the turn that was open when this turn was queued, or ""
	token *Token
}

func (t startedTurn) httpStatus() int {
	if t.Result != nil {
		return http.StatusOK
	}
	return http.StatusAccepted
}

func startTurn(ctx context.Context, s *Server, q *request, in *api.StartTurn) (startedTurn, error) {
	if in.Wait == api.WaitEnd { // before the message is stored: a request that is refused stores nothing
		held, done, err := s.hold(ctx, q.token)
		if err != nil {
			return startedTurn{}, err
		}
		defer done()
		ctx = held
	}
	first, err := s.repeated(ctx, q, in)
	if err != nil {
		return startedTurn{}, err
	}
	if first == nil {
		started, err := s.start(ctx, q, in)
		if err != nil {
			return startedTurn{}, err
		}
		first = &started
	}
	if in.Wait == api.WaitEnd {
		_ = http.NewResponseController(q.w).SetWriteDeadline(time.Time{}) // the turn may take long
		first.Result, err = s.follow(ctx, first.followed(nil))
	}
	return *first, err
}

// start queues a turn. It does not wait for the turn.
func (s *Server) start(ctx context.Context, q *request, in *api.StartTurn) (startedTurn, error) {
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
		if q.token.isTenant() {
			err = fmt.Errorf("there is no agent %q", agent)
		}
		return startedTurn{}, invalid("/agent", "%v", err)
	}
	if in.Model != "" {
		if err := s.project.CheckModel(in.Model); err != nil {
			if q.token.isTenant() {
				err = fmt.Errorf("the name of the model %q is invalid, or its provider is unknown", in.Model)
			}
			return startedTurn{}, invalid("/model", "%v", err)
		}
	}
	parts, err := fileParts(in.Files)
	if err != nil {
		return startedTurn{}, err
	}
	turn, err := belay.NewQueuedTurn(info.ID, agent, in.Text, parts...)
	if err != nil {
		return startedTurn{}, invalid("/text", "%v", err)
	}
	turn.Model = in.Model
	if first, err := s.submit(ctx, q, turn, info.Position()); err != nil {
		return startedTurn{}, err
	} else if first != nil {
		return *first, nil
	}
	out := startedTurn{StartedTurn: api.StartedTurn{ID: turn.ID, Session: info.ID, Agent: agent, After: info.Position()}, token: q.token}
	if open := info.State.Turn; open != nil {
		out.open = open.ID
	}
	return out, nil
}

// abortTurn aborts the open turn, whichever worker runs it. If this process runs it, it ends at
// once. Otherwise the request is stored, and the worker that runs the turn reads it within a
// second. A turn that nobody runs is ended by the worker that claims it next. The request is for
// one turn: if this turn ends in the meantime, the request does not abort the next one.
func abortTurn(ctx context.Context, s *Server, q *request, in *api.AbortTurn) (api.Session, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return api.Session{}, err
	}
	by, open, target := q.token.by(), info.State.Turn, in.Turn
	if target == "" && open != nil {
		target = open.ID
	}
	switch {
	case target != "" && s.worker != nil && s.worker.Abort(info.ID, target, fmt.Errorf("aborted by %s", by)):
		return readSession(ctx, s, q, &sessionIn{Session: in.Session})
	case open == nil:
		return api.Session{}, problem(http.StatusConflict, codes.TurnNone, "the session has no open turn")
	case open.ID != target:
		return api.Session{}, problem(http.StatusConflict, codes.TurnNone, "the turn %.80q is not open: the open turn of the session is %q", target, open.ID)
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
	turn.Abort, turn.AbortTurn = by, target
	if err := s.store.Requeue(ctx, turn); err != nil {
		return api.Session{}, err
	}
	return readSession(ctx, s, q, &sessionIn{Session: in.Session})
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

// by returns the name of the token for decisions and aborts. The user who started the process
// has a name, and no secret.
func (t *Token) by() string {
	if t.Hash == "" {
		return t.Name
	}
	return "token " + t.Name
}
