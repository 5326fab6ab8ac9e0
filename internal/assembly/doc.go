// Package assembly makes agents of settings: it reads the places that hold hooks, skills, agents and MCP servers,
// opens the model and the store, builds the floor and the sandbox, and puts all of it into one agent. Package host
// offers it to programs; the command line uses both. It knows no flags, no terminal and no exit codes: it reports
// information for people as a [Notice], and mistakes that they must correct as an [Error].
//
//   - assembler.go, assembled.go: options of a program, and the agent with everything that it uses
//   - model.go, modelkey.go, calledmodel.go: providers, keys, and models under the names of the settings
//   - floor.go, confine.go, readonly.go, gitlink.go, keyguard.go, later.go: permissions of calls, and how commands
//     are confined
//   - places.go, registry.go, reload.go, claude.go: directories of hooks, loaded spaces, and changed files
//   - declared.go, agentcheck.go, skillset.go, stocktools.go, servers.go, memories.go: agents, skills, tools, MCP and
//     memory
//   - storage.go, database.go, remember.go: the store, and the settings that are stored to resume a turn
package assembly
