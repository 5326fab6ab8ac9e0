// Package openai provides the models of OpenAI, and of every server that speaks one of
// OpenAI's two protocols: Ollama, llama.cpp, vLLM, OpenRouter and many others.
//
// # Usage
//
// [New] takes the name of a model and options, which may be nil:
//
//	agent, err := belay.New(openai.New("gpt-5.2", nil), nil)
//
// The key is read from the environment variable OPENAI_API_KEY unless the options contain
// one. With an address that is not OpenAI's, the key of the environment is not sent: a local
// server needs none, and other services have their own keys:
//
//	openai.New("llama3.2", &openai.Options{URL: "http://localhost:11434/v1"})
//
// The default protocol is the [Responses] API for OpenAI itself, and [Chat] Completions for
// other servers, since all of them speak it; Options.API selects one. The window, the longest
// output and the price of a model come from a built-in table; for a model that is not in the
// table, set them in the options.
//
// Building a request takes time only for what is new: the encoding of an old message is kept
// with the message. Each request begins with the bytes of the previous one, so that the
// service can use its cache. The service stores nothing: thinking comes back encrypted, and
// is sent again with the conversation.
//
// Thinking is sent back only to the server it came from. Ids of calls that are too long for
// the service, or contain characters that it rejects, are replaced by hashes. Names of tools
// are too, and the names in responses are translated back. A schema that the service rejects
// is changed until it fits, and the removed parts are put into its description. A schema that
// no input can satisfy is an error, from [Model.CheckTools] or before a request is sent.
//
// Answers that are not streamed are also accepted.
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
// Package providertest has strict loopback servers for both protocols, with scripted
// replies: set Options.URL to the address of one.
package openai
