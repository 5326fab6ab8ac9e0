// Package host runs agents as the command line does, in a program of your own.
//
// [Open] reads the same settings and files as the command belay: the belay.yaml files of the machine, the user and
// the project, their hooks, skills, agents and MCP servers, the loaded spaces, and what the user has trusted. It
// opens the store and the model that they name. [Host.Agent] returns the agent that the settings describe, with the
// stock tools, the floor that checks every call, the sandbox for commands, and memory if it is switched on.
//
// # Usage
//
//	func main() {
//		sandbox.Main() // first: it lets this program confine the commands that agents run
//		ctx := context.Background()
//		h, err := host.Open(ctx, nil)
//		if err != nil {
//			panic(err)
//		}
//		defer h.Close()
//		agent, err := h.Agent(ctx, host.Main)
//		if err != nil {
//			panic(err)
//		}
//		turn, err := agent.Session("demo").Turn(ctx, "tidy the changelog")
//		fmt.Println(turn.Text, err)
//	}
//
// Without [sandbox.Main] some machines have no sandbox for this program. Agents then ask before more commands, and
// none runs if the setting sandbox.mode is require.
//
// Set a field of [Options] to bring something of your own: a model, a store, an approver, hooks, extensions, or
// values that overrule the settings. If you need only some of the parts, use their packages: this one is made of
// belay, permit, sandbox, toolbox, skill, subagent, space, mcptool, memory, and the stores and providers.
//
// # Approvals
//
// Calls that need approval go to [Options.Approver]. Without one the turn parks. Decide about the approval in the
// store, for example with "belay approvals", and resume the session.
//
// # Concurrency
//
// Several goroutines may use a Host at once. Close it after the last turn has ended.
//
// # Errors
//
// A file with a mistake is an error of Open or Agent, because it may hold a gate. A problem that only limits an
// agent, such as a skill that cannot be loaded, is a [Notice].
//
// # Testing
//
// Set Options.Dir and Options.UserDir to directories of the test, Options.Environ to an empty list, and Options.Model
// to a scripted model. Then nothing depends on the machine or on a network.
package host
