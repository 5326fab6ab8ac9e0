package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// serviceError is what the service says is wrong, in a body or in a stream.
type serviceError struct {
	Type    string    `json:"type"`
	Code    looseText `json:"code"`
	Message string    `json:"message"`
}

// UnmarshalJSON reads an error, which some servers write as a mere text.
func (e *serviceError) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		var text looseText
		err := text.UnmarshalJSON(data)
		*e = serviceError{Message: string(text)}
		return err
	}
	type plainError serviceError
	var further struct {
		plainError

		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(data, &further); err != nil {
		return err //nolint:wrapcheck // encoding/json says where
	}
	*e = serviceError(further.plainError)
	e.quote(further.Metadata)
	return nil
}

// quote adds what a server says that another one said: that of OpenRouter is no more than
// that it returned an error.
func (e *serviceError) quote(metadata json.RawMessage) {
	var from struct {
		Raw looseText `json:"raw"`
	}
	if json.Unmarshal(metadata, &from) != nil || from.Raw == "" {
		return
	}
	var body struct {
		Error   serviceError `json:"error"`
		Message string       `json:"message"`
	}
	said := string(from.Raw)
	if json.Unmarshal([]byte(said), &body) == nil && body.Error.Message+body.Message != "" {
		said = body.Message
		if body.Error.Message != "" {
			said = body.Error.Error()
		}
	}
	e.Message += ": " + beginning(said)
}

func (e *serviceError) Error() string {
	word := string(e.Code)
	if _, err := strconv.Atoi(word); err == nil || word == "" {
		word = e.Type
	}
	if word == "" {
		return e.Message
	}
	return word + ": " + e.Message
}

// says reports whether one of the words is the error's code or type.
func (e *serviceError) says(words ...string) bool {
	for _, word := range words {
		if string(e.Code) == word || e.Type == word {
			return true
		}
	}
	return false
}

// contains reports whether the message contains one of some texts.
func (e *serviceError) contains(texts ...string) bool {
	message := strings.ToLower(e.Message)
	for _, text := range texts {
		if strings.Contains(message, text) {
			return true
		}
	}
	return false
}

// readError reads the error of an event: its fields are the event's, or in one of
// their own.
func readError(data []byte) error {
	var event struct {
		serviceErrorFields

		Error *serviceError `json:"error"`
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return fmt.Errorf("an event that tells of an error is not what was agreed: %w", err)
	}
	if event.Error != nil {
		return event.Error
	}
	return &serviceError{Code: event.Code, Message: event.Message}
}

type serviceErrorFields struct {
	Code    looseText `json:"code"`
	Message string    `json:"message"`
}

// failed makes the error of an attempt.
func (m *Model) failed(kind belay.ModelErrorKind, err error) *belay.ModelError {
	if text := err.Error(); m.scrub(text) != text {
		err = errors.New(m.scrub(text)) // what it wraps may hold the key
	}
	return &belay.ModelError{Kind: kind, Model: m.provider + "/" + m.name, Err: err}
}

// inStream makes the error of an attempt that failed after it began well.
func (m *Model) inStream(err error) error {
	var said *serviceError
	if !errors.As(err, &said) {
		return m.failed(belay.ModelServer, err)
	}
	status, _ := strconv.Atoi(string(said.Code)) // some give the status that it would have been
	failure := m.failed(kindOf(status, said), err)
	if failure.Kind == belay.ModelRateLimited {
		failure.RetryAfter = waitIn(said.Message)
	}
	return failure
}

// refused makes the error of a request that was not answered: the answer, if
// there is one, says that it was refused.
func (m *Model) refused(answer *http.Response, err error) error {
	if answer == nil || answer.StatusCode < http.StatusBadRequest {
		return m.lost(err)
	}
	said := saidBy(answer)
	failure := m.failed(kindOf(answer.StatusCode, said), said)
	failure.Status = answer.StatusCode
	failure.RetryAfter = retryAfter(answer.Header, time.Now())
	if failure.RetryAfter == 0 && failure.Kind == belay.ModelRateLimited {
		failure.RetryAfter = waitIn(said.Message)
	}
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

// kindOf returns the kind of a refusal, by its status if it has one and by its
// words.
func kindOf(status int, said *serviceError) belay.ModelErrorKind {
	switch {
	case tooLong(status, said):
		return belay.ModelTooLong
	case said.says("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "exceeded_current_quota_error", "insufficient_balance"):
		return belay.ModelInvalid // waiting does not help
	case status == http.StatusTooManyRequests || status == 0 && said.says("rate_limit_exceeded", "rate_limit_error", "too_many_requests"):
		return belay.ModelRateLimited
	case status == 529 || said.says("server_is_overloaded", "slow_down", "overloaded_error", "insufficient_system_resource") || status == http.StatusServiceUnavailable && said.contains("overloaded"):
		return belay.ModelOverloaded
	case status >= 500 || status == http.StatusRequestTimeout:
		return belay.ModelServer
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == 0 && said.says("invalid_api_key", "authentication_error", "permission_denied"):
		return belay.ModelAuth
	case status != 0 || said.says("invalid_request_error") || strings.HasPrefix(string(said.Code), "invalid_") || strings.HasSuffix(string(said.Code), "_policy"):
		return belay.ModelInvalid
	default:
		return belay.ModelServer
	}
}

// tooLong tells a request that does not fit the window from others that are
// refused. OpenAI has a code for it; other servers have words.
func tooLong(status int, said *serviceError) bool {
	return status == http.StatusRequestEntityTooLarge ||
		said.says("context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded") ||
		// More than a minute's worth of tokens at once never passes.
		said.says("rate_limit_exceeded", "tokens") && said.contains("request too large") ||
		status != http.StatusTooManyRequests && said.contains(tooLongWords...)
}

// tooLongWords are those of OpenAI, vLLM, llama.cpp, LM Studio, Ollama, SGLang, xAI,
// Moonshot, MiniMax, Z.ai, Mistral, Anthropic and the gateways before them.
var tooLongWords = []string{
	"context_length_exceeded", "exceeds the context window", "exceed context window", "context window exceeds", "exceed context limit",
	"maximum context length", "context length is only", "longer than the maximum model length", "longer than the model's context length",
	"greater than the context length", "exceeds the context length", "exceeded max context length", "exceeds the available context size", "context size has been exceeded",
	"maximum prompt length", "prompt exceeds max length", "exceeded model token limit", "exceeds the maximum number of tokens", "prompt is too long", "input is too long",
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
func saidBy(answer *http.Response) *serviceError {
	raw, _ := io.ReadAll(answer.Body) // the SDK has read it before
	var body struct {
		Error   serviceError `json:"error"`
		Message string       `json:"message"`
	}
	if json.Unmarshal(raw, &body) != nil || body.Error.Message == "" {
		body.Error.Message = body.Message
	}
	if body.Error.Message == "" {
		body.Error.Message = beginning(string(raw))
	}
	if body.Error.Message == "" {
		body.Error.Message = answer.Status
	}
	if id := answer.Header.Get("X-Request-ID"); id != "" {
		body.Error.Message += " (request " + id + ")"
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

// tryAgain is how a stream, which has no headers left, says how long to wait.
var tryAgain = regexp.MustCompile(`(?i)try again in (\d[0-9.hms ]*)`)

// waitIn reads how long a message asks to wait.
func waitIn(message string) time.Duration {
	found := tryAgain.FindStringSubmatch(message)
	if found == nil {
		return 0
	}
	wait, err := time.ParseDuration(strings.TrimRight(strings.ReplaceAll(found[1], " ", ""), "."))
	if err != nil {
		return 0
	}
	return min(wait, longest)
}
