package belay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/typeschema"
)

// finalAnswer is the name of the tool that a model calls to give structured output.
const finalAnswer = "final_answer"

// ErrNoAnswer says that a turn ended without structured output.
var ErrNoAnswer = errors.New("belay: the turn ended without structured output")

// Answer runs a turn and returns its final answer as a T (structured output). Belay makes
// the JSON Schema from T, as [NewTool] does, and validates the answer. If the answer is
// invalid, the model gets the errors and may try again. If T is not a struct, the model
// sends an object with the property "answer".
//
// A model that supports structured output gets the schema in [Settings].Format. Any other
// model gives the answer as the input of the tool final_answer. If there are no other
// tools, the request requires a call of final_answer.
//
// If the turn parks, the error is ErrNoAnswer. Continue the turn with [ResumeAnswer], in
// any process that uses the same store.
//
// If the turn ends without an answer, the error is also ErrNoAnswer. The returned turn says
// how it ended. If a directive or a hook replies instead of the model, the error says so,
// unless the reply is JSON that matches the schema: then it is the answer.
func Answer[T any](ctx context.Context, s *Session, text string, parts ...Part) (T, *Turn, error) {
	return typedAnswer[T](ctx, s, func(t *turn) EndReason { return t.user(text, parts) })
}

// ResumeAnswer resumes a turn of [Answer] and returns its final answer. The turn must be
// parked, or its process must have ended during the turn. T must be the type that Answer
// was called with. [Session.Resume] can resume such a turn too: the answer is then in
// [Turn].Answer.
func ResumeAnswer[T any](ctx context.Context, s *Session) (T, *Turn, error) {
	return typedAnswer[T](ctx, s, (*turn).resume)
}

func typedAnswer[T any](ctx context.Context, s *Session, how func(*turn) EndReason) (T, *Turn, error) {
	var value T
	wanted, decode, err := wantedAnswer[T]()
	if err != nil {
		err = fmt.Errorf("answer: %w", err)
		return value, notBegun(err), err
	}
	if s.agent.tools.Load().byName[finalAnswer] != nil {
		err := fmt.Errorf("answer: the agent already has a tool with the reserved name %q: rename that tool", finalAnswer)
		return value, notBegun(err), err
	}
	by := "" // who replied instead of the model
	turn, err := s.take(ctx, func(t *turn) EndReason {
		t.wanted = wanted
		end := how(t)
		by = t.room.said.by
		return end
	})
	if err != nil {
		return value, turn, err
	}
	switch {
	case len(turn.Answer) > 0:
	case by != "":
		text, cut := firstCharacters(turn.Text, 200)
		if cut {
			text += "…"
		}
		return value, turn, fmt.Errorf("%w: %s replied instead of the model: %q; the whole reply is in Turn.Text", ErrNoAnswer, by, text)
	default:
		if turn.Reason == EndTurn {
			return value, turn, fmt.Errorf("%w: the model answered in text and never called %s; the text is in Turn.Text", ErrNoAnswer, finalAnswer)
		}
		return value, turn, fmt.Errorf("%w: its end reason is %s", ErrNoAnswer, turn.Reason)
	}
	if value, err = decode(turn.Answer); err != nil {
		return value, turn, fmt.Errorf("answer: %w", err)
	}
	return value, turn, nil
}

// wanted describes the structured output that a turn must give.
type wanted struct {
	schema json.RawMessage
	input  *typeschema.Type   // nil if only the schema is known
	check  func([]byte) error // nil if only the schema is known
}

// wantedAnswer describes an answer of type T, and returns the function that decodes it.
func wantedAnswer[T any]() (*wanted, func([]byte) (T, error), error) {
	type wrapped struct {
		Answer T `json:"answer" jsonschema:"the answer" required:"true"`
	}
	w := new(wanted)
	plain := false
	if described, err := typeschema.For(reflect.TypeFor[T]()); err == nil && described.Schema.Type == "object" && reflect.TypeFor[T]().Kind() == reflect.Struct {
		w.input, plain = described, true
	} else if w.input, err = typeschema.For(reflect.TypeFor[wrapped]()); err != nil {
		return nil, nil, fmt.Errorf("schema: %w", err)
	}
	decode := func(data []byte) (T, error) {
		var outer wrapped
		var err error
		if plain {
			err = w.input.Decode(data, &outer.Answer)
		} else {
			err = w.input.Decode(data, &outer)
		}
		return outer.Answer, err
	}
	w.check = func(data []byte) error {
		_, err := decode(data)
		return err
	}
	var err error
	if w.schema, err = json.Marshal(w.input.Schema); err != nil {
		return nil, nil, fmt.Errorf("schema: %w", err)
	}
	return w, decode, nil
}

// bindAnswer adds the tool final_answer to a turn that must give structured output.
func (t *turn) bindAnswer() {
	if t.state.Answer == nil {
		return
	}
	if t.wanted == nil { // the caller resumed the turn without knowing the type
		t.wanted = &wanted{schema: t.state.Answer}
	}
	check := t.wanted.check
	tool := &functionTool{
		declaration: ToolDeclaration{Name: finalAnswer, Description: "Gives the final answer and ends the turn. Call it once, when the work is done.", InputSchema: t.state.Answer},
		traits:      ToolTraits{Serial: true}, // the last of several answers is used
		input:       t.wanted.input,
		run: func(_ context.Context, call *Invocation) (Result, error) {
			if check != nil {
				if err := check(call.Input); err != nil {
					return Failed(ClassInvalid, "The input of "+finalAnswer+" cannot be read:\n- "+err.Error()), nil //nolint:nilerr // the result tells
				}
			}
			return Result{Text: "The answer was accepted.", Final: true}, nil
		},
	}
	bound, err := t.agent.bind(t.agent.composed.Load(), tool, "")
	if err != nil { // cannot happen: the schema was made from a type
		t.agent.opts.Logger.WarnContext(t.base, "the tool final_answer could not be added", "session", t.scope.Session, "error", err)
		return
	}
	bound.inScope = true
	t.request.answer = bound
	t.request.extra = append(t.request.extra, bound)
}

// shapeAnswer makes a request ask for structured output. If the model supports it, the
// request has a format. Otherwise the request has the tool final_answer. Such a request
// requires a call of final_answer if there is no other tool, or if the model has answered
// in text before, and if the model supports required calls.
func (t *turn) shapeAnswer(req *Request) {
	if t.request.answer == nil {
		return
	}
	native := *req
	native.Settings.Format = t.state.Answer
	native.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(d ToolDeclaration) bool { return d.Name == finalAnswer })
	if native.Settings.ToolChoice == "" && t.model.checkSettings(&native) == nil {
		*req = native
		return
	}
	if len(req.Tools) == 1 || t.state.Missed > 0 {
		forced := *req
		forced.Settings.ToolChoice = finalAnswer
		if t.model.checkSettings(&forced) == nil {
			*req = forced
		}
	}
}

// faultsOf returns the reasons why a text is not a valid answer.
func (t *turn) faultsOf(text string) []string {
	faults := t.request.answer.validate(json.RawMessage(text))
	if len(faults) == 0 && t.wanted.check != nil {
		if err := t.wanted.check([]byte(text)); err != nil {
			faults = append(faults, err.Error())
		}
	}
	return faults
}

// answered returns the turn's answer, or nil. The answer is the input of the last
// successful call of final_answer. Without such a call, it is the last text, if that text
// is a valid answer.
func (t *turn) answered() json.RawMessage {
	if t.request.answer == nil {
		t.bindAnswer() // a resumed turn that must run only its end phases
	}
	if t.request.answer == nil || t.state.Parked {
		return nil
	}
	accepted := make(map[string]bool)
	for _, m := range slices.Backward(t.session.messages) {
		if m.Turn != t.state.ID {
			break
		}
		for i := range slices.Backward(m.Parts) {
			switch p := &m.Parts[i]; {
			case p.Result != nil && p.Result.Tool == finalAnswer && !p.Result.IsError:
				accepted[p.Result.Call] = true
			case p.Call != nil && accepted[p.Call.ID] && p.Call.Final != nil:
				return p.Call.Final
			case p.Call != nil && accepted[p.Call.ID]:
				return p.Call.Input
			}
		}
	}
	if text := strings.TrimSpace(t.text); strings.HasPrefix(text, "{") && len(t.faultsOf(text)) == 0 {
		return json.RawMessage(text)
	}
	return nil
}

// askForMissing reports whether the turn must continue because the model has not given its
// answer. It then adds a reminder for the model. After a few attempts it reports false.
func (t *turn) askForMissing() bool {
	const tries = 3
	if t.request.answer == nil || t.state.Missed >= tries {
		return false
	}
	text := "Give your final answer by calling the tool " + finalAnswer + ", and not as text."
	if said := strings.TrimSpace(t.text); strings.HasPrefix(said, "{") { // the model wrote JSON
		faults := t.faultsOf(said)
		if len(faults) == 0 {
			return false
		}
		text = "Your answer does not match its schema:\n- " + strings.Join(faults, "\n- ") + "\nGive the whole answer again."
	}
	t.state.Missed++
	t.addReminder(reminderRuntime, "belay", text)
	return true
}
