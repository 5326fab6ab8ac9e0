// Package space loads directories of hooks, skills, agents and MCP servers. It installs
// them into a running agent, reloads them when their files change, and unloads them
// completely.
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
// [Load] reads a space and runs nothing. A [Host] installs spaces. Its [Options] are the
// operator's settings for what spaces may do:
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
// The directory .belay of a project, and the settings directory of a user or a system, have
// the same layout without a manifest. Their origins are project and operator.
//
// # Who may do what
//
// Hooks in Go code and hooks of the operator may do everything. Hooks of a project or a
// space may observe, deny, ask and add context. Their commands, workers and servers run
// only if a person has trusted the directory in its current state. [Trust] records a hash
// of every file that can affect what runs. To rewrite, answer, approve, call webhooks or
// use the network, a directory also needs a grant for each of them. Grants are part of the
// trust. When a file changes, trust and grants are void: gates deny and say why, and other
// hooks do not run. [Lease.Notes] lists these hooks.
//
// # Concurrency
//
// A [Host], a [Trust] and a [Lease] are safe for concurrent use. A running turn keeps the
// hooks that it started with. Reload does not wait for running turns, Unload does.
//
// # Errors
//
// The error of [Load] joins a [Problem] for each mistake, with file and line. A directory
// with mistakes is not installed at all, because the part that cannot be read may be a
// gate. If a reload fails, the installed version stays in use.
//
// # Testing
//
// In tests, load a directory that the test writes, and keep the trust records in t.TempDir.
package space
