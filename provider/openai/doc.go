// Package openai provides the models of OpenAI. It also works with every server that has one
// of OpenAI's two protocols, such as Ollama, llama.cpp, vLLM and OpenRouter.
//
// # Usage
//
// [New] takes the name of a model and options, which may be nil:
//
//	agent, err := belay.New(openai.New("gpt-5.2", nil), nil)
//
// The API key comes from the options or the environment variable OPENAI_API_KEY. If the
// address is not OpenAI's, only the key in the options is sent. A local server needs no key:
//
//	openai.New("llama3.2", &openai.Options{URL: "http://localhost:11434/v1"})
//
// The default protocol is the [Responses] API for OpenAI itself. For other servers it is
// [Chat] Completions, because all of them support it. Options.API selects a protocol. The
// window, the longest output and the price of a model come from a built-in table. For a
// model that is not in the table, set Options.Window and Options.Price.
//
// A request is built quickly, because each message keeps its encoding. Each request begins
// with the bytes of the previous request, so that the service can use its prompt cache.
// Belay asks OpenAI to store nothing. OpenAI returns its thinking encrypted, and Belay sends
// it back with the conversation.
//
// Belay sends thinking back only to the server that wrote it. If the service would reject
// the id of a call or the name of a tool, Belay sends a hash or a changed name instead. In
// responses, Belay restores the original names. If the service would reject a schema, Belay
// changes the schema and puts the removed parts into its description. A schema that allows
// no object is an error, from [Model.CheckTools] or before a request is sent.
//
// The package also accepts answers that are not streams.
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
// Package providertest has strict test servers for both protocols, with scripted replies.
// Set Options.URL to the address of such a server.
package openai
