package providertest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
)

// ResponsesOptions are the settings of a [Responses] server.
type ResponsesOptions struct {
	// Key is the only key that the server accepts. Defaults to key-of-a-test.
	Key string
	// Whole makes the server answer without a stream, even if the request asks for a stream.
	// By default the request decides.
	Whole bool
}

// Responses is a test server with the Responses protocol of OpenAI. It sends the scripted
// replies. Like the real service, it refuses these requests, with status 400 or 401:
//
//   - The key is missing or wrong.
//   - There are unknown fields, no model or no input, or the token limit is too small.
//   - A call has no output, or an output has no call.
//   - An id is too long or used twice.
//   - Thinking was changed, is not encrypted, or has no item after it.
//   - A tool has an invalid name or schema.
type Responses struct{ *loopback }

var _ Server = (*Responses)(nil)

// NewResponses starts a server. It stops when the test ends.
func NewResponses(t testing.TB, opts *ResponsesOptions) *Responses {
	t.Helper()
	var o ResponsesOptions
	if opts != nil {
		o = *opts
	}
	key := cmp.Or(o.Key, testKey)
	return &Responses{newLoopback(t, key, responsesWire{key, o.Whole, new(atomic.Int64)})}
}

// StartResponses starts a [Responses] server with default options, for [Test].
func StartResponses(t testing.TB) Server {
	t.Helper()
	return NewResponses(t, nil)
}

// URL returns the server's address, with /v1.
func (r *Responses) URL() string { return r.loopback.URL() + "/v1" }

// Extends compares the requests field by field and item by item.
func (r *Responses) Extends(earlier, later Request) error {
	return extendsOpenAI(earlier.Body, later.Body, "input", func(old, extended []json.RawMessage) error { return begins("item", old, extended) })
}

// responsesWire is the Responses protocol.
type responsesWire struct {
	key      string
	unstream bool          // never streams
	items    *atomic.Int64 // the number of items so far, for their ids
}

func (w responsesWire) understand(r *http.Request, request *Request) (stream bool, refused *refused) {
	if err := openAIDoor(r, "/v1/responses", http.MethodPost, w.key); err != nil {
		return false, err.refused()
	}
	stream, err := checkResponses(request)
	if err != nil {
		return false, err.refused()
	}
	return stream && !w.unstream, nil
}

func (w responsesWire) list(r *http.Request) ([]byte, *refused) { return openAIModels(r, w.key) }

func (responsesWire) refusal(r *Refusal) *refused { return openAIRefusal(r) }

// broken returns the event that reports a refusal in a stream.
func (responsesWire) broken(r *refused) frame {
	var body struct {
		Error map[string]any `json:"error"`
	}
	if err := json.Unmarshal(r.body, &body); err != nil {
		panic("providertest: " + err.Error())
	}
	e := body.Error
	code := e["code"]
	if code == nil {
		code = e["type"]
	}
	return newFrame("error", map[string]any{"code": code, "message": e["message"], "param": nil, "sequence_number": 0})
}
