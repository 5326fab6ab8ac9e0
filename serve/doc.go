// Package serve offers the agents of a host over HTTP: sessions, turns, events, approvals,
// hook runs and more. The command "belay serve" uses it.
//
// # Usage
//
//	h, err := host.Open(ctx, &host.Options{NoJobs: true})
//	...
//	tokens := serve.OpenTokens(dir) // a directory that agents cannot read
//	server, err := serve.New(h, &serve.Options{Tokens: tokens, Workers: 8})
//	...
//	listener, err := net.Listen("tcp", "127.0.0.1:7717")
//	...
//	err = server.Serve(ctx, listener) // until ctx ends
//
// docs/serve.md shows the API with examples. docs/reference/api.md lists all operations. A
// server shows the same list at /v1/docs, and as OpenAPI 3.1 at /v1/openapi.json.
//
// # Turns
//
// Starting a turn stores the message. Then a worker runs the turn: one in this process if
// Options.Workers is more than 0, or any other process that uses the store. A server that is
// killed loses nothing.
//
// # Safety
//
// Every request needs a token, except /healthz, /readyz and the documentation. A token has
// roles and can be limited to sessions with certain labels. Sessions of others do not exist
// for it. Agents cannot read the tokens: the floor and the sandbox of package host protect
// their directory.
//
// # Concurrency
//
// A Server is safe for concurrent use. Serve waits for all goroutines of its worker and its
// requests.
//
// # Errors
//
// Every error of the API is a [Problem].
//
// # Testing
//
// Open a host with a directory of the test and a scripted model, create a token in a temporary
// directory, and pass [Server.Handler] to net/http/httptest.
package serve
