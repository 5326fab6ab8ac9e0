// Package subagent lets an agent give tasks to subagents: agents with their own
// model, tools and sessions, Go functions, or other services.
//
// # Usage
//
// A [Subagent] is a name, a description and a [Factory]. An extension gives any number
// of them to an agent, which calls them with the tool invoke_subagent:
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
// The tool is advertised only while there are subagents, and lists them. With
// Options.Delegate there is a second one, delegate, which takes a list of tasks.
//
// The factory is called for every task and returns anything with a Run method: a [belay.Session] has one.
// [Agent] makes an agent with a session for each task, [Built] calls a function that makes an agent for
// each, and [Canned] answers with a function. A proxy to another service is a type with one method. A
// child sees only the prompt, nothing else of the conversation.
//
// [Load] reads agents that are declared in files, in YAML, JSON, or Markdown with
// frontmatter. The program decides how the names of a model and of tools become an
// agent, see [Declaration.Factory].
//
// # Families
//
// Watchers of the parent see all events of the child, with its run, its parent and its depth,
// between subagent_invoked and subagent_completed, which always come in pairs. If the child is
// a Belay agent, the parent's hooks, floor, scope, resources and budget apply to it. Its
// questions go where the parent's questions go, unless the subagent is isolated. The child's
// usage counts for the parent.
//
// A child that is parked parks the parent: the call waits. When the parent is
// resumed, the factory is called again with the same child session, and both
// continue.
//
// # Sessions
//
// A child has a session of its own in the parent's store, by default one for each call.
// Its id begins with the parent's. A durable subagent has one session for each parent
// session, so that it remembers; calls of it wait for one another.
//
// # Concurrency
//
// An [Extension] is safe for concurrent use, and has no goroutines of its own. Several
// agents may share one, also children. Its agents are closed with the last of the
// parents. Subagents that are called in one message run at the same time.
//
// # Errors
//
// Nothing that a child does ends its parent's turn. An unknown name, a factory that fails
// or panics, and a run that fails, times out or is stopped become error results. They
// tell the model what happened, with the child's last message. Each mistake in a file is
// a [Problem] with path and line; other files are loaded.
//
// # Testing
//
// Use [Canned] in place of a subagent. Package belaytest runs turns with an agent
// that has the extension; the events of the turn include those of children.
package subagent
