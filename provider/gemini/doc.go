// Package gemini provides Gemini models through the Gemini API of Google.
//
// # Usage
//
// [New] takes the name of a model and options, which may be nil:
//
//	agent, err := belay.New(gemini.New("gemini-3-flash-preview", nil), nil)
//
// The API key comes from the options or the environment variables GOOGLE_API_KEY and
// GEMINI_API_KEY. As in Google's own programs, GOOGLE_API_KEY comes first. The window,
// the longest output and the price of a model come from a built-in table. For a model
// that is not in the table, set Options.Window and Options.Price. The table has one price
// per model. Google charges more for requests of over 200,000 tokens, and Belay does not
// include this in the cost. The package does not support Vertex AI.
//
// A request is built quickly, because each message keeps its encoding. The service itself
// caches the common beginning of requests. So a request reads from the cache what it has in
// common with the previous request.
//
// Belay sends signatures of thinking back with the parts that they came with, and only to
// the model that made them. Another model would reject them. From Gemini 3 on, models reject
// calls without a signature. So calls of other models get a special signature that Google
// provides for this. Belay leaves out thinking of other models and text that is only white
// space.
//
// Belay changes tool names that the service rejects, such as names of more than 64
// characters. In responses, it restores the original names. It expands references in the
// schema of a tool.
//
// # Concurrency
//
// Any number of goroutines can use a [Model]. It starts no goroutines: the loop over Stream
// reads the response, and leaving the loop ends the request.
//
// # Errors
//
// A failed attempt returns a [*belay.ModelError]. Its kind says whether a retry can help.
// This package never retries. If the service could not parse a call of the model, the
// attempt fails, because there is no call to run. If the service blocks a prompt or a
// response, the model returns a response with the stop reason refusal. If the context is
// done, the error is the context's. No error contains the key.
//
// # Testing
//
// Package providertest has a strict test server for this protocol, with scripted replies.
// Set Options.URL to its address.
package gemini
