// Package assembly makes agents from settings. It reads the places with hooks, skills,
// agents and MCP servers, opens the model and the store, and builds the floor and the
// sandbox. Then it makes an agent of all this. Package host offers it to programs, and the
// command line uses both.
//
// The package knows no flags, no terminal and no exit codes. It reports information for
// people as a [Notice], and mistakes that they must correct as an [Error].
//
//   - assembler.go, assembled.go: options of a program, and the agent with everything
//     that it uses
//   - model.go, modelkey.go, calledmodel.go: providers, keys, and models with the names
//     in the settings
//   - floor.go, confine.go, readonly.go, gitlink.go, keyguard.go, later.go: permissions
//     of calls, and the sandbox for commands
//   - places.go, registry.go, reload.go, claude.go: directories of hooks, loaded spaces,
//     and changed files
//   - declared.go, agentcheck.go, skillset.go, stocktools.go, servers.go, memories.go:
//     agents, skills, tools, MCP and memory
//   - storage.go, database.go, remember.go: the store, and the settings that are stored
//     to resume a turn
package assembly
