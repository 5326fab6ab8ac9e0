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

// input is embedded in every phase input. It is one pointer to fields that cannot be
// changed, so it is cheap to pass, safe to share, and needs no defensive copy. T holds the
// fields, with their wire names.
type input[T any] struct{ p *fields[T] }

type fields[T any] struct {
	// scope is shared by the inputs of a step and never changes. It is separate from the
	// fields because records keep it, and records must not keep the conversation.
	scope *hook.Scope
	data  T
}

func newInput[T any](scope *hook.Scope, data T) input[T] {
	return input[T]{&fields[T]{scope, data}}
}

// data returns the fields. The fields of a zero input are zero.
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

// Policy returns the turn policy merged so far. It is empty before the turn has one.
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
			entries[i].Data = bytes.Clone(entries[i].Data) // handlers must not change what others get
		}
		return entries
	}
	return nil
}

// soFar is what the earlier phases of the turn contributed. Every input of a turn after
// turn.pre_policy embeds it.
type soFar struct {
	Policy  policy.Settings `json:"policy,omitempty" jsonschema:"the turn policy merged so far"`
	Context []ContextEntry  `json:"context,omitempty" jsonschema:"the prompt context merged so far"`
}

func (s *soFar) merged() *soFar { return s }

type turnPart interface{ merged() *soFar }

// MarshalJSON writes the fields in the form that commands, workers and webhooks get. The
// scope is not among them: it is in the envelope.
func (i input[T]) MarshalJSON() ([]byte, error) { return json.Marshal(i.data()) }

// Fields returns the fields as a struct whose JSON names are the wire names, for code
// that makes schemas or reads single fields by name. Do not change what it holds.
func (i input[T]) Fields() any { return *i.data() }

// decodeInput decodes fields strictly: an unknown key is an error.
func decodeInput[T any](scope hook.Scope, data []byte) (input[T], error) {
	var fields T
	if err := strictjson.Decode(data, &fields); err != nil {
		return input[T]{}, err
	}
	return newInput(&scope, fields), nil
}

// rawJSON is JSON text held as a string, so that it cannot be changed.
type rawJSON string

// AnyJSON marks the type: its schema allows any JSON value.
func (r rawJSON) AnyJSON() {}

// MarshalJSON writes the text. An empty text is null.
func (r rawJSON) MarshalJSON() ([]byte, error) {
	if r == "" {
		return []byte("null"), nil
	}
	return []byte(r), nil
}

// UnmarshalJSON keeps the text.
func (r *rawJSON) UnmarshalJSON(data []byte) error {
	*r = rawJSON(bytes.TrimSpace(data))
	return nil
}

// decode decodes the text into a value. It refuses an input with ambiguous keys: a gate
// must not check one key while the tool uses another.
func (r rawJSON) decode(into any) error {
	if r == "" || r == "null" {
		return errors.New("input: there is none")
	}
	if err := strictjson.CheckKeys([]byte(r)); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	if err := json.Unmarshal([]byte(r), into); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	return nil
}
