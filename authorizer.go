package belay

import (
	"context"
)

// Authorizer is the floor: what it denies does not run, whatever hooks say. It
// judges the final input of every call that a tool would run, after the hooks and
// before anyone is asked.
type Authorizer interface {
	// Authorize judges a call. An error denies.
	Authorize(ctx context.Context, call ToolCall) (Authorization, error)
}

// Authorization is what the floor says about a call. The zero value has no
// objection.
type Authorization struct {
	// Decision is pass, ask, deny or halt.
	Decision ToolDecision
	// Reason is told to the model, and to the person who is asked. It may quote
	// the call.
	Reason string
	// By names the guard, zone or rule that spoke. It is a name and quotes nothing
	// of the call: a yes that reaches further than one call answers the questions
	// of that name.
	By string
	// Places identifies where the paths of the call lead now: one word for each place. If
	// an approved call is about to run and has a place that it did not have when it was
	// approved, it is asked about again. Hashes of the words are stored. Defaults to
	// nothing: the paths are not compared.
	Places string
}

// PatternAuthorizer is an Authorizer with a grammar for sets of calls, which
// people use to say yes to more than one: see [ScopePattern]. Without it a pattern
// is one of [path.Match] over the names of tools.
type PatternAuthorizer interface {
	Authorizer
	// CheckPattern says why a pattern cannot be read, and what to write instead.
	CheckPattern(pattern string) error
	// Covers reports whether a pattern covers a call with all that it would do. It
	// is asked about the final input. Where it cannot tell it does not cover; an
	// error, or a panic, means the same: somebody is asked.
	Covers(ctx context.Context, pattern string, call ToolCall) (bool, error)
}
