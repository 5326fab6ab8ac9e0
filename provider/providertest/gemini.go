package providertest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// GeminiOptions are the settings of a [Gemini] server.
type GeminiOptions struct {
	// Key is the only key that the server accepts. Defaults to key-of-a-test.
	Key string
	// Whole makes the server answer without a stream, even if the request asks for a stream.
	// By default the request decides.
	Whole bool
}

// Gemini is a test server with the protocol of the Gemini API: generateContent, and
// streamGenerateContent with events. It sends the scripted replies. Like the real service,
// it refuses these requests, with status 400, 403 or 404:
//
//   - The key is missing or wrong.
//   - There are unknown fields, no contents, or empty contents or parts.
//   - A role is neither user nor model.
//   - A call is not directly after a content of the user.
//   - Results are not directly after their calls, or their number is different.
//   - The first call in a step of the current turn has no signature.
//   - A signature was changed or moved to another part.
//   - A file has an unsupported type, or a tool an invalid name or schema.
//
// Models before Gemini 3 need no signatures, and accept no files inside results.
type Gemini struct{ *loopback }

var _ LimitedServer = (*Gemini)(nil)

// NewGemini starts a server. It stops when the test ends.
func NewGemini(t testing.TB, opts *GeminiOptions) *Gemini {
	t.Helper()
	var o GeminiOptions
	if opts != nil {
		o = *opts
	}
	key := cmp.Or(o.Key, testKey)
	return &Gemini{newLoopback(t, key, geminiWire{key, o.Whole})}
}

// StartGemini starts a [Gemini] server with default options, for [Test].
func StartGemini(t testing.TB) Server {
	t.Helper()
	return NewGemini(t, nil)
}

// Cannot reports what the protocol cannot express: malformed input of a call, and tokens
// that are written to a cache.
func (g *Gemini) Cannot(reply Reply) string {
	for _, p := range reply.Parts {
		input := strings.Join(p.Pieces, "")
		if p.Kind == PartCall && input != "" && (input[0] != '{' || !json.Valid([]byte(input))) {
			return "the input of a call is always a complete JSON object"
		}
	}
	if reply.Usage.CacheWrite != 0 {
		return "the protocol does not report cache writes"
	}
	return ""
}

// Extends compares the requests field by field and part by part.
func (g *Gemini) Extends(earlier, later Request) error {
	return geminiExtends(earlier.Body, later.Body)
}

// geminiWire is the protocol of the Gemini API.
type geminiWire struct {
	key      string
	unstream bool
}

// understand decodes a request. It reports whether to stream the answer, or why the server
// refuses the request.
func (w geminiWire) understand(r *http.Request, request *Request) (stream bool, refused *refused) {
	path, ok := strings.CutPrefix(r.URL.Path, "/v1beta/models/")
	model, method, found := strings.Cut(path, ":")
	stream = method == "streamGenerateContent"
	if err := w.door(r, ok && found && model != "" && (stream || method == "generateContent") && r.Method == http.MethodPost); err != nil {
		return false, err.refused()
	}
	switch {
	case stream && r.URL.Query().Get("alt") != "sse":
		return false, geminiInvalid("alt: this server streams nothing but events: want sse")
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		return false, geminiInvalid("content-type: must be application/json")
	}
	checked, err := checkGemini(model, request.Body)
	if err != nil {
		return false, geminiInvalid(err.Error())
	}
	request.System, request.Messages, request.Tools, request.MaxTokens = checked.system, checked.heard, checked.tools, checked.maxTokens
	return stream && !w.unstream, nil
}

// list returns the list of models. One of them is an embedding model.
func (w geminiWire) list(r *http.Request) ([]byte, *refused) {
	if err := w.door(r, r.URL.Path == "/v1beta/models" && r.Method == http.MethodGet); err != nil {
		return nil, err.refused()
	}
	model := func(id, method string) map[string]any {
		return map[string]any{"name": "models/" + id, "displayName": id, "inputTokenLimit": 1000, "supportedGenerationMethods": []string{method}}
	}
	return encodeJSON(map[string]any{"models": []any{
		model("model-of-a-test", "generateContent"), model("another-model", "generateContent"), model("numbers-of-a-test", "embedContent"),
	}}), nil
}

// door checks the key of a request. there is false if the server has no such method and
// path.
func (w geminiWire) door(r *http.Request, there bool) *geminiError {
	key := cmp.Or(r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key"))
	switch {
	case !there:
		return &geminiError{status: http.StatusNotFound, message: "there is nothing at " + r.Method + " " + r.URL.Path}
	case key == "":
		return &geminiError{status: http.StatusForbidden, message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."}
	case key != w.key:
		e := geminiErrors[belay.ModelAuth]
		return &e
	}
	return nil
}

// geminiError is an error in the service's form.
type geminiError struct {
	status  int
	message string
	details []any
}

func geminiInvalid(message string) *refused {
	return (&geminiError{status: http.StatusBadRequest, message: message}).refused()
}

// geminiMalformedError is the error for a malformed request. Its texts are whole sentences,
// like those of the service.
type geminiMalformedError string

func (e geminiMalformedError) Error() string { return string(e) }

func geminiSays(format string, args ...any) error {
	return geminiMalformedError(fmt.Sprintf(format, args...))
}

// geminiStatus are the service's names for HTTP statuses.
var geminiStatus = map[int]string{
	http.StatusBadRequest:          "INVALID_ARGUMENT",
	http.StatusUnauthorized:        "UNAUTHENTICATED",
	http.StatusForbidden:           "PERMISSION_DENIED",
	http.StatusNotFound:            "NOT_FOUND",
	http.StatusTooManyRequests:     "RESOURCE_EXHAUSTED",
	http.StatusInternalServerError: "INTERNAL",
	http.StatusServiceUnavailable:  "UNAVAILABLE",
	http.StatusGatewayTimeout:      "DEADLINE_EXCEEDED",
}

// refused returns the error as an answer.
func (e *geminiError) refused() *refused {
	fields := map[string]any{"code": e.status, "message": e.message, "status": cmp.Or(geminiStatus[e.status], "UNKNOWN")}
	if e.details != nil {
		fields["details"] = e.details
	}
	return &refused{status: e.status, message: e.message, body: encodeJSON(map[string]any{"error": fields})}
}

// geminiErrors are the service's errors by kind.
var geminiErrors = map[belay.ModelErrorKind]geminiError{
	belay.ModelRateLimited: {http.StatusTooManyRequests, "You exceeded your current quota, please check your plan and billing details.", nil},
	belay.ModelOverloaded:  {http.StatusServiceUnavailable, "The model is overloaded. Please try again later.", nil},
	belay.ModelServer:      {http.StatusInternalServerError, "An internal error has occurred. Please retry or report.", nil},
	belay.ModelTooLong:     {http.StatusBadRequest, "The input token count (1048600) exceeds the maximum number of tokens allowed (1048576).", nil},
	belay.ModelInvalid:     {http.StatusBadRequest, "Request contains an invalid argument.", nil},
	belay.ModelAuth: {http.StatusBadRequest, "API key not valid. Please pass a valid API key.", []any{map[string]any{
		"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com",
	}}},
}

// refusal returns a refusal in the service's form. The time to wait is in the details and in
// the header.
func (geminiWire) refusal(r *Refusal) *refused {
	e, ok := geminiErrors[r.Kind]
	if !ok {
		return nil
	}
	e.status, e.message = cmp.Or(r.Status, e.status), cmp.Or(r.Message, e.message)
	if _, err := strconv.ParseUint(r.RetryAfter, 10, 32); err == nil {
		e.details = append(slices.Clip(e.details), map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": r.RetryAfter + "s"})
	}
	return e.refused()
}

// broken returns the event that reports a refusal in a stream.
func (geminiWire) broken(r *refused) frame { return frame{data: r.body} }
