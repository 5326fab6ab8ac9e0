package acp

import (
	"cmp"
	"context"
	"errors"
	"iter"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/acp/internal/jsonrpc"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/toolbox"
)

// prompt reserves the session before the next message is read. So a session/cancel right
// after the prompt cancels it.
func (e *editor) prompt(p *sdk.PromptRequest) work {
	s, err := e.session(p.SessionId)
	if err != nil {
		return fails(err)
	}
	text, parts, err := message(p.Prompt, s.space.Dir)
	if err != nil {
		return fails(err)
	}
	ctx, err := s.begin()
	if err != nil {
		return fails(err)
	}
	return func(withdrawn context.Context) (any, error) {
		defer s.end()
		defer context.AfterFunc(withdrawn, func() { s.interrupt(errCancelled) })() // $/cancel_request
		reason, err := s.run(ctx, text, parts)
		if err != nil && ctx.Err() != nil { // the protocol wants no error for a prompt that was cancelled
			reason, err = s.failed(ctx, err)
		}
		if err != nil {
			return nil, told(err)
		}
		return &sdk.PromptResponse{StopReason: reason, UserMessageId: p.MessageId}, nil
	}
}

// cancel cancels the prompt that runs. It does nothing if none does.
func (e *editor) cancel(p *sdk.CancelNotification) work {
	if s, err := e.session(p.SessionId); err == nil {
		s.interrupt(errCancelled)
	}
	return func(context.Context) (any, error) { return nil, nil } //nolint:nilnil // it is a notification
}

// run runs the turn of a prompt. If the last turn is still parked, that turn comes first.
func (s *session) run(ctx context.Context, text string, parts []belay.Part) (sdk.StopReason, error) {
	s.tellKept()
	info, _, err := inspect.FindSession(context.WithoutCancel(ctx), s.space.Store, s.id)
	if err != nil {
		return "", err
	}
	if open := info.State.Turn; open != nil && open.Parked {
		reason, over, err := s.goOn(ctx, text)
		if over || err != nil {
			return reason, err
		}
	}
	s.giveTitle(&info, text)
	return s.finish(ctx, s.belay.Run(ctx, text, parts...))
}

// goOn continues the parked turn of the session. If the turn waits for an answer in words, the
// prompt is that answer. over is true if the prompt is done with.
func (s *session) goOn(ctx context.Context, text string) (reason sdk.StopReason, over bool, err error) {
	waits, err := s.waits(ctx)
	if err != nil {
		return "", false, err
	}
	if len(waits) == 0 && !s.isDecided(ctx) {
		return "", false, nil // the approvals have expired: the next turn ends the parked one
	}
	for i := range waits {
		question, ok := toolbox.ReadQuestion(waits[i])
		if !ok || len(question.Options) > 0 {
			continue
		}
		d, err := toolbox.Answer(waits[i], s.person(), text)
		if err != nil {
			s.say(err.Error())
			return sdk.StopReasonEndTurn, true, nil
		}
		if err := s.decide(ctx, &waits[i], d); err != nil {
			return "", false, err
		}
		over = true
		break
	}
	s.note("Continuing the turn that waited.")
	reason, parked, err := s.settle(ctx, &belay.Turn{Reason: belay.EndParked, Waits: nil}, true)
	return reason, over || parked || reason == sdk.StopReasonCancelled, err
}

// isDecided reports whether the parked turn has no open question because all of them were
// decided, and not because they have expired.
func (s *session) isDecided(ctx context.Context) bool {
	for a, err := range s.space.Store.Approvals(ctx, belay.ApprovalFilter{Session: s.id, Pending: true}) {
		if err != nil || inspect.IsExpired(&a, s.e.now()) {
			return false
		}
	}
	return true
}

// waits returns what the parked turn waits for.
func (s *session) waits(ctx context.Context) ([]belay.Question, error) {
	var all []belay.Question
	for q, err := range belay.Questions(ctx, s.space.Store, belay.ApprovalFilter{Session: s.id}) {
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return all, nil
}

// finish runs a turn, and asks the user as often as it parks.
func (s *session) finish(ctx context.Context, stream iter.Seq2[belay.Event, error]) (sdk.StopReason, error) {
	end, err := s.relay(ctx, stream)
	if err != nil {
		return s.failed(ctx, err)
	}
	reason, _, err := s.settle(ctx, end, false)
	return reason, err
}

// settle asks the user about a parked turn and resumes it, until it has ended. parked is true
// if it still waits for a decision.
func (s *session) settle(ctx context.Context, end *belay.Turn, anew bool) (reason sdk.StopReason, parked bool, err error) {
	for end.Reason == belay.EndParked {
		waits := end.Waits
		if anew {
			if waits, err = s.waits(ctx); err != nil {
				return "", true, err
			}
		}
		anew = true
		decided, err := s.ask(ctx, waits)
		switch {
		case ctx.Err() != nil:
			reason, err := s.failed(ctx, context.Cause(ctx))
			return reason, true, err
		case err != nil:
			return "", true, err
		case !decided:
			return sdk.StopReasonEndTurn, true, nil
		}
		if end, err = s.relay(ctx, s.belay.Resume(ctx)); err != nil {
			reason, err = s.failed(ctx, err)
			return reason, false, err
		}
	}
	reason, err = s.ended(end)
	return reason, false, err
}

// failed returns the response for a turn that ended with an error. A turn that the user
// cancelled while it waited is abandoned. If the editor has left, the turn stays parked.
func (s *session) failed(ctx context.Context, err error) (sdk.StopReason, error) {
	if ctx.Err() == nil {
		return "", err
	}
	if errors.Is(context.Cause(ctx), errCancelled) {
		if err := s.abandon(context.WithoutCancel(ctx)); err != nil {
			return "", err
		}
	}
	return sdk.StopReasonCancelled, nil
}

// abandon ends the open turn of the session, if there is one.
func (s *session) abandon(ctx context.Context) error {
	waits, err := s.waits(ctx)
	if err != nil {
		return err
	}
	if _, err := s.belay.Abandon(ctx); err != nil && !errors.Is(err, belay.ErrNoTurn) {
		return err
	}
	for i := range waits {
		r := belay.Failed(belay.ClassAborted, "The call was cancelled.")
		s.update(sdk.SessionUpdate{ToolCallUpdate: s.endCall(callID(waits[i].Run, waits[i].Call), &r)})
	}
	return nil
}

// ended returns the response for a turn that has ended, and tells the user about an unusual
// end.
func (s *session) ended(end *belay.Turn) (sdk.StopReason, error) {
	switch end.Reason {
	case belay.EndTurn:
		return sdk.StopReasonEndTurn, nil
	case belay.EndAborted:
		return sdk.StopReasonCancelled, nil
	case belay.EndRefused:
		return sdk.StopReasonRefusal, nil
	case belay.EndMaxSteps:
		return sdk.StopReasonMaxTurnRequests, nil
	case belay.EndError:
		return "", jsonrpc.Errorf(jsonrpc.CodeInternal, "%s", cmp.Or(end.Why, "the turn failed"))
	case belay.EndBlocked:
		s.say("Blocked by " + cmp.Or(end.By, "a hook") + ": " + end.Why)
	case belay.EndBudget:
		s.say("The budget is used up: " + end.Why)
	case belay.EndStuck:
		s.say("The turn was ended, because the model repeated the same calls: " + end.Why)
	case belay.EndParked:
	}
	return sdk.StopReasonEndTurn, nil
}
