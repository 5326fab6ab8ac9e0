package gemini

import (
	"cmp"
	"net/http"

	"github.com/belay-run/belay"
)

// verdict returns an error if the complete response is not usable. For example, if the
// service could not parse a call of the model, there is no call to run. The agent can retry.
func (a *assembly) verdict() error {
	switch a.stop {
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE":
		return &failure{Code: http.StatusInternalServerError, Status: a.stop, Message: cmp.Or(a.message, "the model wrote a tool call that the service could not use")}
	case "MISSING_THOUGHT_SIGNATURE":
		return &failure{Code: http.StatusBadRequest, Status: a.stop, Message: cmp.Or(a.message, "a tool call in the request has no signature")}
	}
	return nil
}

// stopReason translates a finish reason of the service. The service has no separate
// finish reason for a response with calls.
func stopReason(reason string, calls int) belay.StopReason {
	switch reason {
	case "MAX_TOKENS", "CONTINUATION":
		return belay.StopMaxTokens
	case blocked, "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR":
		return belay.StopRefusal
	}
	if calls > 0 {
		return belay.StopToolUse
	}
	return belay.StopEnd
}
