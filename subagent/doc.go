// Package subagent lets an agent give tasks to subagents. A subagent is an agent with its
// own model, tools and sessions, a Go function, or another service.
//
// # Usage
//
// A [Subagent] has a name, a description and a [Factory]. An extension gives any number
// of subagents to an agent. The agent calls them with the tool invoke_subagent:
//
//	subagents, err := subagent.New(nil)
//	...
//	_, err = subagents.Add(subagent.Subagent{
//		Name: "reviewer", Description: "Reviews a change. Give it the diff.",
//		Factory: subagent.Agent(model, &belay.Options{Instructions: "You review changes."}),
//	})
//	...
//	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{subagents}})
//
// The tool lists the subagents. An agent has the tool only while there are subagents.
// With Options.Delegate, there is also the tool delegate, which takes a list of tasks.
//
// The factory is called for every task. It returns a value with a Run method, such as a
// [belay.Session]. [Agent] makes one agent, with a session for each task. [Built] calls a
// function that makes an agent for each task. [Canned] answers with a function. To use
// another service, write a type with a Run method. A subagent sees only the prompt, and
// nothing else of the conversation.
//
// [Load] reads agents that are declared in files: in YAML, in JSON, or in Markdown with
// front matter. Your program decides how the names of a model and of tools become an
// agent, see [Declaration.Factory].
//
// # Parents and children
//
// Watchers of the parent see all events of the child, with its run, its parent and its
// depth. The child's events are between the events subagent_invoked and
// subagent_completed, which always come in pairs. If the child is a Belay agent, the
// parent's hooks, floor (permission check), scope, resources and budget apply to it. The
// parent's agent handles the child's questions, unless the subagent is isolated. The
// child's usage is added to the parent's usage.
//
// If a child is parked, the parent is parked too, and its call waits. When the parent is
// resumed, the factory is called again with the same child session, and both continue.
//
// # Sessions
//
// A child has its own session in the parent's store. By default, there is a new session
// for each call. Its id begins with the parent's id. A durable subagent has one session
// for each parent session, so that it remembers earlier tasks. Its calls run one after
// the other.
//
// # Concurrency
//
// An [Extension] is safe for concurrent use. It keeps no goroutines running. Several
// agents may share an extension, and so may their children. The agents that [Agent] has
// made are closed when the last parent is closed. Subagents that are called in one
// message run in parallel.
//
// # Errors
//
// A child never ends its parent's turn. These problems become error results: an unknown
// name, a factory that fails or panics, and a run that fails, times out or is stopped.
// The result tells the model what happened, and has the child's last message. Each
// mistake in a file is a [Problem] with path and line. The other files are loaded.
//
// # Testing
//
// Use [Canned] in place of a real subagent. Package belaytest runs turns of an agent with
// the extension. The events of a turn include the events of the children.
package subagent
