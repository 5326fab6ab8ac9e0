// Package acp lets editors drive agents, with the Agent Client Protocol. The command
// "belay acp" is this package over standard input and output. Zed, the JetBrains IDEs and
// plugins of Neovim speak the protocol.
//
// Experimental: the SDK of the protocol has no version 1 yet.
//
// # Usage
//
//	server := acp.New(acp.Hosts(nil), nil)
//	err := server.Serve(ctx, os.Stdin, os.Stdout)
//
// [Hosts] makes the agents of the settings and files of the directory in which an editor
// opens a session, as package host does. [Fixed] uses one agent of your own for all
// sessions. Implement [Source] for anything else.
//
// # Approvals
//
// A turn that needs approval parks: the question is in the store before the editor is asked.
// So the decision may come from anywhere. If somebody decides with "belay approvals" or in
// the console, the question in the editor is withdrawn and the turn continues. If the editor
// vanishes, the turn stays parked. The next message in the session asks again.
//
// # Files, commands and servers
//
// Tools work on the files on disk, and commands run in Belay's sandbox, not in terminals of
// the editor: an editor cannot confine a command. MCP servers that an editor passes along
// belong to the user's own configuration, as those of --mcp: they start without trust, and the
// floor checks the calls of their tools.
//
// # Concurrency
//
// A Server is safe for concurrent use, and one connection may have many sessions. Each
// session runs one turn at a time.
//
// # Errors
//
// A client gets an error as a JSON-RPC error with a text for people. No message of a client
// ends the connection. Serve returns nil when the client closes its stream.
//
// # Testing
//
// Use io.Pipe and the client of github.com/coder/acp-go-sdk, see the tests of this package.
package acp
