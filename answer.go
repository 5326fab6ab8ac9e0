package belay

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/belay-run/belay/internal/typeschema"
)

// finalAnswer is the tool with which a model gives structured output.
const finalAnswer = "final_answer"

// ErrNoAnswer says that a turn ended without the structured output it was asked for.
var ErrNoAnswer = errors.New("belay: the turn ended without the answer that was asked for")

// Answer runs a turn and returns its final answer as a T (structured output). The schema is
// made from T as for [NewTool], and the answer is validated against it: if it is invalid,
// the model gets the errors and may try again. It works with every model that can call
// tools: the answer is the input of a tool, final_answer. If T is not a struct, it is the
// property "answer" of that input. If the turn parks, resuming it gives no answer.
//
// The error is ErrNoAnswer if the turn ended in another way. The returned turn says how.
func Answer[T any](ctx context.Context, s *Session, text string, parts ...Part) (T, *Turn, error) {
	type wrapped struct {
		Answer T `json:"answer" jsonschema:"the answer" required:"true"`
	}
	var answer T
	given := false
	take := func(value T) Result {
		answer, given = value, true
		return Result{Text: "The answer was accepted.", Final: true}
	}
	const description = "Gives the final answer. Call it once, when the work is done; it ends the turn."
	serial := &ToolTraits{Serial: true} // the last of several answers is used
	var tool Tool
	var err error
	if described, derr := typeschema.For(reflect.TypeFor[T]()); derr == nil && described.Schema.Type == "object" {
		tool, err = newTool(finalAnswer, description, func(_ context.Context, in T) (Result, error) { return take(in), nil }, serial)
	} else {
		tool, err = newTool(finalAnswer, description, func(_ context.Context, in wrapped) (Result, error) { return take(in.Answer), nil }, serial)
	}
	if err != nil {
		return answer, nil, fmt.Errorf("answer: %w", err)
	}
	if s.agent.tools.Load().byName[finalAnswer] != nil {
		return answer, nil, fmt.Errorf("answer: the agent has a tool of its own called %q", finalAnswer)
	}
	turn, err := s.take(ctx, func(t *turn) EndReason {
		bound, err := t.agent.bind(t.agent.composed.Load(), tool, "")
		if err != nil {
			return t.fail(err)
		}
		bound.inScope = true
		t.request.extra = append(t.request.extra, bound)
		t.seeTools()
		t.missing = func() string {
			if given {
				return ""
			}
			return "Give your final answer by calling the tool " + finalAnswer + ", and not as text."
		}
		return t.user(text, parts)
	})
	if err == nil && !given {
		err = fmt.Errorf("%w: it ended %s", ErrNoAnswer, turn.Reason)
	}
	return answer, turn, err
}

// askForMissing makes the turn continue if the model has not given the answer it must
// give. It reports false after a few attempts.
func (t *turn) askForMissing() bool {
	const tries = 3
	if t.missing == nil || t.state.Missed >= tries {
		return false
	}
	text := t.missing()
	if text == "" {
		return false
	}
	t.state.Missed++
	t.addReminder(reminderRuntime, "belay", text)
	return true
}
