// Package mcptool gives agents the tools of MCP servers: local programs over standard
// input and output, and remote servers over streamable HTTP.
//
// # Usage
//
// Servers are declared in Go, or in an mcp.json file as other programs use it:
//
//	config, err := mcptool.Load("mcp.json")
//	...
//	servers, err := mcptool.New(ctx, config.Servers, &mcptool.Options{Dir: project})
//	...
//	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{servers}})
//
// A tool is called server__tool, see [ToolName]. [Server].Tools limits a server to some
// of its tools. The agent's Scope applies as to all tools, and its Resources may name
// servers, and tools of servers, under "mcp". An extension is closed with its agent. To
// share servers between agents, give each agent its own extension and all of them one
// [Pool]: identical configurations then use one process, which ends with the last
// extension. [Extension.Add] adds servers while agents work.
//
// # What a server may do
//
// This package starts every server that it is given. The caller decides whether the
// programs of a file may be started. A program gets the usual variables (PATH, HOME, LANG,
// LC_*, TZ, TMPDIR, USER, SHELL) and those that its declaration names, and no other
// variables of the host. It is not sandboxed.
//
// Every call passes hooks and the floor, as with any tool. The annotations of a server
// never loosen a check. If the server marks a tool as destructive, the hook
// mcp.destructive asks for approval even where the floor would allow the call. A tool
// marked as read-only may run in parallel with others; all other tools run alone. No call
// is repeated after a crash.
//
// # Servers come and go
//
// A server that has ended is started again, with a delay that doubles up to 30 seconds.
// Until it is back, calls of its tools fail as unavailable. So does a call that was
// running, and the model learns that it may have had an effect. A slow server delays the
// start by at most [Options].Wait: its tools appear when it is ready. When a server's list
// of tools changes, the next request has the new tools.
//
// Standard error of a program is logged, up to a limit. A program that prints anything
// but messages to standard output, or a message of more than 16 MiB, is stopped. Its
// status gives the reason.
//
// # Besides tools
//
// The instructions of a server are added to the prompt of agents that have its tools. A
// server with resources brings the tool read_resource, and one with prompts get_prompt.
// The agent's Asker passes a server's question to the user. Without an Asker the question
// is declined.
//
// # Concurrency
//
// An [Extension] and a [Pool] are safe for concurrent use. Each server has one goroutine
// that manages it, and those of its session. They end with the last extension that uses the
// server. [Extension.Close] waits for that, so that no process is left.
//
// # Errors
//
// The error of [Load] joins a [FaultError] for each mistake. [New] rejects invalid servers
// and duplicate names. A server that does not start is not an error: [Extension.Servers]
// reports the state of each. A failed call becomes a result for the model, of class
// unavailable if the server is the reason.
//
// # Testing
//
// [Extension.Await] waits until a server has the state that a test needs. A server for
// tests is a few lines with the official SDK, in the test's own program.
package mcptool
