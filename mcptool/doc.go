// Package mcptool gives agents the tools of MCP servers: programs that are started and
// spoken with over standard input and output, and addresses that are reached by
// streamable HTTP.
//
// # Usage
//
// Servers are declared in Go, or in a file in the form that many programs share:
//
//	config, err := mcptool.Load("mcp.json")
//	...
//	servers, err := mcptool.New(ctx, config.Servers, &mcptool.Options{Dir: project})
//	...
//	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{servers}})
//
// A tool is called server__tool, see [ToolName]. [Server].Tools narrows a server to some
// of its tools, the agent's own Scope holds as for all tools, and its Resources may name
// servers, and tools of servers, under "mcp". An extension is closed
// with its agent. Agents that are to have the same servers have an extension each and a
// [Pool] together: identical configurations are one process then, which ends with the
// last of them. [Extension.Add] adds servers while agents work.
//
// # What a server may do
//
// This package starts what it is given; whether a file may have its programs started is
// for its caller to say. A program gets the usual variables (PATH, HOME, LANG, LC_*, TZ,
// TMPDIR, USER, SHELL) and those that its declaration names, and no other of the host's. It
// is not confined otherwise.
//
// Every call passes hooks and the floor, as that of any tool. What a server says about its
// tools loosens nothing. A tool that it calls destructive is asked about by a hook,
// mcp.destructive, wherever the floor would let it run; a tool that it calls read-only may
// overlap with others; every other one is a barrier, and none is run again after a crash.
//
// # Servers come and go
//
// A server that is gone is started again, with a pause that doubles up to 30 seconds. Its
// tools stay and fail as unavailable, until it is back. A call that was under way fails as
// unavailable, too, and the model is told that it may have had an effect. A server that is
// slow to start holds up nobody for longer than [Options].Wait: its tools come when it is
// ready. When a server's list of tools changes, the next request has the new tools.
//
// What a program prints to standard error is logged, up to a bound. One that prints
// something else than messages to standard output, or a message of more than 16 MiB, is
// stopped, and told so by its status.
//
// # Besides tools
//
// The instructions of a server are added to the prompt of agents that have its tools. A
// server with resources brings the tool read_resource, and one with prompts get_prompt. A
// question of a server is put to the user by the agent's Asker, and declined without one.
//
// # Concurrency
//
// An [Extension] and a [Pool] are safe for concurrent use. Each server has a goroutine that
// keeps it, and those of its session. They end with the last extension that has it:
// [Extension.Close] waits for that, and no process is left.
//
// # Errors
//
// The error of [Load] joins a [FaultError] for each mistake. [New] refuses servers that make
// no sense and two of one name. That a server does not start is no error:
// [Extension.Servers] tells how each of them is. What goes wrong with a call is a result for
// the model, of class unavailable where the server is the reason.
//
// # Testing
//
// [Extension.Await] waits for a server to be as wanted, without a clock. A server for tests
// is a few lines with the official SDK, in the test's own program.
package mcptool
