// Package gemini is the provider of Gemini models, over the Gemini API of
// Google.
//
// # Usage
//
// [New] takes the name of a model and options, which may be nil:
//
//	agent, err := belay.New(gemini.New("gemini-3-flash-preview", nil), nil)
//
// The key is read from the environment variables GOOGLE_API_KEY and
// GEMINI_API_KEY, in this order as Google's own programs do, unless the options
// hold one. Window, longest output and price of a model come from a table that is
// built in; for a model that is not in it, the options say them. The table knows
// one price a model: what Google asks above it for requests of more than 200,000
// tokens is not counted. Vertex AI, which wants other credentials and
// addresses, is not spoken to.
//
// A request costs what it adds: what older messages were encoded to is kept with
// them and copied. The service caches by itself what requests have in common from
// their start, so that each reads from the cache what it shares with the one
// before.
//
// Signatures of thinking go back on the parts they came with, to the model that
// made them; another model would refuse them. From Gemini 3 on models refuse
// calls without a signature, so that for calls of other models the one is sent
// that Google has for them. Thinking of other models is left out, and so is text
// that is only white space.
//
// Names of tools that the service refuses, such as those of more than 64
// characters, are sent as others and come back as they were. References within
// the schema of a tool are written out.
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
// may help; this package never tries again by itself. A call that the service
// itself could not read is such a failure, since there is nothing to tell the
// model about. A prompt or a response that the service blocks is a response with
// the stop reason refusal. A context that is done is reported as its own error.
// The key is in no error text.
//
// # Testing
//
// Package providertest has a strict server of the same protocol on loopback,
// with scripted replies: point Options.URL at it.
package gemini
