package backtest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/recorded"
)

// replayPrompt asks the hooks of user.prompt.submit about a user message.
func (s *session) replayPrompt(ctx context.Context, m, answer *belay.Message) error {
	s.prompts++
	var reply, byHook bool // instead of an answer of the model
	if answer != nil {
		reply, byHook = recorded.IsReply(answer)
	}
	if m.PreModifiedText == nil && !byHook && !s.asker.phases[belay.UserPromptSubmit.Name()] {
		return nil
	}
	stored := recorded.Commands(m.Text())
	commands := reply && !byHook || stored != m.Text() // its directives may have rewritten the text too
	typed := recorded.Typed(m)
	parts := 0
	for i := range m.Parts {
		if m.Parts[i].Type != belay.PartText {
			parts++
		}
	}
	data, err := json.Marshal(struct {
		Text  string `json:"text"`
		Parts int    `json:"parts,omitempty"`
	}{typed, parts})
	if err != nil {
		return fmt.Errorf("encode the message: %w", err)
	}
	in, err := belay.UserPromptSubmit.DecodeInput(s.scope(m), data)
	if err != nil {
		return err
	}
	snap, err := s.snap(ctx)
	if err != nil {
		return err
	}
	outcome, err := belay.UserPromptSubmit.Dispatch(ctx, snap, in)
	if err != nil {
		return err
	}
	was, now := Outcome{Outcome: Allowed}, Outcome{Outcome: Allowed, By: outcome.By, Reason: outcome.Output.Reason}
	if byHook {
		text := answer.Text()
		was.Outcome, was.Text = Answered, &text
	} else if m.PreModifiedText != nil {
		was.Text = &stored
	}
	switch {
	case outcome.Output.Decision != "":
		now.Outcome = Denied
	case outcome.Output.Reply != nil:
		now.Outcome, now.Text = Answered, outcome.Output.Reply
	case len(outcome.Rewriters) > 0 && outcome.Input.Text() != typed:
		text := outcome.Input.Text()
		now.Text, now.RewrittenBy = &text, outcome.Rewriters
	}
	if !promptDiffers(&was, &now, commands) {
		return nil
	}
	if was.Text != nil && now.Outcome == Allowed && now.Text == nil && s.asker.isSilentAt(belay.UserPromptSubmit.Name()) {
		s.unknown++ // a hook that is not asked may have rewritten or answered it
		return nil
	}
	d := s.difference(KindPrompt, m)
	d.Text, d.Was, d.Now = typed, was, now
	s.differ(d)
	return nil
}

// promptDiffers reports whether the outcomes of a user message differ. commands says that
// the message has slash commands, which may have answered or rewritten it too.
func promptDiffers(was, now *Outcome, commands bool) bool {
	if commands && was.Outcome == Allowed && !now.refused() && now.Text == nil {
		return false
	}
	if was.Outcome != now.Outcome {
		return true
	}
	if was.Text == nil || now.Text == nil {
		return was.Text != now.Text
	}
	return *was.Text != *now.Text
}
