package belay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/strictjson"
	"github.com/belay-run/belay/policy"
)

// input is embedded in every phase input. It is one pointer to fields that never change.
// So it is cheap to pass and safe to share. T holds the fields with their JSON names.
type input[T any] struct{ p *fields[T] }

type fields[T any] struct {
	// scope never changes, and all inputs of a step share it. It is separate from the
	// fields because records keep the scope, and must not keep the conversation.
	scope *hook.Scope
	data  T
}

func newInput[T any](scope *hook.Scope, data T) input[T] {
	return input[T]{&fields[T]{scope, data}}
}

// data returns the fields. A zero input has zero fields.
func (i input[T]) data() *T {
	if i.p == nil {
		return new(T)
	}
	return &i.p.data
}

func (i input[T]) scope() *hook.Scope {
	if i.p == nil {
		return new(hook.Scope)
	}
	return i.p.scope
}

// Session returns the id of the conversation.
func (i input[T]) Session() string { return i.scope().Session }

// Turn returns the id of the turn: from a user message to the final answer.
func (i input[T]) Turn() string { return i.scope().Turn }

// Step returns the number of the step in the turn: one model call and its tools.
func (i input[T]) Step() int { return i.scope().Step }

// Agent returns the name of the agent.
func (i input[T]) Agent() string { return i.scope().Agent }

// Policy returns the turn policy merged so far. It is empty at turn.pre_policy and at earlier
// phases.
func (i input[T]) Policy() policy.Settings {
	if so, ok := any(i.data()).(turnPart); ok {
		return slices.Clone(so.merged().Policy)
	}
	return nil
}

// Context returns the prompt context merged so far.
func (i input[T]) Context() []ContextEntry {
	if so, ok := any(i.data()).(turnPart); ok {
		entries := slices.Clone(so.merged().Context)
		for i := range entries {
			entries[i].Data = bytes.Clone(entries[i].Data) // a handler must not change the data of other handlers
		}
		return entries
	}
	return nil
}

// soFar has the contributions of earlier phases of the turn. Every input after
// turn.pre_policy embeds it.
type soFar struct {
	Policy  policy.Settings `json:"policy,omitempty" jsonschema:"the turn policy merged so far"`
	Context []ContextEntry  `json:"context,omitempty" jsonschema:"the prompt context merged so far"`
}

func (s *soFar) merged() *soFar { return s }

type turnPart interface{ merged() *soFar }

// MarshalJSON writes the fields in the form that commands, workers and webhooks get. It
// does not write the scope, which is in the envelope.
func (i input[T]) MarshalJSON() ([]byte, error) { return json.Marshal(i.data()) }

// Fields returns the fields as a struct with their JSON names. Use it to make schemas or to
// read single fields by name. Do not change the slices and pointers in it.
func (i input[T]) Fields() any { return *i.data() }

// decodeInput decodes fields strictly: an unknown key is an error.
func decodeInput[T any](scope hook.Scope, data []byte) (input[T], error) {
	var fields T
	if err := strictjson.Decode(data, &fields); err != nil {
		return input[T]{}, err
	}
	return newInput(&scope, fields), nil
}

// rawJSON is JSON text. It is a string so that nobody can change it.
type rawJSON string

// AnyJSON marks the type as any JSON value, for schemas.
func (r rawJSON) AnyJSON() {}

// MarshalJSON writes the text, or null if it is empty.
func (r rawJSON) MarshalJSON() ([]byte, error) {
	if r == "" {
		return []byte("null"), nil
	}
	return []byte(r), nil
}

// UnmarshalJSON stores the text without leading and trailing space.
func (r *rawJSON) UnmarshalJSON(data []byte) error {
	*r = rawJSON(bytes.TrimSpace(data))
	return nil
}

// decode decodes the text into a value. It fails if keys are ambiguous. Otherwise a gate
// could check one key while the tool uses another.
func (r rawJSON) decode(into any) error {
	if r == "" || r == "null" {
		return errors.New("the call has no input")
	}
	text := []byte(r)
	if err := strictjson.CheckKeys(text); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	return nil
}
