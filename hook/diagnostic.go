package hook

import (
	"errors"
	"unicode/utf8"

	"github.com/belay-run/belay/hook/codes"
)

// Diagnostic reports a problem of a dispatch, or something to note about it.
type Diagnostic struct {
	Code         codes.Code  `json:"code"`
	Level        codes.Level `json:"level"`
	Phase        string      `json:"phase,omitempty"`
	Subscription string      `json:"subscription,omitempty"`
	// Message is safe to store: it does not quote the conversation.
	Message string `json:"message,omitempty"`
	// Err is the handler's own error, for the process's log. Err is not stored.
	Err error `json:"-"`
}

// String returns text such as "hook.timeout no-prod at tool.pre: message".
func (d Diagnostic) String() string {
	text := string(d.Code)
	if d.Subscription != "" {
		text += " " + d.Subscription
	}
	if d.Phase != "" {
		text += " at " + d.Phase
	}
	if d.Message != "" {
		text += ": " + d.Message
	}
	return text
}

// safeLength is the maximum length of a stored message, in characters.
const safeLength = 512

// SafeError is an error whose message may be stored. The handler guarantees that the
// message quotes nothing of prompts, tool inputs, outputs or the environment.
type SafeError struct {
	// Code is stored with the message. Defaults to codes.Error.
	Code    codes.Code
	Message string
	// Reason is the handler's own explanation of its failure, such as the end of a
	// program's standard error. If a gate fails closed, Reason is the reason of its denial.
	// Users and the model see Reason, but it is not stored. Defaults to none.
	Reason string
	// Err is the cause, which is not stored.
	Err error
}

func (e *SafeError) Error() string {
	text := e.Message
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *SafeError) Unwrap() error { return e.Err }

// classify returns the code of a handler's error.
func classify(err error) codes.Code {
	if safe, ok := errors.AsType[*SafeError](err); ok && safe.Code != "" {
		return codes.Code(cut(string(safe.Code), 64))
	}
	return codes.Error
}

// cut shortens text to n characters.
func cut(text string, n int) string {
	if len(text) <= n || utf8.RuneCountInString(text) <= n {
		return text
	}
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
