package acp

import (
	"context"
	"errors"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/acp/internal/jsonrpc"
)

// mostSessions is how many sessions one editor may have open.
const mostSessions = 64

// session is an open session of an editor.
type session struct {
	e     *editor
	id    string
	space *Workspace
	belay *belay.Session
	calls calls

	mu      sync.Mutex
	stop    context.CancelCauseFunc // ends the prompt that runs; nil if none does
	closed  bool
	notices []string // what the user was not told yet
	mode    string   // the mode that the editor knows
	titled  bool     // the editor has a title for the session
}

// session finds an open session.
func (e *editor) session(id sdk.SessionId) (*session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.sessions[string(id)]; s != nil {
		return s, nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeNotFound, "there is no open session %q: open it with session/new or session/load", id)
}

// errBusy is the error of a second prompt.
var errBusy = jsonrpc.Errorf(jsonrpc.CodeRequest, "a prompt is running in this session: wait for its response, or cancel it")

// begin reserves the session for a prompt. The returned context ends when the prompt is
// cancelled.
func (s *session) begin() (ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, jsonrpc.Errorf(jsonrpc.CodeNotFound, "the session %q was closed", s.id)
	case s.stop != nil:
		return nil, errBusy
	}
	ctx, s.stop = context.WithCancelCause(context.Background())
	return ctx, nil
}

// end ends the reservation.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop(nil)
		s.stop = nil
	}
}

// errCancelled is why a prompt ends that the user cancelled. errLeft is why a prompt ends when
// the editor has left.
var (
	errCancelled = errors.New("the user cancelled the turn in the editor")
	errLeft      = errors.New("the editor has left")
)

// interrupt ends the prompt that runs, if there is one.
func (s *session) interrupt(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop(why)
	}
}

// close ends the prompt that runs, and frees the workspace.
func (s *session) close(ctx context.Context, why error) error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	s.interrupt(why)
	if already {
		return nil
	}
	err := s.belay.Close(ctx) // waits for the turn
	if s.space.Close != nil {
		err = errors.Join(err, s.space.Close())
	}
	return err
}

// update sends something about the session to the editor. It does nothing if the editor has
// left: the turn then ends by itself.
func (s *session) update(u sdk.SessionUpdate) {
	if err := s.e.conn.Notify(sdk.ClientMethodSessionUpdate, &sdk.SessionNotification{SessionId: sdk.SessionId(s.id), Update: u}); err != nil {
		s.e.server.opts.Logger.Debug("an update was not sent", "session", s.id, "error", err)
	}
}

// say shows a text of Belay, not of the model, as a message of its own.
func (s *session) say(text string) { s.update(sdk.UpdateAgentMessageText(text)) }

// note shows a remark between the thoughts of the model.
func (s *session) note(text string) { s.update(sdk.UpdateAgentThoughtText(text + "\n")) }

// tell keeps a message for the user until the next prompt.
func (s *session) tell(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices = append(s.notices, text)
}

// tellKept shows the messages that were kept.
func (s *session) tellKept() {
	s.mu.Lock()
	notices := s.notices
	s.notices = nil
	s.mu.Unlock()
	for _, text := range notices {
		s.note(text)
	}
}

func (e *editor) closeSession(p *sdk.CloseSessionRequest) work {
	s, err := e.session(p.SessionId)
	if err != nil {
		return fails(err)
	}
	e.mu.Lock()
	delete(e.sessions, s.id)
	e.mu.Unlock()
	s.interrupt(errCancelled)
	return func(ctx context.Context) (any, error) {
		return &sdk.CloseSessionResponse{}, s.close(ctx, errCancelled)
	}
}

// leave ends all prompts, because the editor has closed its stream.
func (e *editor) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gone = true
	for _, s := range e.sessions {
		s.interrupt(errLeft)
	}
}

// closeAll closes all sessions.
func (e *editor) closeAll(ctx context.Context) {
	e.mu.Lock()
	all := e.sessions
	e.sessions = nil
	e.mu.Unlock()
	for _, s := range all {
		if err := s.close(ctx, errLeft); err != nil {
			e.server.opts.Logger.WarnContext(ctx, "closing a session failed", "session", s.id, "error", err)
		}
	}
}
