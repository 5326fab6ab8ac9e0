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
)

type startTurnIn struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	Text    string `json:"text" required:"true" minLength:"1" jsonschema:"the message to the agent"`
	Agent   string `json:"agent,omitempty" jsonschema:"the declared agent that runs the turn; by default the agent of the session, and first the one that the settings describe"`
	Model   string `json:"model,omitempty" jsonschema:"the model that answers, as PROVIDER/NAME; by default the agent's own"`
	Wait    string `json:"wait" enum:"none,end" default:"none" jsonschema:"none: answer when the message is stored. end: answer when the turn has ended or is parked"`
}

// startedTurn is a turn that was queued.
type startedTurn struct {
	// ID is the id of the queued turn. The user's message has it in its field queued, and so
	// has the event turn_start.
	ID      string `json:"id"`
	Session string `json:"session"`
	Agent   string `json:"agent"`
	// After is the position from which the events of the turn can be followed.
	After string `json:"after" jsonschema:"pass it as after to the events of the session, to follow this turn"`
	// Result is set with wait=end. It is absent if the server stops before the turn has ended.
	Result *turnResult `json:"result,omitempty"`
}

func (t startedTurn) httpStatus() int {
	if t.Result != nil {
		return http.StatusOK
	}
	return http.StatusAccepted
}

// turnResult is the result of a turn that has ended or is parked.
type turnResult struct {
	Turn   string          `json:"turn"`
	Reason belay.EndReason `json:"reason" jsonschema:"why the turn ended; empty if a later turn has already begun"`
	Text   string          `json:"text" jsonschema:"the last text of the model"`
	Steps  int             `json:"steps,omitempty"`
	Usage  belay.Usage     `json:"usage"`
	By     string          `json:"by,omitempty" jsonschema:"who blocked the turn"`
	Why    string          `json:"why,omitempty" jsonschema:"what went wrong"`
	// Approvals are the ids of the approvals that a parked turn waits for.
	Approvals []string `json:"approvals,omitempty"`
}

func startTurn(ctx context.Context, s *Server, q *request, in *startTurnIn) (startedTurn, error) {
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
	turn, err := belay.NewQueuedTurn(info.ID, agent, in.Text)
	if err != nil {
		return startedTurn{}, invalid("/text", "%v", err)
	}
	turn.Model = in.Model
	if err := s.store.Submit(ctx, turn); err != nil {
		return startedTurn{}, err
	}
	out := startedTurn{ID: turn.ID, Session: info.ID, Agent: agent, After: fmt.Sprint(info.Last)}
	if in.Wait == "end" {
		_ = http.NewResponseController(q.w).SetWriteDeadline(time.Time{}) // the turn may take long
		out.Result, err = s.await(ctx, info.ID, turn.ID, out.After)
	}
	if out.Result != nil {
		out.Result.Why = q.token.why(out.Result.Reason, out.Result.Why)
	}
	return out, err
}

// await waits for the end of a queued turn. It returns nil if the server stops before.
func (s *Server) await(ctx context.Context, session, queued, after string) (*turnResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with this function
		select {
		case <-s.draining.Done():
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
			return &turnResult{Turn: mine, Text: text, Usage: usage}, nil
		case e.Kind == belay.EventModelResponse && mine != "" && e.Turn == mine && e.Message != nil:
			text = cmp.Or(e.Message.Text(), text)
			if e.Message.Usage != nil {
				usage = addUsage(usage, *e.Message.Usage)
			}
		case e.Kind == belay.EventTurnEnd && (mine != "" && e.Turn == mine || mine == "" && s.isOver(ctx, session, queued)):
			r := &turnResult{Turn: e.Turn, Reason: e.End.Reason, Text: cmp.Or(e.End.Text, text), Steps: e.End.Steps, Usage: e.End.Usage, By: e.End.By, Why: e.End.Why}
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

// queuedTurn is a turn that has not begun.
type queuedTurn struct {
	ID    string    `json:"id"`
	Agent string    `json:"agent"`
	Model string    `json:"model,omitempty"`
	Text  string    `json:"text"`
	Time  time.Time `json:"time"`
}

// queue lists the turns that have not begun.
type queue struct {
	Turns []queuedTurn `json:"turns"`
}

func listQueue(ctx context.Context, s *Server, q *request, in *sessionIn) (queue, error) {
	out := queue{Turns: []queuedTurn{}}
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return out, err
	}
	waiting, err := s.store.Queued(ctx, info.ID)
	for i := range waiting {
		t := &waiting[i]
		out.Turns = append(out.Turns, queuedTurn{t.ID, t.Agent, t.Model, t.Text, t.Time})
	}
	return out, err
}

type abortTurnIn struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	Turn    string `json:"turn,omitempty" maxLength:"128" jsonschema:"the id of the turn, from the event turn_start: another turn is not aborted. By default the turn that is open when the request arrives"`
}

// abortTurn aborts the open turn, whichever worker runs it. If this process runs it, it ends at
// once. Otherwise the request is stored, and the worker that runs the turn reads it within a
// second. A turn that nobody runs is ended by the worker that claims it next. The request is for
// one turn: if this turn ends in the meantime, the request does not abort the next one.
func abortTurn(ctx context.Context, s *Server, q *request, in *abortTurnIn) (inspect.Session, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return inspect.Session{}, err
	}
	by, open, target := q.token.by(), info.State.Turn, in.Turn
	if target == "" && open != nil {
		target = open.ID
	}
	switch {
	case s.worker != nil && s.worker.Abort(info.ID, target, fmt.Errorf("aborted by %s", by)):
		return readSession(ctx, s, q, &sessionIn{Session: in.Session})
	case open == nil:
		return inspect.Session{}, problem(http.StatusConflict, codes.TurnNone, "the session has no open turn")
	case open.ID != target:
		return inspect.Session{}, problem(http.StatusConflict, codes.TurnNone, "the turn %.80q is not open: the open turn of the session is %q", target, open.ID)
	case inspect.IsChild(info.ID):
		return inspect.Session{}, invalid("/session", "the session belongs to a subagent: abort the turn of its parent %s", inspect.ParentOf(info.ID))
	case info.Held:
		load, err := s.store.Load(ctx)
		if err != nil {
			return inspect.Session{}, err
		}
		ours := func(turn belay.DueTurn) bool { return turn.Session == info.ID }
		if !slices.ContainsFunc(load.Holders, func(h belay.HolderLoad) bool { return slices.ContainsFunc(h.Turns, ours) }) {
			return inspect.Session{}, problem(http.StatusConflict, codes.TurnElsewhere, "a process that is not a worker runs this turn, such as belay run: stop it there")
		}
	}
	turn := dueTurn(&info)
	turn.Abort, turn.AbortTurn = by, target
	if err := s.store.Requeue(ctx, turn); err != nil {
		return inspect.Session{}, err
	}
	return readSession(ctx, s, q, &sessionIn{Session: in.Session})
}

// dueTurn returns the open turn of a session, for the queue.
func dueTurn(info *belay.SessionInfo) belay.DueTurn {
	return belay.DueTurn{Session: info.ID, Agent: cmp.Or(info.State.Agent, host.Main), Model: cmp.Or(info.State.Turn.Model, info.State.Model)}
}

func resumeTurn(ctx context.Context, s *Server, q *request, in *sessionIn) (inspect.Session, error) {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return inspect.Session{}, err
	}
	open := info.State.Turn
	switch {
	case open == nil:
		return inspect.Session{}, problem(http.StatusConflict, codes.TurnNone, "the session has no open turn")
	case info.Held:
		return inspect.Session{}, problem(http.StatusConflict, codes.SessionHeld, "the turn is already running")
	case inspect.IsChild(info.ID):
		return inspect.Session{}, invalid("/session", "the session belongs to a subagent: resume its parent %s", inspect.ParentOf(info.ID))
	}
	if err := s.store.Requeue(ctx, dueTurn(&info)); err != nil {
		return inspect.Session{}, err
	}
	return readSession(ctx, s, q, in)
}

// by returns the name of the token for decisions and aborts.
func (t *Token) by() string { return "token " + t.Name }
