package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Codes of errors. The last two belong to the Agent Client Protocol.
const (
	CodeParse        = -32700
	CodeRequest      = -32600
	CodeMethod       = -32601
	CodeParams       = -32602
	CodeInternal     = -32603
	CodeCancelled    = -32800
	CodeAuthRequired = -32000
	CodeNotFound     = -32002
)

// Error is the error of a response.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Errorf returns an error with a code.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Request is a request or a notification of the other side.
type Request struct {
	Method string
	Params json.RawMessage
	// Notification is true if the other side expects no response.
	Notification bool
}

// Decode reads the parameters.
func (r *Request) Decode(into any) error {
	params := r.Params
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if err := json.Unmarshal(params, into); err != nil {
		return Errorf(CodeParams, "%s: the parameters cannot be read: %v", r.Method, err)
	}
	return nil
}

// Reply is a result with work that is done after the response was sent.
type Reply struct {
	Result any
	After  func()
}

// message is any message. A request has a method and an id, a notification only a method, and
// a response only an id.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// noID is the id of a response to a message whose id is unknown.
var noID = json.RawMessage("null")

// parse reads a line. The error is for the response.
func parse(line []byte) (*message, *Error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		if json.Valid(line) {
			return &message{ID: idIn(line)}, Errorf(CodeRequest, "the message is not a JSON-RPC 2.0 message: %v", err)
		}
		return &message{ID: noID}, Errorf(CodeParse, "the message is not JSON: %v", err)
	}
	if bytes.Equal(m.ID, noID) {
		m.ID = nil
	}
	switch {
	case m.ID != nil && m.ID[0] != '"' && m.ID[0] != '-' && (m.ID[0] < '0' || m.ID[0] > '9'):
		return &message{ID: noID}, Errorf(CodeRequest, "the id of a message must be a string or a number")
	case m.Method == "" && m.ID == nil:
		return &message{ID: noID}, Errorf(CodeRequest, "the message has neither a method nor an id")
	}
	return &m, nil
}

// idIn returns the id in the beginning of a message, or null. It is for messages that cannot
// be read as a whole.
func idIn(line []byte) json.RawMessage {
	tokens := json.NewDecoder(bytes.NewReader(line))
	if open, err := tokens.Token(); err != nil || open != json.Delim('{') {
		return noID
	}
	for tokens.More() {
		key, err := tokens.Token()
		if err != nil {
			return noID
		}
		var value json.RawMessage
		if err := tokens.Decode(&value); err != nil {
			return noID
		}
		if key == "id" && len(value) > 0 && (value[0] == '"' || value[0] == '-' || value[0] >= '0' && value[0] <= '9') {
			return value
		}
	}
	return noID
}
