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
	// scrub replaces the key in a text. The key is in a closure, so that printing a model
	// does not print the key.
	scrub func(string) string
}

// NewFailures returns the Failures of a model. The name has the form provider/model. The
// errors never contain the key.
func NewFailures(model, key string) Failures {
	return Failures{model, func(text string) string {
		if key == "" {
			return text
		}
		return strings.ReplaceAll(text, key, "[key]")
	}}
}

// New returns the error of a failed attempt to call the model.
func (f *Failures) New(kind belay.ModelErrorKind, err error) *belay.ModelError {
	if text := err.Error(); f.scrub(text) != text {
		err = errors.New(f.scrub(text)) // drop the chain, because a wrapped error may contain the key
	}
	return &belay.ModelError{Kind: kind, Model: f.model, Err: err}
}

// Unusable returns the error of a model that cannot send a request, because its options are
// wrong or its key is missing.
func (f *Failures) Unusable(err error) *belay.ModelError {
	if _, ok := errors.AsType[*noKeyError](err); ok {
		return f.New(belay.ModelAuth, err)
	}
	return f.New(belay.ModelInvalid, err)
}

// NoAnswer returns the error of a request that got no answer.
func (f *Failures) NoAnswer(err error) *belay.ModelError {
	if absent := notListening(err); absent != nil {
		return f.New(belay.ModelInvalid, absent) // a retry does not help
	}
	return f.New(belay.ModelNetwork, err)
}

// NotAResponse returns the error for an answer that the function [NotAResponse] rejected.
// err is the result of that function.
func (f *Failures) NotAResponse(answer *http.Response, err error) *belay.ModelError {
	failure := f.New(belay.ModelInvalid, err)
	failure.Status = answer.StatusCode
	return failure
}

// Cut returns the error for an answer that ended too early. The cause may be [io.EOF] or
// nil.
func (f *Failures) Cut(err, cause error) *belay.ModelError {
	switch {
	case errors.Is(cause, ErrTooLong) || errors.Is(cause, ErrEventTooLong):
		return f.New(belay.ModelInvalid, cause) // a retry would get an answer of the same length
	case cause != nil && !errors.Is(cause, io.EOF):
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return f.New(belay.ModelNetwork, err)
}

// Unexpected returns the error for data from a service that Belay cannot decode.
func Unexpected(what string, err error) error {
	return fmt.Errorf("%s does not have the expected form: %w", what, err)
}

// Beginning returns at most limit bytes of a text from a service, with an ellipsis if the
// text is longer. Use it for bodies that are not the expected JSON, such as a proxy's HTML
// page.
func Beginning(text string, limit int) string {
	if len(text) <= limit {
		return strings.ToValidUTF8(text, "")
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// Mentions reports whether a message contains one of the phrases. It ignores the case of the
// message. The phrases must be in lower case.
func Mentions(message string, phrases ...string) bool {
	message = strings.ToLower(message)
	for _, phrase := range phrases {
		if strings.Contains(message, phrase) {
			return true
		}
	}
	return false
}
