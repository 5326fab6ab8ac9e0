package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
)

// serverSession is a session of a server. It has the methods of *belay.Session that commands
// use, so that they show the turns of a server as they show their own.
type serverSession struct {
	c     *serverClient
	id    string
	agent string // the declared agent for the turns of this command; empty: the session's own
	model string // likewise
	fresh bool   // this command has created the session for one turn
	// approver asks the person at the terminal. It is nil if there is none.
	approver belay.Approver

	mu    sync.Mutex
	usage belay.Usage
}

var (
	_ chat.Session = (*serverSession)(nil)
	_ chat.Records = (*serverSession)(nil)
)

// openServerSession finds or creates the session of a command.
func (a *app) openServerSession(ctx context.Context, c *serverClient, o *runOptions) (*serverSession, *api.Session, error) {
	r := &serverRecords{c}
	var found api.Session
	var err error
	switch {
	case o.session != "":
		found, err = findRecord(ctx, r, o.session)
	case o.goOn && o.open:
		found, err = findOpenRecord(ctx, r)
	case o.goOn:
		found, err = findRecord(ctx, r, "")
	case o.as != "" && !validID(o.as):
		err = invalidID(o.as)
	default:
		found, err = c.CreateSession(ctx, api.CreateSession{ID: o.as})
	}
	if err != nil {
		return nil, nil, err
	}
	if inspect.IsChild(found.ID) {
		return nil, nil, usage("session %s belongs to a subagent, and only its parent runs turns in it", found.ID)
	}
	return &serverSession{c: c, id: found.ID, usage: found.Usage}, &found, nil
}

// findOpenRecord returns a session with an open turn that no process holds, or else any
// session. The session that changed last wins.
func findOpenRecord(ctx context.Context, r records) (api.Session, error) {
	for s, err := range r.Sessions(ctx, belay.SessionFilter{Open: true}) {
		if err != nil {
			return s, err
		}
		if !s.Held && !inspect.IsChild(s.ID) {
			return s, nil
		}
	}
	return findRecord(ctx, r, "")
}

func (s *serverSession) ID() string { return s.id }

func (s *serverSession) Usage() belay.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// refresh reads the usage of the session. It ignores errors: the usage is only shown.
func (s *serverSession) refresh(ctx context.Context) {
	if now, err := s.c.ReadSession(ctx, s.id); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.usage = now.Usage
	}
}

func (s *serverSession) Messages(ctx context.Context) iter.Seq2[*belay.Message, error] {
	return s.c.Messages(ctx, s.id, 0)
}

// Read yields the messages of the session.
func (s *serverSession) Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
	return s.c.Messages(ctx, session, after)
}

// Sessions yields the session, as far as a chat needs to know it.
func (s *serverSession) Sessions(ctx context.Context, _ belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		now, err := s.c.ReadSession(ctx, s.id)
		info := belay.SessionInfo{ID: now.ID, Last: now.Last, Held: now.Held, State: belay.SessionState{Usage: now.Usage}}
		if now.Turn != nil {
			info.State.Turn = &belay.TurnState{ID: now.Turn.ID, Step: now.Turn.Step, Text: now.Turn.Text, Parked: now.Turn.Parked}
		}
		yield(info, err)
	}
}

// Compact summarizes the conversation, with a turn of the directive /compact. Declared agents have
// no directives.
func (s *serverSession) Compact(ctx context.Context) error {
	now, err := s.c.ReadSession(ctx, s.id)
	switch agent := cmp.Or(s.agent, now.Agent, host.Main); {
	case err != nil:
		return err
	case agent != host.Main:
		return fmt.Errorf("the agent %s summarizes the conversation by itself when it gets too long: /compact works only with the agent %s", agent, host.Main)
	}
	for e, err := range s.Run(ctx, "/compact") {
		if err != nil {
			return err
		}
		if e.Kind == belay.EventTurnEnd && e.Depth == 0 && e.End != nil && e.End.Reason != belay.EndTurn {
			return fmt.Errorf("the conversation was not summarized: %s", cmp.Or(e.End.Why, string(e.End.Reason)))
		}
	}
	return nil
}

// Abandon ends the open turn, and waits for its end.
func (s *serverSession) Abandon(ctx context.Context) (*belay.Turn, error) {
	now, err := s.c.ReadSession(ctx, s.id)
	if err != nil {
		return nil, err
	}
	if now.Turn == nil {
		return nil, fmt.Errorf("session %s: %w", s.id, belay.ErrNoTurn)
	}
	if _, err := s.c.AbortTurn(ctx, s.id, now.Turn.ID); err != nil {
		return nil, err
	}
	for e, err := range s.c.Events(ctx, s.id, now.Position) {
		if _, missed := errors.AsType[*belay.MissedError](err); err != nil && !missed {
			return nil, err
		}
		if err == nil && e.Kind == belay.EventTurnEnd && e.Depth == 0 && e.End != nil && e.End.Reason != belay.EndParked {
			s.refresh(ctx)
			return e.End, nil
		}
	}
	return nil, context.Cause(ctx)
}

// Run starts a turn and yields its events. parts must be empty.
func (s *serverSession) Run(ctx context.Context, text string, _ ...belay.Part) iter.Seq2[belay.Event, error] {
	return func(yield func(belay.Event, error) bool) {
		before, err := s.c.ReadSession(ctx, s.id)
		if err == nil && before.Turn != nil && before.Turn.Parked { // the new turn would wait for it
			err = fmt.Errorf("session %s: %w", s.id, belay.ErrParked)
		}
		if err != nil {
			yield(belay.Event{}, err)
			return
		}
		started, err := s.c.StartTurn(ctx, api.StartTurn{Session: s.id, Text: text, Agent: s.agent, Model: s.model})
		if p, rejected := errors.AsType[*api.Problem](err); rejected && p.Status < http.StatusInternalServerError && s.fresh { // otherwise the turn may be stored
			_ = s.c.DeleteSession(ctx, s.id) // ignore errors: the token may lack the role, and an empty session does no harm
		}
		if err != nil {
			yield(belay.Event{}, err)
			return
		}
		t := &serverTurn{s: s, queued: started.ID, after: before.Last, earlier: make(map[string]bool), yield: yield}
		if before.Turn != nil {
			t.earlier[before.Turn.ID] = true
		}
		t.follow(ctx, started.After)
		s.refresh(context.WithoutCancel(ctx))
	}
}

// Resume continues the open turn and yields its events. First it asks the person at the terminal
// about the approvals that the turn waits for.
func (s *serverSession) Resume(ctx context.Context) iter.Seq2[belay.Event, error] {
	return func(yield func(belay.Event, error) bool) {
		now, err := s.c.ReadSession(ctx, s.id)
		if err == nil && now.Turn == nil {
			err = fmt.Errorf("session %s: %w", s.id, belay.ErrNoTurn)
		}
		if err != nil {
			yield(belay.Event{}, err)
			return
		}
		t := &serverTurn{s: s, yield: yield}
		t.turn.Store(&now.Turn.ID)
		if now.Turn.Parked {
			waits, err := s.waits(ctx)
			if err == nil && len(waits) > 0 {
				end := belay.Event{
					Kind: belay.EventTurnEnd, Time: now.Changed, Session: s.id, Turn: now.Turn.ID, Agent: now.Agent,
					End: &belay.Turn{ID: now.Turn.ID, Reason: belay.EndParked, Steps: now.Turn.Step, Waits: waits},
				}
				var decided bool
				if decided, err = t.ask(ctx, waits); err == nil && !decided {
					yield(end, nil)
					return
				}
			}
			if err != nil {
				yield(belay.Event{}, err)
				return
			}
		}
		if _, err := s.c.ResumeTurn(ctx, s.id); err != nil && !errors.Is(err, belay.ErrHeld) && !errors.Is(err, belay.ErrNoTurn) { // a decision may have resumed it
			yield(belay.Event{}, err)
			return
		}
		t.follow(ctx, now.Position)
		s.refresh(context.WithoutCancel(ctx))
	}
}

// waits returns the approvals that the open turn waits for.
func (s *serverSession) waits(ctx context.Context) ([]belay.Question, error) {
	list, err := s.c.ListApprovals(ctx, api.ListApprovals{Session: s.id, Limit: approvalsPage})
	var waits []belay.Question
	for i := range list.Approvals {
		one := &list.Approvals[i]
		waits = append(waits, belay.Question{Approval: one.Approval, Wait: one.Wait, Input: one.Input, Agent: one.Agent})
	}
	return waits, err
}

// advise returns what the approval question shows about a call. The server checks patterns.
func (s *serverSession) advise(ctx context.Context, q belay.Question) chat.Advice {
	var advice chat.Advice
	id, _, _ := strings.Cut(q.ID, "#")                                          // see serverTurn.askOne
	if one, err := s.c.ReadApproval(ctx, id); err == nil && one.Advice != nil { // the question is clear without it
		advice = shownAdvice(one.Advice)
	}
	advice.Check = func(string) error { return nil }
	return advice
}
