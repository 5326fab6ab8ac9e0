package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/belay-run/belay"
)

// Failures makes the errors of one model.
type Failures struct {
	model string
	// scrub removes the key from a text. It is a function, so that printing a model does
	// not print the key.
	scrub func(string) string
}

// NewFailures returns a maker of errors for a model, named provider/model. The errors never
// contain the key.
func NewFailures(model, key string) Failures {
	return Failures{model, func(text string) string {
		if key == "" {
			return text
		}
		return strings.ReplaceAll(text, key, "[key]")
	}}
}

// New returns the error of an attempt.
func (f *Failures) New(kind belay.ModelErrorKind, err error) *belay.ModelError {
	if text := err.Error(); f.scrub(text) != text {
		err = errors.New(f.scrub(text)) // an error that it wraps may contain the key
	}
	return &belay.ModelError{Kind: kind, Model: f.model, Err: err}
}

// Unusable returns the error of a model that can send no request, because its options are
// wrong or the key is missing.
func (f *Failures) Unusable(err error) *belay.ModelError {
	if _, ok := errors.AsType[*noKeyError](err); ok {
		return f.New(belay.ModelAuth, err)
	}
	return f.New(belay.ModelInvalid, err)
}

// NoAnswer returns the error of a request that got no answer.
func (f *Failures) NoAnswer(err error) *belay.ModelError {
	if absent := notListening(err); absent != nil {
		return f.New(belay.ModelInvalid, absent) // waiting does not help
	}
	return f.New(belay.ModelNetwork, err)
}

// NotAResponse returns the error of an answer that is not a model's response, for the
// reason that [NotAResponse] gave.
func (f *Failures) NotAResponse(answer *http.Response, err error) *belay.ModelError {
	failure := f.New(belay.ModelInvalid, err)
	failure.Status = answer.StatusCode
	return failure
}

// Cut returns the error of an answer that ended too early. The cause may be [io.EOF].
func (f *Failures) Cut(err, cause error) *belay.ModelError {
	switch {
	case errors.Is(cause, ErrTooLong) || errors.Is(cause, ErrEventTooLong):
		return f.New(belay.ModelInvalid, cause) // the next answer would be as long
	case cause != nil && !errors.Is(cause, io.EOF):
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return f.New(belay.ModelNetwork, err)
}

// Unexpected returns the error of data from a service that cannot be decoded.
func Unexpected(what string, err error) error {
	return fmt.Errorf("%s does not have the expected form: %w", what, err)
}

// Beginning returns at most limit bytes of what a service sent, with an ellipsis if there
// is more. It is for bodies that are not the expected JSON, such as the page of a proxy.
func Beginning(text string, limit int) string {
	if len(text) <= limit {
		return strings.ToValidUTF8(text, "")
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// Mentions reports whether a message contains one of some phrases, which are in lower case.
// The case of the message does not matter.
func Mentions(message string, phrases ...string) bool {
	message = strings.ToLower(message)
	for _, phrase := range phrases {
		if strings.Contains(message, phrase) {
			return true
		}
	}
	return false
}
