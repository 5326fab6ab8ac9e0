// Package anthropic is the provider of Claude models, over the Messages API of
// Anthropic.
//
// # Usage
//
// [New] takes the name of a model and options, which may be nil:
//
//	agent, err := belay.New(anthropic.New("claude-sonnet-4-5", nil), nil)
//
// The key is read from the environment variable ANTHROPIC_API_KEY unless the
// options hold one. Window, longest output and price of a model come from a
// table that is built in; for a model that is not in it, the options say them.
//
// A request costs what it adds: what older messages were encoded to is kept with
// them and copied. Marks for the prompt cache are set behind the system prompt,
// where the request before this one ended, and at the end, so that each request
// reads from the cache what the one before wrote to it.
//
// Thinking is sent back with its signature as it came, to the service that signed it.
// Thinking of other providers is left out, and so are thinking that nothing follows and
// text that is only white space, which the service refuses. Models that bind their
// thinking to what came before it are told to forget it once that has changed.
//
// # Concurrency
//
// A [Model] is used by any number of goroutines. It starts none: a response is
// read in the goroutine that ranges over it, and leaving the range ends the
// request.
//
// # Errors
//
// A failed attempt is a [*belay.ModelError] whose kind says whether trying again
// may help; this package never tries again by itself. A context that is done is
// reported as its own error. The key is in no error text.
//
// # Testing
//
// Package providertest has a strict server of the same protocol on loopback,
// with scripted replies: point Options.URL at it.
package anthropic
