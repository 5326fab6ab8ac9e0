package belay

import (
	"context"
)

// Authorizer is the floor: the permission check that every call must pass. A call that the
// floor denies does not run, whatever hooks answer. The floor checks the final input of
// each call. It runs after the hooks, and before Belay asks a person.
type Authorizer interface {
	// Authorize checks a call. An error denies it.
	Authorize(ctx context.Context, call ToolCall) (Authorization, error)
}

// Authorization is the floor's answer about a call. The zero value lets the call pass.
type Authorization struct {
	// Decision is pass, ask, deny or halt.
	Decision ToolDecision
	// Reason is for the model and for the person who is asked. It may quote the call.
	Reason string
	// By is the name of the guard, zone or rule that decided. It must not quote the call.
	// An approval for a session or a pattern also answers later questions with the same By.
	By string
	// Places identifies the files that the paths of the call lead to now. It has one string
	// without spaces for each file, separated by spaces. Belay stores hashes of these
	// strings, and compares the hashes just before an approved call runs. If the paths lead
	// to another file by then, Belay asks for approval again. Defaults to "": Belay does
	// not compare files.
	Places string
}

// PatternAuthorizer is an Authorizer with its own patterns for sets of calls: see
// [ScopePattern]. With any other Authorizer, a pattern is a [path.Match] pattern for names
// of tools.
type PatternAuthorizer interface {
	Authorizer
	// CheckPattern returns an error if a pattern is invalid. The error says what to write
	// instead.
	CheckPattern(pattern string) error
	// Covers reports whether a pattern covers everything that a call would do. The call has
	// its final input. Covers reports false if it cannot determine the answer. If it
	// reports false, returns an error or panics, Belay asks a person.
	Covers(ctx context.Context, pattern string, call ToolCall) (bool, error)
}
