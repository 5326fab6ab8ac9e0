package belay

import (
	"context"
)

// Authorizer is the floor: the permission check that every call must pass. A call that it
// denies does not run, whatever hooks say. It checks the final input of each call, after
// the hooks and before a person is asked.
type Authorizer interface {
	// Authorize checks a call. An error denies it.
	Authorize(ctx context.Context, call ToolCall) (Authorization, error)
}

// Authorization is the floor's answer about a call. The zero value passes.
type Authorization struct {
	// Decision is pass, ask, deny or halt.
	Decision ToolDecision
	// Reason is sent to the model, and shown to the person who is asked. It may quote the
	// call.
	Reason string
	// By is the name of the guard, zone or rule that decided. It quotes nothing of the
	// call. An approval with a scope answers later questions with the same By.
	By string
	// Places identifies where the paths of the call lead now, one string for each place.
	// Just before an approved call runs, the places are compared: if there is a new one,
	// approval is asked again. Hashes of the strings are stored. Defaults to nothing: the
	// paths are not compared.
	Places string
}

// PatternAuthorizer is an Authorizer with patterns that cover sets of calls: see
// [ScopePattern]. Without it a pattern is one of [path.Match] over the names of tools.
type PatternAuthorizer interface {
	Authorizer
	// CheckPattern returns an error if a pattern is invalid. The error says what to write
	// instead.
	CheckPattern(pattern string) error
	// Covers reports whether a pattern covers everything that a call would do. It gets the
	// final input. If it cannot determine that, it reports false. After an error or a panic
	// a person is asked too.
	Covers(ctx context.Context, pattern string, call ToolCall) (bool, error)
}
