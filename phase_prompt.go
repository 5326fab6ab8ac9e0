package belay

import (
	"errors"
	"strings"

	"github.com/belay-run/belay/hook"
)

// UserPrompt is the input of user.prompt.submit.
type UserPrompt struct{ input[userPrompt] }

type userPrompt struct {
	Text     string  `json:"text" jsonschema:"the user's text"`
	Original *string `json:"original,omitempty" jsonschema:"the text that the user typed, if a hook rewrote it; may be empty"`
	Parts    int     `json:"parts,omitempty" jsonschema:"how many images and files come with the text"`
}

// Text is the user's text. Earlier hooks may have rewritten it.
func (p UserPrompt) Text() string { return p.data().Text }

// Original is the text that the user typed.
func (p UserPrompt) Original() string {
	if d := p.data(); d.Original != nil {
		return *d.Original
	}
	return p.data().Text
}

// Parts is how many images and files come with the text.
func (p UserPrompt) Parts() int { return p.data().Parts }

func (p UserPrompt) rewritten(v PromptVerdict) (UserPrompt, error) {
	if v.Prompt == nil {
		return p, errors.New("the hook's answer has no prompt")
	}
	d := *p.data()
	if d.Original == nil {
		typed := d.Text
		d.Original = &typed
	}
	d.Text = *v.Prompt
	return UserPrompt{newInput(p.scope(), d)}, nil
}

// promptDecision is the decision of a PromptVerdict.
type promptDecision string

// The decisions at user.prompt.submit. The zero value lets the message pass.
const (
	promptPass promptDecision = ""
	promptDeny promptDecision = "deny"
)

// PromptVerdict is the answer at user.prompt.submit. The zero value lets the message pass.
// Decision is "deny" or empty; [DenyPrompt] sets it.
type PromptVerdict struct {
	Decision promptDecision `json:"decision,omitempty" jsonschema:"pass (the default) or deny"`
	Reason   string         `json:"reason,omitempty" jsonschema:"why"`
	// Prompt replaces the user's text, even if Prompt points to an empty string. Nil keeps
	// the text.
	Prompt *string `json:"prompt,omitempty" jsonschema:"the text that replaces the user's, if granted"`
	// Reply is the answer to the user. Belay then does not call the model.
	Reply *string `json:"answer,omitempty" jsonschema:"the answer that replaces the model's, if granted"`
	Aside
}

// DenyPrompt refuses a user message.
func DenyPrompt(reason string) PromptVerdict {
	return PromptVerdict{Decision: promptDeny, Reason: reason}
}

// RewritePrompt replaces the user's text. The subscription needs the capability
// hook.CanRewritePrompt.
func RewritePrompt(text string) PromptVerdict { return PromptVerdict{Prompt: &text} }

// AnswerPrompt answers instead of the model. The subscription needs the capability
// hook.CanAnswer.
func AnswerPrompt(text string) PromptVerdict { return PromptVerdict{Reply: &text} }

func (v PromptVerdict) decision() promptDecision {
	return knownDecision(v.Decision, promptDecisions, promptDeny)
}

// Answer returns the verdict in the form that the hook runtime uses.
func (v PromptVerdict) Answer() *hook.Answer {
	severity := hook.SeverityPass
	var parts []hook.Part
	if v.decision() != promptPass {
		severity = hook.SeverityDeny
		parts = append(parts, hook.Part{Kind: "deny", Needs: hook.CanBlock, Content: v.Reason})
	}
	if v.Prompt != nil {
		parts = append(parts, hook.Part{Kind: "prompt", Needs: hook.CanRewritePrompt, Content: *v.Prompt})
	}
	if v.Reply != nil {
		parts = append(parts, hook.Part{Kind: "answer", Needs: hook.CanAnswer, Content: *v.Reply})
	}
	return checked(v.Decision, promptDecisions, answer(severity, parts, v.Note, v.Context...))
}

func mergePrompt(m *hook.Merging, merged, v PromptVerdict) PromptVerdict {
	if m.Wins {
		merged.Decision, merged.Reason = v.decision(), v.Reason
	}
	if v.Prompt != nil { // rewriters run in order: each gets the text of the one before, so the last text counts
		merged.Prompt = v.Prompt
	}
	if merged.Reply == nil {
		merged.Reply = v.Reply
	}
	merged.Aside = mergeAside(m, merged.Aside, v.Aside)
	return merged
}

// StopAttempt is the input of turn.stop.
type StopAttempt struct{ input[stopAttempt] }

type stopAttempt struct {
	Text          string `json:"text" jsonschema:"the model's last text"`
	Continuations int    `json:"continuations" jsonschema:"how often this turn was made to continue"`
	Subagent      string `json:"subagent,omitempty" jsonschema:"the subagent's name, if this is a turn of a subagent"`
	Run           string `json:"run,omitempty" jsonschema:"the child run's id, if this is a turn of a subagent"`
	soFar
}

// Text is the model's last text.
func (s StopAttempt) Text() string { return s.data().Text }

// Continuations is how many times hooks have made this turn continue.
func (s StopAttempt) Continuations() int { return s.data().Continuations }

// Subagent is the subagent's name. It is empty in a turn of the main agent.
func (s StopAttempt) Subagent() string { return s.data().Subagent }

// Run is the child run's id. It is empty in a turn of the main agent.
func (s StopAttempt) Run() string { return s.data().Run }

// stopDecision is the decision of a StopVerdict.
type stopDecision string

// The decisions at turn.stop. The zero value lets the turn end.
const (
	stopPass     stopDecision = ""
	stopContinue stopDecision = "continue"
)

// StopVerdict is the answer at turn.stop. The zero value lets the turn end. Decision is
// "continue" or empty; [Continue] sets it.
type StopVerdict struct {
	Decision stopDecision `json:"decision,omitempty" jsonschema:"pass (the default) or continue"`
	Reason   string       `json:"reason,omitempty" jsonschema:"what is left to do; the model gets it"`
	Aside
}

// Continue makes the turn continue. The model gets the reason.
func Continue(reason string) StopVerdict {
	return StopVerdict{Decision: stopContinue, Reason: reason}
}

func (v StopVerdict) decision() stopDecision {
	return knownDecision(v.Decision, stopDecisions, stopContinue)
}

// Answer returns the verdict in the form that the hook runtime uses.
func (v StopVerdict) Answer() *hook.Answer {
	if v.decision() == stopPass {
		return answer(hook.SeverityPass, nil, v.Note, v.Context...)
	}
	return checked(v.Decision, stopDecisions, answer(hook.SeverityDeny, []hook.Part{
		{Kind: "continue", Needs: hook.CanBlock, Content: v.Reason},
	}, v.Note, v.Context...))
}

func mergeStop(m *hook.Merging, merged, v StopVerdict) StopVerdict {
	if m.Wins {
		merged.Decision, merged.Reason = v.decision(), strings.TrimSpace(v.Reason)
	}
	merged.Aside = mergeAside(m, merged.Aside, v.Aside)
	return merged
}
