package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
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
	go func() { // ends with this function
		select {
		case <-s.draining.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	after, err := numberOf(f.after)
	if err != nil {
		return nil, err
	}
	w := &awaited{s: s, session: f.session, queued: f.queued, after: after, turn: f.turn, earlier: make(map[string]bool), result: api.TurnResult{Turn: f.turn}}
	if f.open != "" { // the end of a turn without a message has no id
		w.earlier[f.open] = true
	}
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
		if e.End.Reason != belay.EndParked {
			delete(w.earlier, e.Turn)
		}
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

// isQueued reports whether a turn has not begun.
func (s *Server) isQueued(ctx context.Context, session, turn string) (bool, error) {
	waiting, err := s.store.Queued(ctx, session)
	return slices.ContainsFunc(waiting, func(t belay.QueuedTurn) bool { return t.ID == turn }), err
}
