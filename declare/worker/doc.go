// Package worker helps you write hooks as separate programs in Go. A worker is started
// once and answers many calls, so that a call needs no new process.
//
// # Usage
//
// Handlers use the same phases and types as in a program that embeds Belay:
//
//	func main() {
//		worker.Main(worker.On(belay.ToolPre, noProd))
//	}
//
//	func noProd(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) { ... }
//
// The file that declares the hook names the program:
//
//	hooks:
//	  - id: no-prod
//	    phase: tool.pre
//	    worker: [./no-prod]
//
// The same program also works as a command. Write command instead of worker, and Belay
// starts the program for each call.
//
// # The protocol
//
// A worker in another language must implement this protocol. Each line on standard input is
// a JSON-RPC 2.0 message. Each line on standard output is also such a message, of at most 1
// MiB. Standard error goes to the log. The first call is a handshake. The worker answers
// with its protocol version:
//
//	> {"jsonrpc":"2.0","id":1,"method":"hello","params":{"v":1}}
//	< {"jsonrpc":"2.0","id":1,"result":{"v":1}}
//
// All other calls run a hook. The parameter is the envelope, the same that a command
// reads from its standard input (see [Envelope]). The result is the answer: an object, or
// null for no opinion. An error fails the run:
//
//	> {"jsonrpc":"2.0","id":2,"method":"run","params":{"v":1,"phase":"tool.pre", ... ,"input":{ ... }}}
//	< {"jsonrpc":"2.0","id":2,"result":{"decision":"deny","reason":"production is off limits"}}
//	< {"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"the database is gone"}}
//
// Calls may overlap, and the worker may answer them in any order. Belay cancels a call
// with a notification, which a worker may ignore:
//
//	> {"jsonrpc":"2.0","method":"cancel","params":{"id":2}}
//
// When standard input ends, the worker must end. If the worker prints a line to standard
// output that is not such a message, Belay stops it. Print messages to standard error.
//
// # Concurrency
//
// Each call runs on its own goroutine. The context of the call ends when the call is
// cancelled.
//
// # Errors
//
// If a handler returns an error or panics, the run fails, but the worker keeps running.
// [Serve] returns an error if its input is invalid or if it cannot write.
//
// # Testing
//
// A handler is a plain function. [Serve] works on any reader and writer.
package worker
