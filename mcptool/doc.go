// Package mcptool gives agents the tools of MCP servers. A server is a local program that
// Belay talks to over standard input and output, or a remote server over streamable HTTP.
//
// # Usage
//
// Declare servers in Go, or in an mcp.json file like those of other programs:
//
//	config, err := mcptool.Load("mcp.json")
//	...
//	servers, err := mcptool.New(ctx, config.Servers, &mcptool.Options{Dir: project})
//	...
//	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{servers}})
//
// A tool's name is server__tool, see [ToolName]. [Server].Tools limits a server to some
// of its tools. The agent's Scope applies to these tools as to all others. The agent's
// Resources may name servers and their tools under "mcp". [Extension.Add] adds servers
// while agents work.
//
// Closing an agent closes its extension. To share servers between agents, give each agent
// its own extension and give all extensions one [Pool]. Extensions with identical
// configurations then use one process. The process ends when the last of these extensions
// is closed.
//
// # What a server may do
//
// This package starts every server in its configuration. The caller decides whether the
// programs of a file may be started. A program gets the usual variables (PATH, HOME,
// LANG, LC_*, TZ, TMPDIR, USER, SHELL) and the variables that its declaration names. It
// gets no other variables of the Belay process. The program is not sandboxed.
//
// Every call must pass the hooks and the floor (Belay's permission check), like a call of
// any tool. A server's annotations never loosen a check. If the server marks a tool as
// destructive, the hook mcp.destructive asks for approval, even if the floor would allow
// the call. A tool that the server marks as read-only may run in parallel with other
// tools. All other tools run alone. Belay never repeats a call after a crash.
//
// # When a server ends or changes
//
// Belay restarts a server that has ended, after a delay that doubles up to 30 seconds.
// Until the server is ready again, calls of its tools fail as unavailable. A call that
// was running when the server ended also fails as unavailable, and the result tells the
// model that the call may have had an effect. [New] waits for a slow server only for a
// limited time, see [Options].Wait. Its tools appear when the server is ready. When a
// server's list of tools changes, the next model request has the new tools.
//
// Belay logs the standard error of a program, up to a limit. Belay stops a program that
// prints something other than messages to standard output, or a message of more than 16
// MiB. The program's status then gives the reason.
//
// # Besides tools
//
// Belay adds the instructions of a server to the prompt of agents that have its tools.
// For a server with resources, Belay adds the tool read_resource. For a server with
// prompts, Belay adds the tool get_prompt. Users can name both in a message, as @server:uri
// and /server:prompt. The agent's Asker passes a server's question to the user. Without an
// Asker, the turn parks with the question, and the call is made again after the answer: see
// [belay.ParkAsk]. [Logins] keeps the OAuth logins of servers with a URL.
//
// # Concurrency
//
// An [Extension] and a [Pool] are safe for concurrent use. Each server has one goroutine
// that manages it, and the goroutines of its MCP session. They end when the last
// extension that uses the server is closed. [Extension.Close] waits for their end, so
// that no process is left.
//
// # Errors
//
// The error of [Load] joins one [FaultError] for each mistake. [New] rejects invalid
// servers and duplicate names. A server that does not start is not an error:
// [Extension.Servers] reports the state of each server. A failed call becomes a result
// for the model. The class of the result is unavailable if the server is the reason.
//
// # Testing
//
// [Extension.Await] waits until a server has the state that a test needs. You can write a
// server for tests in a few lines with the official SDK, inside the test's own program.
package mcptool
