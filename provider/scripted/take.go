package scripted

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/belay-run/belay"
)

// A take is a step that is prepared for playing. It never changes, so requests can share it.
type take struct {
	step   Step
	where  string // position in the script, for errors
	err    error  // why the step cannot be played
	parts  []belay.Part
	calls  []belay.CallPart // the values of Part.Call in parts, in order
	stop   belay.StopReason
	out    int // estimated tokens of the answer
	chunks []belay.Chunk
}

// ready prepares a step. The caller has set its pace.
func ready(step Step, where string, ids *ids) *take {
	t := &take{step: step, where: where, stop: step.Stop}
	if step.at != "" {
		t.where = step.at + ": " + where
	}
	if step.Compute != nil {
		return t
	}
	said := len(step.Thinking) + len(step.Text)
	if step.Thinking != "" {
		t.parts = append(t.parts, belay.Part{Type: belay.PartThinking, Text: step.Thinking})
	}
	if step.Text != "" {
		t.parts = append(t.parts, belay.Text(step.Text))
	}
	t.calls = make([]belay.CallPart, len(step.Calls))
	for i, call := range step.Calls {
		input, err := inputText(call.Input)
		if err != nil {
			t.err = fmt.Errorf("call %d (%s): the input is not JSON: %w", i+1, call.Tool, err)
		}
		said += len(call.Tool) + len(input)
		c := &t.calls[i]
		c.ID, c.Tool, c.Input = cmp.Or(call.ID, ids.next()), call.Tool, json.RawMessage("{}")
		if isObject(input) {
			c.Input = slices.Clip(json.RawMessage(input))
		} else {
			c.Malformed = string(input)
		}
		t.parts = append(t.parts, belay.Part{Type: belay.PartCall, Call: c})
	}
	if t.stop == "" {
		t.stop = belay.StopEnd
		if len(step.Calls) > 0 {
			t.stop = belay.StopToolUse
		}
	}
	t.out = tokens(said)
	t.chunks = chunksOf(t.parts, step.Pace.Chunk)
	return t
}

// response returns a copy of the response. The caller may change everything in the copy.
func (t *take) response(model string, usage belay.Usage) *belay.Response {
	parts := slices.Clone(t.parts)
	if len(t.calls) > 0 {
		calls := slices.Clone(t.calls)
		first := len(parts) - len(calls) // calls are the last parts
		for i := range calls {
			parts[first+i].Call = &calls[i]
		}
	}
	return &belay.Response{Parts: parts, StopReason: t.stop, Usage: usage, Model: model}
}

// inputText returns the input of a call as JSON text.
func inputText(input any) ([]byte, error) {
	switch input := input.(type) {
	case nil:
		return []byte("{}"), nil
	case string:
		return []byte(input), nil
	case []byte:
		return slices.Clone(input), nil
	case json.RawMessage:
		return slices.Clone(input), nil
	default:
		return json.Marshal(input)
	}
}

func isObject(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) && json.Valid(text)
}

// ids generates the missing ids of calls.
type ids struct {
	prefix string
	n      int
}

func (i *ids) next() string {
	i.n++
	return i.prefix + strconv.Itoa(i.n)
}

func (f *Fault) modelError(model string) error {
	e := &belay.ModelError{Kind: cmp.Or(f.Kind, belay.ModelServer), Model: model, Status: f.Status, RetryAfter: f.RetryAfter}
	if f.Message != "" {
		e.Err = errors.New(f.Message)
	}
	return e
}
