// Package gemini provides Gemini models through the Gemini API of Google.
//
// # Usage
//
// [New] takes the name of a model and options, which may be nil:
//
//	agent, err := belay.New(gemini.New("gemini-3-flash-preview", nil), nil)
//
// The key is read from the environment variables GOOGLE_API_KEY and GEMINI_API_KEY, in this
// order as in Google's own programs, unless the options contain one. The window, the longest
// output and the price of a model come from a built-in table; for a model that is not in the
// table, set them in the options. The table has one price per model: the higher price that
// Google charges for requests of more than 200,000 tokens is not counted. Vertex AI, which
// has other credentials and addresses, is not supported.
//
// Building a request takes time only for what is new: the encoding of an old message is kept
// with the message. The service itself caches the common beginning of requests, so each
// request reads from the cache what it shares with the previous one.
//
// Signatures of thinking are sent back on the parts they came with, to the model that made
// them; another model would reject them. From Gemini 3 on, models reject calls without a
// signature, so calls of other models get the signature that Google provides for them.
// Thinking of other models is left out, and so is text that is only white space.
//
// Tools whose names the service rejects, such as names of more than 64 characters, are sent
// under other names, and the names in responses are translated back. References within the
// schema of a tool are expanded.
//
// # Concurrency
//
// Any number of goroutines can use a [Model]. It starts none itself: a response is read
// in the goroutine that ranges over it, and leaving the loop ends the request.
//
// # Errors
//
// A failed attempt is a [*belay.ModelError] whose kind says whether a retry can help; this
// package itself never retries. A call that the service could not parse is such a failure,
// since there is no call to answer. A prompt or a response that the service blocks is a
// response with the stop reason refusal. If the context is done, the error is the context's.
// No error contains the key.
//
// # Testing
//
// Package providertest has a strict loopback server for this protocol, with scripted
// replies: set Options.URL to its address.
package gemini
