// Package subagent lets an agent hand tasks to others: agents with a model, tools and
// sessions of their own, functions in Go, services elsewhere.
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
// The factory is called for every task and returns anything with a Run method: a
// [belay.Session] has one. [Agent] makes an agent with a session for each task, [Built] has
// a function make an agent for each, [Canned] is a function that answers, and a proxy to
// another service is a type with one method. A child sees the prompt and nothing else of the conversation.
//
// [Load] reads agents that are declared in files, in YAML, JSON, or Markdown with
// frontmatter. How a model's name and the names of tools become an agent the program
// says, see [Declaration.Factory].
//
// # Families
//
// Between subagent_invoked and subagent_completed, which come in pairs whatever
// happens, those who watch the parent see everything that the child tells, with its
// run, its parent and its depth. In a child that is an agent of this runtime the parent's
// hooks, floor, scope, resources and budget hold, and what needs a person is asked where the
// parent asks, unless the subagent is isolated. What the child takes is counted for the parent.
//
// A child that is parked parks the parent: the call waits. When the parent is resumed
// the factory is called again, over the same child session, and both go on.
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
// agents may share one, children too: what its factories made is closed with the last of
// the parents. Subagents that are called in one message run at the
// same time.
//
// # Errors
//
// Nothing that a child does ends its parent's turn. An unknown name, a factory that
// fails or panics, a run that fails, times out or ends otherwise than by itself are error
// results, which tell the model what happened and what the child said last. Mistakes in
// files are a [Problem] each, with path and line, and do not hide other files.
//
// # Testing
//
// [Canned] stands in for a subagent. Package belaytest takes turns with an agent that
// has the extension; the events of children are among those of the turn.
package subagent
