// Package space loads directories of hooks, skills, agents and MCP servers: installs them
// into an agent while it runs, reloads them when their files change, and unloads them without a
// trace.
//
// # Usage
//
// A space is a directory:
//
//	manifest.json     {"id": "acme", "name": "Acme", "version": "1.2.0", "description": "…"}
//	hooks/*.yaml      hooks, with their scripts: see package declare
//	skills/           skills: see package skill
//	agents/*          agents: see package subagent
//	mcp.json, mcp/    MCP servers, with their programs: see package mcptool
//
// [Load] reads one and runs nothing. A [Host] has the operator's word on what spaces may
// do, and installs what was loaded:
//
//	host := space.NewHost(&space.Options{Trust: trust})
//	agent, err := belay.New(model, &belay.Options{Runtime: &hook.RuntimeOptions{Grants: host.Grants}, …})
//	...
//	loaded, err := space.Load("spaces/acme", hook.OriginSpace)
//	...
//	lease, err := host.Install(ctx, loaded, &space.Target{Hooks: agent.Hooks(), Skills: catalog, Subagents: subagents})
//	...
//	err = lease.Reload(ctx) // when its files have changed
//	...
//	err = lease.Unload(ctx)
//
// The directory .belay of a project and that of a user's or a system's settings are laid
// out the same, without a manifest: they have the origins project and operator.
//
// # Who may do what
//
// What Go code and the operator install may do everything. What a project or a space
// brings may look on, deny, ask and add context. Its commands, workers and servers run
// once a person has trusted the directory, as it is: [Trust] records a hash over every file that
// can make a difference. Rewriting, answering, approving, webhooks and the network each
// need a grant besides, by name, which goes with the trust. When a file changes both are
// gone: gates are closed and say so, other hooks do not run. [Lease.Notes] lists those.
//
// # Concurrency
//
// A [Host], a [Trust] and a [Lease] are safe for concurrent use. Turns that are under way
// keep the hooks that they began with; reloading does not wait for them, unloading does.
//
// # Errors
//
// The error of [Load] joins a [Problem] for each mistake, with file and line. Nothing of a
// directory with mistakes is installed: what cannot be read may be a gate. A reload that
// fails leaves in force what was there.
//
// # Testing
//
// Load a directory of the test, and record trust in a file of the test.
package space
