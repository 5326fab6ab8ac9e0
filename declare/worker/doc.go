// Package worker is for hooks that are programs of their own, written in Go. A
// worker is started once and answers many calls: a hook costs a pipe where a
// command costs a process.
//
// # Usage
//
// Handlers are those that a program with Belay inside would have, on the same
// phases and with the same types:
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
// The same program works as a command: with command in the place of worker it is
// started for each call.
//
// # The protocol
//
// A worker in another language has to do this much. Each line on standard input is a
// JSON-RPC 2.0 message, and so is each line on standard output, of at most 1 MiB. What
// is written to standard error goes to the log. The first call is a handshake, and
// answers with the version of the protocol that the worker speaks:
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
// Calls may overlap, and may be answered in any order. One that nobody waits for any
// more is cancelled by a notification, which a worker may ignore:
//
//	> {"jsonrpc":"2.0","method":"cancel","params":{"id":2}}
//
// Standard input ends when the worker is to end. A line on standard output that is
// none of this ends the worker: print to standard error.
//
// # Concurrency
//
// Each call runs on a goroutine of its own. Its context ends when nobody waits for the
// answer any more.
//
// # Errors
//
// The error of a handler fails that run, and so does a panic; both leave the worker
// running. [Serve] returns an error when it cannot understand what it reads or cannot
// write.
//
// # Testing
//
// A handler is a plain function. [Serve] works on any reader and writer.
package worker
