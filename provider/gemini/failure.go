package gemini

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	sdk "google.golang.org/genai"

	"github.com/belay-run/belay"
)

// failure is what the service says is wrong, in a body or in a stream.
type failure struct {
	Code    int      `json:"code"`
	Status  string   `json:"status"`
	Message string   `json:"message"`
	Details []detail `json:"details"`
}

// detail is a detail of a failure, as far as it is read.
//
//nolint:tagliatelle // the service's names
type detail struct {
	Type       string `json:"@type"`
	Reason     string `json:"reason"`
	RetryDelay string `json:"retryDelay"`
	Violations []struct {
		QuotaID    string `json:"quotaId"`
		QuotaValue string `json:"quotaValue"`
	} `json:"violations"`
}

// mostSaid bounds what an error repeats of what was answered.
const mostSaid = 800

// beginning returns the first characters of what a service said, with a mark if there is
// more.
func beginning(said string) string {
	if len(said) <= mostSaid {
		return strings.ToValidUTF8(said, "")
	}
	return strings.ToValidUTF8(said[:mostSaid], "") + "…"
}

func (e *failure) Error() string {
	message := strings.TrimSpace(beginning(e.Message))
	if e.Status == "" || message == "" {
		return cmp.Or(message, e.Status, "the service did not say what is wrong")
	}
	return e.Status + ": " + message
}

// isFailure reports whether an error is what the service says.
func isFailure(err error) bool {
	_, ok := errors.AsType[*failure](err)
	return ok
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
	said, ok := errors.AsType[*failure](err)
	if !ok {
		return m.failed(belay.ModelServer, err)
	}
	failed := m.failed(kindOf(cmp.Or(said.Code, http.StatusInternalServerError), said), err)
	failed.RetryAfter = said.retryAfter()
	return failed
}

// refused makes the error of a request that was not answered: the answer, if
// there is one, says that it was refused.
func (m *Model) refused(x *exchange, err error) error {
	answer := x.answer
	switch {
	case !x.sent: // a name that is none
		return m.failed(belay.ModelInvalid, err)
	case answer != nil && answer.StatusCode >= http.StatusMultipleChoices && answer.StatusCode < http.StatusBadRequest:
		return m.isStrange(answer, strange(answer))
	case answer == nil || answer.StatusCode < http.StatusBadRequest:
		return m.lost(err)
	}
	said := saidBy(err)
	failed := m.failed(kindOf(answer.StatusCode, said), said)
	failed.Status = answer.StatusCode
	failed.RetryAfter = max(retryAfter(answer.Header.Get("Retry-After"), time.Now()), said.retryAfter())
	return failed
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
func kindOf(status int, said *failure) belay.ModelErrorKind {
	switch {
	case status == http.StatusTooManyRequests && said.usedUp():
		return belay.ModelInvalid // waiting does not help
	case status == http.StatusTooManyRequests:
		return belay.ModelRateLimited
	case status == 529 || status >= 500 && mentions(said.Message, "overloaded", "high demand"):
		return belay.ModelOverloaded
	case status >= 500 || status == http.StatusRequestTimeout || status == 499: // the last is the service's own cancel
		return belay.ModelServer
	case status == http.StatusUnauthorized || status == http.StatusForbidden || said.aboutKey():
		return belay.ModelAuth
	case status == http.StatusRequestEntityTooLarge || mentions(said.Message, "exceeds the maximum number of tokens", "payload size exceeds", "request is too large"):
		return belay.ModelTooLong
	default:
		return belay.ModelInvalid
	}
}

// usedUp reports whether there is nothing left for today, or at all: the service asks to
// wait for seconds all the same.
func (e *failure) usedUp() bool {
	for _, d := range e.Details {
		for _, v := range d.Violations {
			if strings.Contains(v.QuotaID, "PerDay") || v.QuotaValue == "0" {
				return true
			}
		}
	}
	return mentions(e.Message, "limit: 0,", "credits are depleted", "spending cap")
}

// mentions reports whether a message says one of some things.
func mentions(message string, things ...string) bool {
	message = strings.ToLower(message)
	for _, thing := range things {
		if strings.Contains(message, thing) {
			return true
		}
	}
	return false
}

// aboutKey reports whether the key is refused, which the service says with the
// status of a malformed request.
func (e *failure) aboutKey() bool {
	for _, d := range e.Details {
		if strings.HasPrefix(d.Reason, "API_KEY_") {
			return true
		}
	}
	return mentions(e.Message, "api key not valid", "api key expired")
}

// maxWait is longer than anybody waits, and far from overflowing.
const maxWait = 24 * time.Hour

// retryAfter is how long the failure itself asks to wait.
func (e *failure) retryAfter() time.Duration {
	var wait time.Duration
	for _, d := range e.Details {
		if strings.HasSuffix(d.Type, "google.rpc.RetryInfo") {
			if asked, err := time.ParseDuration(d.RetryDelay); err == nil {
				wait = max(wait, min(asked, maxWait))
			}
		}
	}
	return wait
}

// retryAfter reads how long a header asks to wait: seconds, or a date.
func retryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseFloat(header, 64); err == nil && seconds > 0 {
		wait = time.Duration(min(seconds, maxWait.Seconds()) * float64(time.Second))
	} else if date, err := http.ParseTime(header); err == nil {
		wait = date.Sub(now)
	}
	return max(wait, 0)
}

// saidBy returns what a refusal says.
func saidBy(err error) *failure {
	refusal, ok := errors.AsType[sdk.APIError](err)
	if !ok {
		return &failure{Message: err.Error()}
	}
	said := &failure{Code: refusal.Code, Status: refusal.Status, Message: refusal.Message}
	if inside := parseFailure([]byte(refusal.Message)); inside != nil {
		return inside
	}
	if details, err := json.Marshal(refusal.Details); err == nil {
		_ = json.Unmarshal(details, &said.Details) // what cannot be read is not there
	}
	return said
}

// parseFailure reads a failure that is a body of its own, alone or in a list, as
// the service answers where it does not stream events.
func parseFailure(body []byte) *failure {
	type holder struct {
		Error *failure `json:"error"`
	}
	var one holder
	var list []holder
	if json.Unmarshal(body, &one) == nil {
		return one.Error
	}
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		return list[0].Error
	}
	return nil
}

// strayError returns the failure that stands in a stream without being an event,
// or nil if it is something else.
func strayError(stray []byte) error {
	if said := parseFailure(stray); said != nil {
		return said
	}
	return nil
}
