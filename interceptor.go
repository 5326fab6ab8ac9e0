package belay

import (
	"context"
	"encoding/json"
)

// Interceptor is Go code around the calls of a tool. It is not reachable from
// any file. Interceptors of all tools are outside those of one, and within those
// in the order of Options.
type Interceptor struct {
	// Name is told where the interceptor rewrites or refuses.
	Name string
	// Tool is the tool's name, or "*".
	Tool string
	// Before sees a call before any hook. It may rewrite it, refuse it or answer
	// in the tool's place. An error refuses. Nil does nothing.
	Before func(ctx context.Context, call *Invocation) (Interception, error)
	// After sees the result before any hook, and returns it or another. An error
	// withholds it. Nil does nothing.
	After func(ctx context.Context, call *Invocation, result Result) (Result, error)
}

// Interception is what an interceptor does with a call. The zero value lets it
// go on.
type Interception struct {
	// Input replaces the input.
	Input json.RawMessage
	// Deny refuses the call for this reason.
	Deny string
	// Result answers in the tool's place. Nothing runs then, so neither hooks nor
	// the floor are asked.
	Result *Result
}
