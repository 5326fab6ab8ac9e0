// Package host runs agents in your own program, as the command belay does.
//
// [Open] reads the same settings and files as the command belay:
//
//   - the belay.yaml files of the machine, the user and the project
//   - their hooks, skills, agents and MCP servers
//   - the loaded spaces
//   - the list of files that the user trusts
//
// Open also opens the store and the model that the settings name. [Host.Agent] returns the
// agent that the settings describe. The agent has the stock tools, the floor that checks
// every call, the sandbox for commands, and memory if it is switched on.
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
// On some machines the sandbox works only if your program calls [sandbox.Main]. Without a
// sandbox, more commands need approval. If the setting sandbox.mode is require, no
// command runs without a sandbox.
//
// Set a field of [Options] to use your own model, store, approver, hooks or extensions, or
// to override settings. If you need only some of the parts, use their packages directly:
// belay, permit, sandbox, toolbox, skill, subagent, space, mcptool, memory, and the stores
// and providers.
//
// # Approvals
//
// [Options.Approver] decides about calls that need approval. Without one the turn parks.
// Decide about the approval in the store, for example with "belay approvals", and resume
// the session.
//
// # Concurrency
//
// A Host is safe for concurrent use. Close it after the last turn has ended.
//
// # Errors
//
// If a file has a mistake, Open or Agent returns an error, because the file may contain a
// gate. A problem that only limits an agent, such as a skill that cannot be loaded, is a
// [Notice].
//
// # Testing
//
// Set Options.Dir and Options.UserDir to directories of the test, Options.Environ to an
// empty list, and Options.Model to a scripted model. Then the test does not depend on the
// machine or on a network.
package host
