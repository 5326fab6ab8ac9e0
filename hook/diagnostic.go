package hook

import (
	"errors"
	"unicode/utf8"

	"github.com/belay-run/belay/hook/codes"
)

// Diagnostic reports a problem or a remark about a dispatch.
type Diagnostic struct {
	Code         codes.Code  `json:"code"`
	Level        codes.Level `json:"level"`
	Phase        string      `json:"phase,omitempty"`
	Subscription string      `json:"subscription,omitempty"`
	// Message is safe to store: it does not quote the conversation.
	Message string `json:"message,omitempty"`
	// Err is the handler's own error, for the process's log. It is not stored.
	Err error `json:"-"`
}

// String renders "hook.timeout no-prod at tool.pre: message".
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

// safeLength is how much of a safe message is stored, in characters.
const safeLength = 512

// SafeError is an error whose message may be stored: the handler vouches that
// it quotes nothing of prompts, tool inputs, outputs or the environment.
type SafeError struct {
	// Code is stored with the message. Defaults to codes.Error.
	Code    codes.Code
	Message string
	// Reason is what the handler itself said about its failure, such as the end of a
	// program's standard error. A gate that fails closed gives it as the reason of its
	// denial. It is shown and not stored. Defaults to none.
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
