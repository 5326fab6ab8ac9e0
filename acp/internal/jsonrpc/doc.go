// Package jsonrpc is a JSON-RPC 2.0 connection with one message a line, for the server side
// of the Agent Client Protocol.
//
// The connection of the protocol's SDK is not used here, because it ends when a line is
// longer than 10 MB, does not answer a line that is not JSON, gives no order to a request and
// the notification after it, and cannot send a notification right after a response.
//
// # Usage
//
//	conn := jsonrpc.New(in, out, nil)
//	err := conn.Serve(ctx, accept)
//
// Serve calls accept for every request and notification, in the order in which they arrive,
// and on one goroutine. So a session that accept opens exists before the next message is
// read. Accept returns the function that does the work: each runs on its own goroutine.
//
// # Concurrency
//
// Call and Notify may be called from any goroutine.
//
// # Errors
//
// Broken messages get an error response and never end the connection. A handler that panics
// gives an error response too. [Error] has the code and the text of a response.
package jsonrpc
