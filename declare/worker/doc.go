// Package worker helps to write hooks as separate programs in Go. A worker is
// started once and answers many calls, so a call needs no new process.
//
// # Usage
//
// Handlers have the same phases and types as in a program that embeds Belay:
//
//	func main() {
//		worker.Main(worker.On(belay.ToolPre, noProd))
//	}
//
//	func noProd(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) { ... }
//
// and the file that declares it names the program:
//
//	hooks:
//	  - id: no-prod
//	    phase: tool.pre
//	    worker: [./no-prod]
//
// The same program also works as a command: write command instead of worker, and
// it is started for each call.
//
// # The protocol
//
// A worker in another language must implement this protocol. Each line on standard
// input is a JSON-RPC 2.0 message, and so is each line on standard output, of at most
// 1 MiB. What is written to standard error goes to the log. The first call is a
// handshake. The worker answers with its protocol version:
//
//	> {"jsonrpc":"2.0","id":1,"method":"hello","params":{"v":1}}
//	< {"jsonrpc":"2.0","id":1,"result":{"v":1}}
//
// All others are runs of a hook. Their parameter is the envelope that a command reads
// from its standard input ([Envelope]), and their result is the answer, an object, or
// null for no opinion. An error fails the run:
//
//	> {"jsonrpc":"2.0","id":2,"method":"run","params":{"v":1,"phase":"tool.pre", ... ,"input":{ ... }}}
//	< {"jsonrpc":"2.0","id":2,"result":{"decision":"deny","reason":"production is off limits"}}
//	< {"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"the database is gone"}}
//
// Calls may overlap, and may be answered in any order. A call is cancelled by a
// notification, which a worker may ignore:
//
//	> {"jsonrpc":"2.0","method":"cancel","params":{"id":2}}
//
// When standard input ends, the worker must end. Any other line on standard output
// makes Belay stop the worker: print messages to standard error.
//
// # Concurrency
//
// Each call runs on a goroutine of its own. Its context ends when the call is
// cancelled.
//
// # Errors
//
// The error of a handler fails that run, and so does a panic; both leave the worker
// running. [Serve] returns an error when its input is invalid or when it cannot
// write.
//
// # Testing
//
// A handler is a plain function. [Serve] works on any reader and writer.
package worker
