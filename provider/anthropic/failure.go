package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// streamError is an error of the service, from the body of a refusal or from a stream.
type streamError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func (e *streamError) Error() string {
	if e.Type == "" {
		return e.Message
	}
	return e.Type + ": " + e.Message
}

// strayError returns the error in text that is not an event, or nil if the text is something
// else.
func strayError(text []byte) error {
	var body struct {
		Error *streamError `json:"error"`
	}
	if json.Unmarshal(text, &body) == nil && body.Error != nil {
		return body.Error
	}
	return nil
}

// inStream returns the error of an attempt that failed after the answer had begun.
func (m *Model) inStream(err error) error {
	var said *streamError
	if !errors.As(err, &said) {
		return m.failures.New(belay.ModelServer, err)
	}
	kind := belay.ModelServer
	switch said.Type {
	case "overloaded_error":
		kind = belay.ModelOverloaded
	case "rate_limit_error":
		kind = belay.ModelRateLimited
	case "authentication_error", "permission_error":
		kind = belay.ModelAuth
	case "request_too_large":
		kind = belay.ModelTooLong
	case "invalid_request_error", "not_found_error", "billing_error":
		kind = invalidOrTooLong(said.Message)
	}
	return m.failures.New(kind, err)
}

// refused returns the error of a request that the service refused or did not answer.
func (m *Model) refused(err error) error {
	answer, ok := errors.AsType[*wire.RefusalError](err)
	if !ok {
		return m.failures.NoAnswer(err)
	}
	said := saidBy(answer)
	failure := m.failures.New(kindOf(answer.Status, said), said)
	failure.Status = answer.Status
	failure.RetryAfter = wire.RetryAfter(answer.Header, time.Now())
	return failure
}

func kindOf(status int, said *streamError) belay.ModelErrorKind {
	switch {
	case status == http.StatusTooManyRequests:
		return belay.ModelRateLimited
	case status == 529 || status >= 500 && said.Type == "overloaded_error":
		return belay.ModelOverloaded
	case status >= 500 || status == http.StatusRequestTimeout:
		return belay.ModelServer
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return belay.ModelAuth
	case status == http.StatusRequestEntityTooLarge:
		return belay.ModelTooLong
	default:
		return invalidOrTooLong(said.Message)
	}
}

// invalidOrTooLong distinguishes a request that exceeds the window from other invalid
// requests. The service reports both as invalid_request_error.
func invalidOrTooLong(message string) belay.ModelErrorKind {
	if wire.Mentions(message, "prompt is too long", "input is too long", "exceed context limit", "exceeds the context window") {
		return belay.ModelTooLong
	}
	return belay.ModelInvalid
}

// mostSaid limits how many bytes an error quotes from a body that is not JSON.
const mostSaid = 500

// saidBy returns the error that is in the body of a refusal.
func saidBy(answer *wire.RefusalError) *streamError {
	var body struct {
		Error streamError `json:"error"`
	}
	if json.Unmarshal(answer.Body, &body) != nil || body.Error.Message == "" {
		body.Error.Message = cmp.Or(wire.Beginning(string(answer.Body), mostSaid), answer.Text)
	}
	if id := answer.Header.Get("Request-Id"); id != "" {
		body.Error.Message += " (request " + id + ")"
	}
	return &body.Error
}
