// Package api has the requests and responses of the HTTP API of "belay serve". Package serve
// decodes and sends them, and package client sends and decodes them. So both sides use the same
// Go types.
//
// # Usage
//
// Pass an input to the method of the client that has the same name:
//
//	turn, err := c.StartTurn(ctx, api.StartTurn{Session: "first", Text: "tidy the changelog"})
//
// The tag `in` says where a field is sent: in the path, in the query, or, without the tag, in
// the JSON body. The other tags describe the field in the OpenAPI document. A field that has its
// zero value is not sent, unless it is required.
//
// # Concurrency
//
// The types are plain data.
//
// # Errors
//
// Every error of the API is a [Problem].
//
// # Testing
//
// Test against a real server: see package client.
package api
