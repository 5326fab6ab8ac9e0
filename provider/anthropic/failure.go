package anthropic

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/belay-run/belay"
)

// streamError is what the service says is wrong, in a body or in a stream.
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

// failed makes the error of an attempt.
func (m *Model) failed(kind belay.ModelErrorKind, err error) *belay.ModelError {
	if text := err.Error(); m.scrub(text) != text {
		err = errors.New(m.scrub(text)) // what it wraps may hold the key
	}
	return &belay.ModelError{Kind: kind, Model: provider + "/" + m.name, Err: err}
}

// inStream makes the error of an attempt that failed after it began well.
func (m *Model) inStream(err error) error {
	var said *streamError
	if !errors.As(err, &said) {
		return m.failed(belay.ModelServer, err)
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
	return m.failed(kind, err)
}

// refused makes the error of a request that was not answered: the answer, if
// there is one, says that it was refused.
func (m *Model) refused(answer *http.Response, err error) error {
	if answer == nil || answer.StatusCode < http.StatusBadRequest {
		return m.lost(err)
	}
	said := saidBy(err)
	failure := m.failed(kindOf(answer.StatusCode, said), said)
	failure.Status = answer.StatusCode
	failure.RetryAfter = retryAfter(answer.Header, time.Now())
	return failure
}

// lost makes the error of a request that got no answer.
func (m *Model) lost(err error) *belay.ModelError {
	if unheard := unheard(err); unheard != nil {
		return m.failed(belay.ModelInvalid, unheard) // waiting does not help
	}
	return m.failed(belay.ModelNetwork, err)
}

// isStrange makes the error of an answer that is none of a model.
func (m *Model) isStrange(answer *http.Response, err error) *belay.ModelError {
	failure := m.failed(belay.ModelInvalid, err)
	failure.Status = answer.StatusCode
	return failure
}

// kindOf returns the kind of a refusal.
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

// invalidOrTooLong tells a request that does not fit the window from others that
// are refused. The service gives both the same type.
func invalidOrTooLong(message string) belay.ModelErrorKind {
	for _, sign := range []string{"prompt is too long", "input is too long", "exceed context limit", "exceeds the context window"} {
		if strings.Contains(strings.ToLower(message), sign) {
			return belay.ModelTooLong
		}
	}
	return belay.ModelInvalid
}

// mostSaid bounds what an error repeats of a body that is not JSON, such as the
// page of a proxy.
const mostSaid = 500

// beginning returns the first characters of what a service said, with a mark if there is
// more.
func beginning(said string) string {
	if len(said) <= mostSaid {
		return strings.ToValidUTF8(said, "")
	}
	return strings.ToValidUTF8(said[:mostSaid], "") + "…"
}

// saidBy returns what the body of a refusal says.
func saidBy(err error) *streamError {
	var refusal *sdk.Error
	if !errors.As(err, &refusal) {
		return &streamError{Message: err.Error()}
	}
	var body struct {
		Error streamError `json:"error"`
	}
	if raw := refusal.RawJSON(); json.Unmarshal([]byte(raw), &body) != nil || body.Error.Message == "" {
		body.Error.Message = beginning(raw)
	}
	if refusal.RequestID != "" {
		body.Error.Message += " (request " + refusal.RequestID + ")"
	}
	return &body.Error
}

// longest is longer than anybody waits, and far from overflowing.
const longest = 24 * time.Hour

// retryAfter reads how long the service asks to wait: milliseconds, seconds, or a date.
func retryAfter(headers http.Header, now time.Time) time.Duration {
	var wait time.Duration
	header := headers.Get("Retry-After")
	if exact, err := strconv.ParseFloat(headers.Get("Retry-After-Ms"), 64); err == nil && exact > 0 {
		wait = time.Duration(min(exact, float64(longest.Milliseconds())) * float64(time.Millisecond))
	} else if seconds, err := strconv.ParseFloat(header, 64); err == nil && seconds > 0 {
		wait = time.Duration(min(seconds, longest.Seconds()) * float64(time.Second))
	} else if date, err := http.ParseTime(header); err == nil {
		wait = date.Sub(now)
	}
	return max(wait, 0)
}
