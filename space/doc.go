// Package space loads directories of hooks, skills, agents and MCP servers. It installs them
// into a running agent, reloads them when their files change, and unloads them completely.
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
// [Load] reads one and runs nothing. A [Host] has the operator's settings on what spaces
// may do, and installs them:
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
// The directory .belay of a project and that of a user's or a system's settings have the
// same layout, without a manifest, and the origins project and operator.
//
// # Who may do what
//
// Hooks from Go code and from the operator may do everything. Hooks of a project or a space may
// observe, deny, ask and add context. Their commands, workers and servers run only after a
// person has trusted the directory in its current state: [Trust] records a hash over every file
// that can affect what runs. Rewriting, answering, approving, webhooks and the network each
// need a named grant in addition, which is part of the trust. When a file changes, trust and
// grants are void: gates deny and say why, other hooks do not run. [Lease.Notes] lists them.
//
// # Concurrency
//
// A [Host], a [Trust] and a [Lease] are safe for concurrent use. Running turns keep the
// hooks that they started with; reloading does not wait for them, unloading does.
//
// # Errors
//
// The error of [Load] joins a [Problem] for each mistake, with file and line. Nothing of a
// directory with mistakes is installed: the unreadable part may be a gate. If a reload
// fails, the installed state stays.
//
// # Testing
//
// Load a directory of the test, and record trust in a file of the test.
package space
