// Package anthropic provides Claude models through the Messages API of Anthropic.
//
// # Usage
//
// [New] takes the name of a model and options, which may be nil:
//
//	agent, err := belay.New(anthropic.New("claude-sonnet-4-5", nil), nil)
//
// The API key comes from the options or the environment variable ANTHROPIC_API_KEY. The
// window, the longest output and the price of a model come from a built-in table. For a
// model that is not in the table, set Options.Window and Options.Price.
//
// A request is built quickly, because each message keeps its encoding. Belay sets cache
// marks after the system prompt, at the end of the previous request, and at the end of this
// request. So each request reads from the prompt cache what the previous request wrote.
//
// Belay sends thinking back unchanged, with its signature, to the service that signed it. It
// leaves out content that the service rejects: thinking of other providers, thinking at the
// end of a message, and text that is only white space. Some models bind their thinking to
// the messages before it. Belay asks them to drop thinking if those messages have changed.
//
// # Concurrency
//
// Any number of goroutines can use a [Model]. It starts no goroutines: the loop over Stream
// reads the response, and leaving the loop ends the request.
//
// # Errors
//
// A failed attempt returns a [*belay.ModelError]. Its kind says whether a retry can help.
// This package never retries. If the context is done, the error is the context's. No error
// contains the key.
//
// # Testing
//
// Package providertest has a strict test server for this protocol, with scripted replies.
// Set Options.URL to its address.
package anthropic
