package wire

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/belay-run/belay"
)

// EmptyObject is the input of a call without input.
var EmptyObject = json.RawMessage("{}")

// Object returns the input of a call in a form that services accept: a JSON object without
// lone surrogates. It returns an empty object for an input that is not an object.
func Object(input json.RawMessage) json.RawMessage {
	if !IsObject(input) {
		return EmptyObject
	}
	return ReplaceLoneSurrogates(input)
}

// IsObject reports whether a text is a valid JSON object.
func IsObject(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '{' && json.Valid(text)
}

// Call returns a call with the input that the model wrote. An input that is not a JSON
// object is marked as malformed. An empty input becomes an empty object. But if the
// response was cut off at this call, an empty input is also marked as malformed.
func Call(id, tool string, input []byte, cut bool) *belay.CallPart {
	call := &belay.CallPart{ID: id, Tool: tool, Input: EmptyObject}
	switch {
	case len(input) == 0 && cut:
		call.Malformed = "{"
	case len(input) == 0:
	case IsObject(input):
		call.Input = input
	default:
		call.Malformed = string(input)
	}
	return call
}

// IsBlank reports whether a text is empty or only white space. Services reject such texts.
func IsBlank(text string) bool { return strings.TrimSpace(text) == "" }
