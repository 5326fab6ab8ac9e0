package gemini

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// failure is an error of the service, from the body of a refusal or from a stream.
type failure struct {
	Code    int      `json:"code"`
	Status  string   `json:"status"`
	Message string   `json:"message"`
	Details []detail `json:"details"`
}

// detail is a detail of a failure, with the fields that this package reads.
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

// mostSaid limits how many bytes an error quotes from the service's message.
const mostSaid = 800

func (e *failure) Error() string {
	message := strings.TrimSpace(wire.Beginning(e.Message, mostSaid))
	if e.Status == "" || message == "" {
		return cmp.Or(message, e.Status, "the service gave no reason")
	}
	return e.Status + ": " + message
}

// isFailure reports whether an error is, or wraps, a *failure.
func isFailure(err error) bool {
	_, ok := errors.AsType[*failure](err)
	return ok
}

// inStream returns the error of an attempt that failed after the answer had begun.
func (m *Model) inStream(err error) error {
	said, ok := errors.AsType[*failure](err)
	if !ok {
		return m.failures.New(belay.ModelServer, err)
	}
	failed := m.failures.New(kindOf(cmp.Or(said.Code, http.StatusInternalServerError), said), err)
	failed.RetryAfter = said.retryAfter()
	return failed
}

// refused returns the error of a request that the service refused or did not answer.
func (m *Model) refused(err error) error {
	answer, ok := errors.AsType[*wire.RefusalError](err)
	if !ok {
		return m.failures.NoAnswer(err)
	}
	said := saidBy(answer)
	failed := m.failures.New(kindOf(answer.Status, said), said)
	failed.Status = answer.Status
	failed.RetryAfter = max(wire.RetryAfter(answer.Header, time.Now()), said.retryAfter())
	return failed
}

func kindOf(status int, said *failure) belay.ModelErrorKind {
	switch {
	case status == http.StatusTooManyRequests && said.usedUp():
		return belay.ModelInvalid // a short wait does not help
	case status == http.StatusTooManyRequests:
		return belay.ModelRateLimited
	case status == 529 || status >= 500 && wire.Mentions(said.Message, "overloaded", "high demand"):
		return belay.ModelOverloaded
	case status >= 500 || status == http.StatusRequestTimeout || status == 499: // 499: the service cancelled the request
		return belay.ModelServer
	case status == http.StatusUnauthorized || status == http.StatusForbidden || said.aboutKey():
		return belay.ModelAuth
	case status == http.StatusRequestEntityTooLarge || wire.Mentions(said.Message, "exceeds the maximum number of tokens", "payload size exceeds", "request is too large"):
		return belay.ModelTooLong
	default:
		return belay.ModelInvalid
	}
}

// usedUp reports whether the quota of the day, or all credit, is used up. Even then the
// service asks the client to wait only a few seconds.
func (e *failure) usedUp() bool {
	for _, d := range e.Details {
		for _, v := range d.Violations {
			if strings.Contains(v.QuotaID, "PerDay") || v.QuotaValue == "0" {
				return true
			}
		}
	}
	return wire.Mentions(e.Message, "limit: 0,", "credits are depleted", "spending cap")
}

// aboutKey reports whether the service rejected the key. The service reports this with
// status 400, like an invalid request.
func (e *failure) aboutKey() bool {
	for _, d := range e.Details {
		if strings.HasPrefix(d.Reason, "API_KEY_") {
			return true
		}
	}
	return wire.Mentions(e.Message, "api key not valid", "api key expired")
}

// retryAfter returns the wait that the failure asks for, or 0.
func (e *failure) retryAfter() time.Duration {
	var wait time.Duration
	for _, d := range e.Details {
		if strings.HasSuffix(d.Type, "google.rpc.RetryInfo") {
			if asked, err := time.ParseDuration(d.RetryDelay); err == nil {
				wait = max(wait, min(asked, wire.MaxWait))
			}
		}
	}
	return wait
}

// saidBy returns the failure that is in the body of a refusal.
func saidBy(answer *wire.RefusalError) *failure {
	said := parseFailure(answer.Body)
	if said == nil {
		return &failure{Code: answer.Status, Message: cmp.Or(string(answer.Body), answer.Text)}
	}
	// The message of a gateway may contain the service's failure as JSON.
	if inside := parseFailure([]byte(said.Message)); inside != nil {
		return inside
	}
	return said
}

// parseFailure decodes a body that is a failure, or a list that begins with one. Answers
// that are not streams can be lists. It returns nil for any other body.
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

// strayError returns the failure in Event.Stray, or nil if the text is something else.
func strayError(stray []byte) error {
	if said := parseFailure(stray); said != nil {
		return said
	}
	return nil
}
