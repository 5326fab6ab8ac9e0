package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/provider/internal/wire"
)

// serviceError is an error of the service, from the body of a refusal or from a stream.
type serviceError struct {
	Type    string    `json:"type"`
	Code    looseText `json:"code"`
	Message string    `json:"message"`
}

// UnmarshalJSON decodes an error. Some servers send a plain string instead of an object.
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

// quote adds the error of the upstream server to the message. OpenRouter's own message only
// says that the upstream server returned an error.
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
	e.Message += ": " + wire.Beginning(said, mostSaid)
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

// says reports whether the code or the type of the error is one of the words.
func (e *serviceError) says(words ...string) bool {
	for _, word := range words {
		if string(e.Code) == word || e.Type == word {
			return true
		}
	}
	return false
}

// contains reports whether the message contains one of the texts.
func (e *serviceError) contains(texts ...string) bool {
	return wire.Mentions(e.Message, texts...)
}

// strayError returns the error in text that is not an event, or nil if the text is something
// else.
func strayError(text []byte) error {
	var body struct {
		Error *serviceError `json:"error"`
	}
	if json.Unmarshal(text, &body) == nil && body.Error != nil {
		return body.Error
	}
	return nil
}

// readError decodes an error event. The fields of the error are in the event itself or in
// its field "error".
func readError(data []byte) error {
	var event struct {
		serviceErrorFields

		Error *serviceError `json:"error"`
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return wire.Unexpected("an error event", err)
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

// inStream returns the error of an attempt that failed after the answer had begun.
func (m *Model) inStream(err error) error {
	var said *serviceError
	if !errors.As(err, &said) {
		return m.failures.New(belay.ModelServer, err)
	}
	status, _ := strconv.Atoi(string(said.Code)) // some servers send the HTTP status as the code
	failure := m.failures.New(kindOf(status, said), err)
	if failure.Kind == belay.ModelRateLimited {
		failure.RetryAfter = waitIn(said.Message)
	}
	return failure
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
	if failure.RetryAfter == 0 && failure.Kind == belay.ModelRateLimited {
		failure.RetryAfter = waitIn(said.Message)
	}
	return failure
}

// kindOf returns the kind of an error, from its status, code and message. The status is 0 if
// it is not known.
func kindOf(status int, said *serviceError) belay.ModelErrorKind {
	switch {
	case tooLong(status, said):
		return belay.ModelTooLong
	case said.says("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "exceeded_current_quota_error", "insufficient_balance"):
		return belay.ModelInvalid // a retry does not help
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

// tooLong reports whether the service refused a request because it exceeds the window.
// OpenAI has a code for this. Other servers only say it in the message.
func tooLong(status int, said *serviceError) bool {
	return status == http.StatusRequestEntityTooLarge ||
		said.says("context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded") ||
		// A retry does not help if one request has more tokens than the limit per minute.
		said.says("rate_limit_exceeded", "tokens") && said.contains("request too large") ||
		status != http.StatusTooManyRequests && said.contains(tooLongWords...)
}

// tooLongWords are phrases from the messages of OpenAI, vLLM, llama.cpp, LM Studio, Ollama,
// SGLang, xAI, Moonshot, MiniMax, Z.ai, Mistral, Anthropic and gateways to them.
var tooLongWords = []string{
	"context_length_exceeded", "exceeds the context window", "exceed context window", "context window exceeds", "exceed context limit",
	"maximum context length", "context length is only", "longer than the maximum model length", "longer than the model's context length",
	"greater than the context length", "exceeds the context length", "exceeded max context length", "exceeds the available context size", "context size has been exceeded",
	"maximum prompt length", "prompt exceeds max length", "exceeded model token limit", "exceeds the maximum number of tokens", "prompt is too long", "input is too long",
}

// mostSaid limits how many bytes an error quotes from a body that is not JSON.
const mostSaid = 500

// saidBy returns the error that is in the body of a refusal.
func saidBy(answer *wire.RefusalError) *serviceError {
	var body struct {
		Error   serviceError `json:"error"`
		Message string       `json:"message"`
	}
	if json.Unmarshal(answer.Body, &body) != nil || body.Error.Message == "" {
		body.Error.Message = body.Message
	}
	if body.Error.Message == "" {
		body.Error.Message = wire.Beginning(string(answer.Body), mostSaid)
	}
	if body.Error.Message == "" {
		body.Error.Message = answer.Text
	}
	if id := answer.Header.Get("X-Request-ID"); id != "" {
		body.Error.Message += " (request " + id + ")"
	}
	return &body.Error
}

// tryAgain finds in a message how long to wait. An error in a stream has no header for
// this.
var tryAgain = lazyregexp.New(`(?i)try again in (\d[0-9.hms ]*)`)

// waitIn returns the wait that a message asks for, or 0.
func waitIn(message string) time.Duration {
	found := tryAgain.FindStringSubmatch(message)
	if found == nil {
		return 0
	}
	wait, err := time.ParseDuration(strings.TrimRight(strings.ReplaceAll(found[1], " ", ""), "."))
	if err != nil {
		return 0
	}
	return min(wait, wire.MaxWait)
}
