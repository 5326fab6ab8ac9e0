package belay

import (
	"context"
	"encoding/json"
)

// Interceptor is Go code around the calls of a tool; other libraries call it middleware. It
// cannot be declared in a file. Interceptors of all tools are outermost, then those of one
// tool, in the order of Options.
type Interceptor struct {
	// Name appears where the interceptor rewrites or refuses a call.
	Name string
	// Tool is the tool's name, or "*".
	Tool string
	// Before is called before any hook. It may rewrite the call, refuse it, or return a
	// result instead of running the tool. An error refuses the call. Nil does nothing.
	Before func(ctx context.Context, call *Invocation) (Interception, error)
	// After is called before any hook gets the result. It returns this result or another
	// one. An error withholds the result. Nil does nothing.
	After func(ctx context.Context, call *Invocation, result Result) (Result, error)
}

// Interception is what an interceptor does with a call. The zero value lets the call
// continue.
type Interception struct {
	// Input replaces the input.
	Input json.RawMessage
	// Deny refuses the call with this reason.
	Deny string
	// Result is used instead of running the tool. Hooks and the floor do not see such a
	// call.
	Result *Result
}
