// Package anthropic provides Claude models through the Messages API of Anthropic.
//
// # Usage
//
// [New] takes the name of a model and options, which may be nil:
//
//	agent, err := belay.New(anthropic.New("claude-sonnet-4-5", nil), nil)
//
// The key is read from the environment variable ANTHROPIC_API_KEY unless the
// options contain one. The window, the longest output and the price of a model come
// from a built-in table; for a model that is not in the table, set them in the options.
//
// Building a request takes time only for what is new: the encoding of an old message is
// kept with the message. Cache marks are set after the system prompt, where the previous
// request ended, and at the end, so that each request reads from the prompt cache what
// the previous one wrote to it.
//
// Thinking is sent back unchanged, with its signature, to the service that signed it. Left
// out are thinking of other providers, thinking that nothing follows, and text that is only
// white space: the service rejects them. Models that bind their thinking to the preceding
// messages are asked to drop thinking whose preceding messages have changed.
//
// # Concurrency
//
// Any number of goroutines can use a [Model]. It starts none itself: a response is read
// in the goroutine that ranges over it, and leaving the loop ends the request.
//
// # Errors
//
// A failed attempt is a [*belay.ModelError] whose kind says whether a retry can help; this
// package itself never retries. If the context is done, the error is the context's. No
// error contains the key.
//
// # Testing
//
// Package providertest has a strict loopback server for this protocol, with scripted
// replies: set Options.URL to its address.
package anthropic
