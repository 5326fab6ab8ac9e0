// Package openai is the provider of OpenAI's models, and of every server that
// speaks one of OpenAI's two protocols: Ollama, llama.cpp, vLLM, OpenRouter and
// many others.
//
// # Usage
//
// [New] takes the name of a model and options, which may be nil:
//
//	agent, err := belay.New(openai.New("gpt-5.2", nil), nil)
//
// The key is read from the environment variable OPENAI_API_KEY unless the options
// hold one. With an address elsewhere, the environment's key is not sent: a local
// server needs none, and other services have keys of their own:
//
//	openai.New("llama3.2", &openai.Options{URL: "http://localhost:11434/v1"})
//
// OpenAI itself is talked to over the [Responses] API, other servers over [Chat]
// Completions, which all of them speak; Options.API chooses. Window, longest
// output and price of a model come from a table that is built in; for a model that
// is not in it, the options say them.
//
// A request costs what it adds: what older messages were encoded to is kept with
// them and copied, and each request begins with the bytes of the one before it, so
// that the service's cache holds. Nothing is stored by the service: what it thought
// comes back encrypted, and is sent again with the conversation.
//
// Thinking is sent back to who thought it: that of other providers, and of other
// servers of the same protocol, is left out. Ids of calls that are too long for the
// service, or have characters it does not take, are replaced by hashes, and names of
// tools likewise, there and back. A schema that the service refuses is changed so
// that it takes it, and what had to go is said in words; one that no input can fit is
// an error that says so, from [Model.CheckTools] or else before anything is sent.
//
// A server that answers without a stream is understood too.
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
// Package providertest has strict servers of both protocols on loopback, with
// scripted replies: point Options.URL at one.
package openai
