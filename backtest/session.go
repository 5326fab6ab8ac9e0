package backtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/recorded"
)

// session replays one session. One goroutine uses it.
type session struct {
	records Records
	asker   *asker
	info    *belay.SessionInfo
	since   time.Time

	snapshot *hook.Snapshot
	asked    int // dispatches of the snapshot
	// approvals are the approvals of the session by turn and call. They are read when the
	// first call needs them.
	approvals map[[2]string]*belay.Approval
	inquired  map[[2]string]bool // a person has refused a question of the tool itself
	// defaults are the fields that Belay has added to calls, by tool. A tool whose calls were
	// all rewritten has none.
	defaults map[string]map[string]bool
	// prompt is a user message whose answer has not been read yet.
	prompt *belay.Message
	// response is a message with calls whose results have not been read yet.
	response *belay.Message

	prompts, calls, results, unknown int
	differences                      []Difference
	most, omitted                    int // how many differences are kept, and how many were not
	notReplayed                      map[string]int
}

// mostAsked is how many dispatches share a snapshot. The runtime keeps the records of a
// snapshot in memory.
const mostAsked = 512

// snap returns the snapshot for the next dispatch.
func (s *session) snap(ctx context.Context) (*hook.Snapshot, error) {
	if s.asked++; s.asked > mostAsked {
		if err := s.release(ctx); err != nil {
			return nil, err
		}
	}
	if s.snapshot == nil {
		s.snapshot, s.asked = s.asker.runtime.Snapshot(), 1
	}
	return s.snapshot, nil
}

// release counts the runs of the snapshot.
func (s *session) release(ctx context.Context) error {
	if s.snapshot == nil {
		return nil
	}
	snapshot := s.snapshot
	s.snapshot = nil
	return snapshot.Release(context.WithoutCancel(ctx))
}

// replay reads the messages of the session and replays them. Those that a fork has copied are
// replayed in the other session. Here they only show the defaults of tools.
func (s *session) replay(ctx context.Context) error {
	copied := recorded.Copied(s.info.State.ForkedFrom)
	for m, err := range s.records.Read(ctx, s.info.ID, 0) {
		if errors.Is(err, belay.ErrNotFound) {
			break // the session was deleted after it was listed
		}
		if err != nil {
			return fmt.Errorf("read the messages: %w", err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if m.Seq <= copied {
			for _, call := range m.Calls() {
				s.learnDefaults(call)
			}
			continue
		}
		if err := s.message(ctx, m); err != nil {
			return fmt.Errorf("message %d: %w", m.Seq, err)
		}
	}
	return errors.Join(s.endPrompt(ctx, nil), s.endResponse(ctx, nil))
}

// message replays what is complete with this message. A user message is replayed when its
// answer has been read, and a call when its result has been read.
func (s *session) message(ctx context.Context, m *belay.Message) error {
	switch m.Kind {
	case belay.KindUser:
		if err := errors.Join(s.endPrompt(ctx, nil), s.endResponse(ctx, nil)); err != nil {
			return err
		}
		if !m.Time.Before(s.since) && !m.IsSkillInjection {
			s.prompt = m
		}
	case belay.KindAssistant:
		if err := errors.Join(s.endPrompt(ctx, m), s.endResponse(ctx, nil)); err != nil {
			return err
		}
		if !m.Time.Before(s.since) && len(m.Calls()) > 0 {
			s.response = m
		}
	case belay.KindResults:
		return s.endResponse(ctx, m)
	default:
	}
	return nil
}

// endPrompt replays the last user message. answer is the message after it, or nil.
func (s *session) endPrompt(ctx context.Context, answer *belay.Message) error {
	m := s.prompt
	s.prompt = nil
	if m == nil {
		return nil
	}
	return s.replayPrompt(ctx, m, answer)
}

// endResponse replays the calls of the last response. results is the message with their
// results, or nil.
func (s *session) endResponse(ctx context.Context, results *belay.Message) error {
	m := s.response
	s.response = nil
	if m == nil {
		return nil
	}
	byCall := make(map[string]*belay.ResultPart)
	if results != nil {
		for i := range results.Parts {
			if r := results.Parts[i].Result; r != nil {
				byCall[r.Call] = r
			}
		}
	}
	for _, call := range m.Calls() {
		if err := s.replayCall(ctx, m, call, byCall[call.ID]); err != nil {
			return fmt.Errorf("call %s: %w", call.ID, err)
		}
	}
	return nil
}

// approval returns the approval of a call, or nil. inquired reports whether a person has refused
// a question that the tool itself asked.
func (s *session) approval(ctx context.Context, turn, call string) (approval *belay.Approval, inquired bool, err error) {
	if s.approvals == nil {
		s.approvals, s.inquired = make(map[[2]string]*belay.Approval), make(map[[2]string]bool)
		for a, err := range s.records.Approvals(ctx, belay.ApprovalFilter{Session: s.info.ID}) {
			if err != nil {
				return nil, false, fmt.Errorf("read the approvals: %w", err)
			}
			switch k := [2]string{a.Turn, a.Call}; {
			case a.By == belay.AskedByTool:
				s.inquired[k] = s.inquired[k] || a.Decided != nil && !a.Decided.Allow
			case s.approvals[k] == nil:
				s.approvals[k] = &a // later approvals of a call are about changed paths
			}
		}
	}
	k := [2]string{turn, call}
	return s.approvals[k], s.inquired[k], nil
}

// scope returns the scope of a message.
func (s *session) scope(m *belay.Message) hook.Scope {
	return hook.Scope{Session: s.info.ID, Turn: m.Turn, Step: m.Step, Agent: s.info.State.Agent}
}

// differ keeps a difference, without the secrets that it shows.
func (s *session) differ(d Difference) {
	if len(s.differences) >= s.most {
		s.omitted++
		return
	}
	d.redact()
	s.differences = append(s.differences, d)
}

// difference returns a difference about a message, without its outcomes.
func (s *session) difference(kind Kind, m *belay.Message) Difference {
	return Difference{Kind: kind, Session: s.info.ID, Turn: m.Turn, Step: m.Step, Agent: s.info.State.Agent, Message: m.Seq}
}
