// Package client is the Go client of the HTTP API of "belay serve". The command line uses it
// for --server.
//
// # Usage
//
//	c, err := client.New("https://belay.example.com", os.Getenv("BELAY_TOKEN"), nil)
//	...
//	session, err := c.CreateSession(ctx, api.CreateSession{Title: "The changelog"})
//	...
//	turn, err := c.StartTurn(ctx, api.StartTurn{Session: session.ID, Text: "tidy the changelog"})
//	...
//	for event, err := range c.Events(ctx, session.ID, turn.After) {
//		...
//	}
//
// There is one method for each operation of the API. docs/reference/api.md lists the
// operations, and package serve/api has their inputs and results. Messages, events, approvals
// and hook runs have the types of the packages belay and hook.
//
// # Streams
//
// [Client.Events], [Client.AllEvents] and [Client.RunEvents] connect again when the connection
// is lost or the server restarts. They continue after the last event, so they skip no stored
// event and repeat none.
//
// # Errors
//
// An error of the server is an [api.Problem] with its status, code, field and detail. Use
// errors.Is with belay.ErrNotFound, belay.ErrDecided and the other errors of package belay,
// and with [api.ErrConflict] and [api.ErrDenied]. Any other error means that the request or
// the response was lost on the way.
//
// Requests that only read are repeated a few times after such an error, and after the answers
// "try again later" (429 and 503). Other requests are sent once, because the server may have
// done what they ask for.
//
// # Concurrency
//
// A Client is safe for concurrent use.
//
// # Testing
//
// Test against a real server: pass serve.Server.Handler to net/http/httptest.
package client
