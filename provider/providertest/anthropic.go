package providertest

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
)

// AnthropicOptions are the settings of an [Anthropic] server.
type AnthropicOptions struct {
	// Key is the only key it takes. Defaults to key-of-a-test.
	Key string
}

// Anthropic is a server that speaks the Messages protocol of Anthropic. Beside
// the scripted replies it refuses, with status 400 or 401, what the service
// refuses: a missing or wrong key or version, fields that are not known, a
// request without messages or max_tokens or whose first message is not the
// user's, messages and text blocks that say nothing, calls without results right
// behind them and results without calls, ids that are used twice, thinking that
// was changed, more than four marks for the cache, and tools with unfit names or
// schemas.
type Anthropic struct {
	t       testing.TB
	key     string
	server  *httptest.Server
	closing chan struct{}
	close   func()

	mu        sync.Mutex
	script    []Reply
	exchanges []*Request
}

var _ Server = (*Anthropic)(nil)

// NewAnthropic starts a server. It stops when the test ends.
func NewAnthropic(t testing.TB, opts *AnthropicOptions) *Anthropic {
	t.Helper()
	var o AnthropicOptions
	if opts != nil {
		o = *opts
	}
	a := &Anthropic{t: t, key: cmp.Or(o.Key, "key-of-a-test"), closing: make(chan struct{})}
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	a.close = sync.OnceFunc(func() {
		close(a.closing)
		a.server.CloseClientConnections()
		a.server.Close()
	})
	t.Cleanup(a.Close)
	return a
}

// StartAnthropic starts an [Anthropic] server with default options, for [Test].
func StartAnthropic(t testing.TB) Server {
	t.Helper()
	return NewAnthropic(t, nil)
}

// URL is the server's address, without a path.
func (a *Anthropic) URL() string { return a.server.URL }

// Key is the only key that the server takes.
func (a *Anthropic) Key() string { return a.key }

// Script adds replies.
func (a *Anthropic) Script(replies ...Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.script = append(a.script, replies...)
}

// Requests returns the requests so far, in order.
func (a *Anthropic) Requests() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	requests := make([]Request, 0, len(a.exchanges))
	for _, r := range a.exchanges {
		requests = append(requests, *r)
	}
	return requests
}

// Close drops all connections and stops the server.
func (a *Anthropic) Close() { a.close() }

// serve answers a request.
func (a *Anthropic) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has left
	}
	done := make(chan struct{})
	defer close(done)
	request := &Request{Header: r.Header, Body: body, Done: done}
	stream, refused := a.understand(r, request)
	if refused != nil {
		request.Refused = refused.message
	}
	reply, ok := a.record(request)
	switch {
	case refused != nil:
		refused.write(w)
	case !ok:
		a.t.Errorf("providertest: request %d has no scripted reply: %.2000s", len(a.Requests()), body)
		(&anthropicError{http.StatusInternalServerError, "api_error", "no reply was scripted"}).write(w)
	case reply.Refusal != nil:
		a.refuse(w, reply.Refusal)
	case stream:
		a.stream(w, r, request, &reply)
	default:
		a.whole(w, &reply)
	}
}

// record keeps a request and takes the reply to it from the script, unless it is
// refused.
func (a *Anthropic) record(request *Request) (Reply, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.exchanges = append(a.exchanges, request)
	if request.Refused != "" || len(a.script) == 0 {
		return Reply{}, false
	}
	reply := a.script[0]
	a.script = a.script[1:]
	return reply, true
}

// understand reads a request, and says whether the answer is to be streamed, or
// why it is refused.
func (a *Anthropic) understand(r *http.Request, request *Request) (stream bool, refused *anthropicError) {
	invalid := func(message string) *anthropicError {
		return &anthropicError{http.StatusBadRequest, "invalid_request_error", message}
	}
	switch {
	case r.URL.Path != "/v1/messages":
		return false, &anthropicError{http.StatusNotFound, "not_found_error", "there is nothing at " + r.URL.Path}
	case r.Method != http.MethodPost:
		return false, &anthropicError{http.StatusMethodNotAllowed, "invalid_request_error", "method not allowed: " + r.Method}
	case r.Header.Get("X-Api-Key") != a.key:
		return false, &anthropicError{http.StatusUnauthorized, "authentication_error", "invalid x-api-key"}
	case r.Header.Get("Anthropic-Version") != "2023-06-01":
		return false, invalid("anthropic-version: the header is missing or names no version")
	case r.Header.Get("Content-Type") != "application/json":
		return false, invalid("content-type: must be application/json")
	}
	checked, err := checkAnthropic(request.Body)
	if err != nil {
		return false, invalid(err.Error())
	}
	request.System, request.Messages, request.Tools, request.MaxTokens = checked.system, checked.heard, checked.tools, checked.maxTokens
	return checked.stream, nil
}

// anthropicError is an error as the service words it.
type anthropicError struct {
	status  int
	kind    string
	message string
}

// body returns the JSON of the error.
func (e *anthropicError) body() []byte {
	return encodeJSON(map[string]any{"type": "error", "error": map[string]string{"type": e.kind, "message": e.message}})
}

// write answers with the error.
func (e *anthropicError) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_of_a_test")
	w.WriteHeader(e.status)
	_, _ = w.Write(e.body()) //nolint:gosec // JSON, on loopback; and a client that has left is no fault
}

// anthropicErrors are the kinds of errors as the service words them.
var anthropicErrors = map[belay.ModelErrorKind]anthropicError{
	belay.ModelRateLimited: {http.StatusTooManyRequests, "rate_limit_error", "This request would exceed a rate limit."},
	belay.ModelOverloaded:  {529, "overloaded_error", "Overloaded"},
	belay.ModelServer:      {http.StatusInternalServerError, "api_error", "Internal server error"},
	belay.ModelTooLong:     {http.StatusBadRequest, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"},
	belay.ModelInvalid:     {http.StatusBadRequest, "invalid_request_error", "model: there is no such model"},
	belay.ModelAuth:        {http.StatusUnauthorized, "authentication_error", "invalid x-api-key"},
}

// refuse answers with a scripted refusal. A network failure drops the connection.
func (a *Anthropic) refuse(w http.ResponseWriter, r *Refusal) {
	e, ok := anthropicErrors[r.Kind]
	if !ok {
		panic(http.ErrAbortHandler)
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
	if r.RetryAfter != "" {
		w.Header().Set("Retry-After", r.RetryAfter)
	}
	e.write(w)
}

// Extends compares the requests field by field and block by block.
func (a *Anthropic) Extends(earlier, later Request) error {
	return anthropicExtends(unmarked(earlier.Body), unmarked(later.Body))
}

// encodeJSON encodes what cannot fail to encode.
func encodeJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("providertest: " + err.Error())
	}
	return data
}

// quoted lists names for a message.
func quoted(names []string) string {
	sorted := slices.Sorted(slices.Values(names))
	for i, name := range sorted {
		sorted[i] = strconv.Quote(name)
	}
	return strings.Join(sorted, ", ")
}
