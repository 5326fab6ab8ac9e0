package providertest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// AnthropicOptions are the settings of an [Anthropic] server.
type AnthropicOptions struct {
	// Key is the only key that the server accepts. Defaults to key-of-a-test.
	Key string
	// Whole makes the server answer without a stream, even if the request asks for a stream.
	// By default the request decides.
	Whole bool
}

// Anthropic is a test server with the Messages protocol of Anthropic. It sends the scripted
// replies. Like the real service, it refuses these requests, with status 400 or 401:
//
//   - The key or the version is missing or wrong.
//   - There are no messages or no max_tokens, or the first message is not the user's.
//   - There are unknown fields, empty messages, empty text blocks or lone surrogates.
//   - A call has no result directly after it, a result has no call, or an id is used twice.
//   - Thinking was changed, or is last in a message.
//   - There are more than four cache marks.
//   - An image is too large, declares a wrong type, or is part of an error.
//   - A tool has an invalid name or schema.
type Anthropic struct{ *loopback }

var _ LimitedServer = (*Anthropic)(nil)

// NewAnthropic starts a server. It stops when the test ends.
func NewAnthropic(t testing.TB, opts *AnthropicOptions) *Anthropic {
	t.Helper()
	var o AnthropicOptions
	if opts != nil {
		o = *opts
	}
	key := cmp.Or(o.Key, testKey)
	return &Anthropic{newLoopback(t, key, anthropicWire{key, o.Whole})}
}

// Cannot reports a call with malformed input if the server does not stream. Without a
// stream, the input of a call is always valid JSON.
func (a *Anthropic) Cannot(reply Reply) string {
	for _, p := range reply.Parts {
		input := strings.Join(p.Pieces, "")
		if w, ok := a.wire.(anthropicWire); ok && w.unstream && p.Kind == PartCall && input != "" && !json.Valid([]byte(input)) {
			return "without a stream the input of a call is always JSON"
		}
	}
	return ""
}

// StartAnthropic starts an [Anthropic] server with default options, for [Test].
func StartAnthropic(t testing.TB) Server {
	t.Helper()
	return NewAnthropic(t, nil)
}

// Extends compares the requests field by field and block by block. It ignores cache marks.
func (a *Anthropic) Extends(earlier, later Request) error {
	return anthropicExtends(unmarked(earlier.Body), unmarked(later.Body))
}

// anthropicWire is the Messages protocol.
type anthropicWire struct {
	key      string
	unstream bool
}

// understand decodes a request. It reports whether to stream the answer, or why the server
// refuses the request.
func (w anthropicWire) understand(r *http.Request, request *Request) (stream bool, refused *refused) {
	if err := w.door(r, "/v1/messages", http.MethodPost); err != nil {
		return false, err.refused()
	}
	checked, err := checkAnthropic(request.Body, r.Header.Get("Anthropic-Beta"))
	if err != nil {
		return false, anthropicInvalid(err.Error()).refused()
	}
	request.System, request.Messages, request.Tools, request.MaxTokens = checked.system, checked.heard, checked.tools, checked.maxTokens
	return checked.stream && !w.unstream, nil
}

// list returns the list of models.
func (w anthropicWire) list(r *http.Request) ([]byte, *refused) {
	if err := w.door(r, "/v1/models", http.MethodGet); err != nil {
		return nil, err.refused()
	}
	model := func(id string) map[string]any {
		return map[string]any{"id": id, "type": "model", "display_name": id, "created_at": "2026-01-01T00:00:00Z"}
	}
	return encodeJSON(map[string]any{
		"data": []any{model("model-of-a-test"), model("another-model")}, "has_more": false, "first_id": "model-of-a-test", "last_id": "another-model",
	}), nil
}

// door checks the method, the path and the headers of a request.
func (w anthropicWire) door(r *http.Request, path, method string) *anthropicError {
	switch {
	case r.URL.Path != path:
		return &anthropicError{http.StatusNotFound, "not_found_error", "there is nothing at " + r.URL.Path}
	case r.Method != method:
		return &anthropicError{http.StatusMethodNotAllowed, "invalid_request_error", "method not allowed: " + r.Method}
	case r.Header.Get("X-Api-Key") != w.key:
		return &anthropicError{http.StatusUnauthorized, "authentication_error", "invalid x-api-key"}
	case r.Header.Get("Anthropic-Version") != "2023-06-01":
		return anthropicInvalid("anthropic-version: the header is missing or names no version")
	case method == http.MethodPost && r.Header.Get("Content-Type") != "application/json":
		return anthropicInvalid("content-type: must be application/json")
	}
	return nil
}

// anthropicInvalid returns the error for a malformed request.
func anthropicInvalid(message string) *anthropicError {
	return &anthropicError{http.StatusBadRequest, "invalid_request_error", message}
}

// anthropicError is an error in the service's form.
type anthropicError struct {
	status  int
	kind    string
	message string
}

// refused returns the error as an answer.
func (e *anthropicError) refused() *refused {
	body := encodeJSON(map[string]any{"type": "error", "error": map[string]string{"type": e.kind, "message": e.message}})
	return &refused{e.status, e.message, body, map[string]string{"Request-Id": "req_of_a_test"}}
}

// anthropicErrors are the service's errors by kind.
var anthropicErrors = map[belay.ModelErrorKind]anthropicError{
	belay.ModelRateLimited: {http.StatusTooManyRequests, "rate_limit_error", "This request would exceed a rate limit."},
	belay.ModelOverloaded:  {529, "overloaded_error", "Overloaded"},
	belay.ModelServer:      {http.StatusInternalServerError, "api_error", "Internal server error"},
	belay.ModelTooLong:     {http.StatusBadRequest, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"},
	belay.ModelInvalid:     {http.StatusBadRequest, "invalid_request_error", "model: there is no such model"},
	belay.ModelAuth:        {http.StatusUnauthorized, "authentication_error", "invalid x-api-key"},
}

// refusal returns a refusal in the service's form.
func (anthropicWire) refusal(r *Refusal) *refused {
	e, ok := anthropicErrors[r.Kind]
	if !ok {
		return nil
	}
	e.status, e.message = cmp.Or(r.Status, e.status), cmp.Or(r.Message, e.message)
	switch e.status {
	case http.StatusForbidden:
		e.kind = "permission_error"
	case http.StatusNotFound:
		e.kind = "not_found_error"
	case http.StatusRequestEntityTooLarge:
		e.kind = "request_too_large"
	}
	return e.refused()
}

// broken returns the event that reports a refusal in a stream.
func (anthropicWire) broken(r *refused) frame { return frame{name: "error", data: r.body} }

// quoted returns a sorted list of names for a message.
func quoted(names []string) string {
	sorted := slices.Sorted(slices.Values(names))
	for i, name := range sorted {
		sorted[i] = strconv.Quote(name)
	}
	return strings.Join(sorted, ", ")
}
