package belay

import (
	"context"
	"encoding/json"
)

// Interceptor is Go code around the calls of a tool. Other libraries call it middleware.
// Unlike a hook, it cannot be declared in a file. Interceptors for all tools ("*") are
// outermost, followed by the interceptors for one tool. Each group has the order of
// Options.Interceptors.
type Interceptor struct {
	// Name identifies the interceptor in records of the calls that it rewrites or refuses.
	Name string
	// Tool is the tool's name, or "*".
	Tool string
	// Before is called before all hooks. It may rewrite the call, refuse it, or return a
	// result instead of running the tool. An error refuses the call. A nil Before does
	// nothing.
	Before func(ctx context.Context, call *Invocation) (Interception, error)
	// After is called before hooks get the result. It returns this result or another one.
	// If After returns an error, the model does not get the result. A nil After does
	// nothing.
	After func(ctx context.Context, call *Invocation, result Result) (Result, error)
}

// Interception says what to do with a call. The zero value lets the call continue.
type Interception struct {
	// Input replaces the input.
	Input json.RawMessage
	// Deny refuses the call. Its text is the reason.
	Deny string
	// Result replaces the run of the tool. Hooks and the floor do not see the call.
	Result *Result
}
