// Package memory has an agent remember across conversations: facts about its user and
// their project, in a file, found again by their words.
//
// # Usage
//
//	memories, err := memory.Open(ctx, "memory.db", nil)
//	...
//	remembers, err := memory.New(memories, &memory.Options{Transcript: store, Project: "website"})
//	...
//	agent, err := belay.New(model, &belay.Options{Store: store, Extensions: []belay.Extension{remembers}})
//
// The extension is a domain on hooks, and the loop knows nothing of it. It subscribes to
// seven phases:
//
//	turn.pre_policy                      may this turn read, may it write? See PolicyRead and PolicyWrite
//	turn.pre_prompt_context              recall of what the user's text brings to mind
//	turn.post_preflight_prompt_context   recall of what the preflight plan asks for. See Planner
//	turn.pre_tool_materialization        memory_search, memory_get, memory_remember, memory_forget
//	turn.pre_prompt_compile              how to use the tools, if there are any
//	tool.pre                             no tool does what the turn may not, whoever offered it
//	turn.post_turn                       extraction of what is worth remembering, in the background
//
// With Options.Subagent the tools are a subagent's, and the agent hands its questions to
// it: see [Extension.SubagentTools].
//
// # What is remembered
//
// A [Memory] has a text, tags, a [Scope] (a user's, a project's or an agent's), a [State],
// and the session and turn that it is from. Extraction goes through what the user said in a
// turn, and never through what tools or files said. An [Extractor] finds what is worth it:
// [Sentences] by the form of sentences, [ModelExtractor] by asking a model. Each turn counts
// once, whatever becomes of the process that is at it. With Options.Propose memories wait
// until somebody accepts them.
//
// # Safety
//
// Recalled text is data. It is marked as such, bounded in size, on one line, and escaped, so
// that it cannot pose as anything else in the prompt. A turn sees the scopes of its user, its project
// and its agent. With Options.User what an agent notes is apart for each user; a project's
// memories are shared. Forgetting removes the text and every word it is found by, from the
// file and from its log, and it does not come back from turns that began before; what the
// file system or a backup keeps is out of reach.
//
// # Concurrency
//
// A [Store] and an [Extension] are safe for concurrent use, several processes may have one
// file open, and neither has goroutines of its own. Extraction needs somebody who works
// the agent's jobs: agent.Hooks().Work.
//
// # Errors
//
// Recall that fails leaves a turn without memories, and a diagnostic. A turn whose policy,
// or whose user, cannot be found out reads and writes nothing, whatever other hooks say. [ErrNotFound], [ErrForgotten], [ErrTooLong]
// and [ErrEmpty] are asked for with errors.Is; a model is told in the tool's result.
//
// # Testing
//
// A store in a test's temporary directory is quick, and [Store.Search], [Classify],
// [Queries] and extractors are plain functions. Package belaytest takes turns with an agent
// that has the extension.
package memory
