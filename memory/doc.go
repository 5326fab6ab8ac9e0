// Package memory lets an agent remember facts about its user and project in later
// conversations. The facts are stored in a file and found by their words.
//
// # Usage
//
//	memories, err := memory.Open(ctx, "memory.db", nil)
//	...
//	remembers, err := memory.New(memories, &memory.Options{Transcript: store, Project: "website"})
//	...
//	agent, err := belay.New(model, &belay.Options{Store: store, Extensions: []belay.Extension{remembers}})
//
// The extension consists of hooks, and the loop of belay does not depend on it. It
// subscribes to these phases:
//
//	turn.pre_policy                      whether this turn may read and write. See PolicyRead and PolicyWrite
//	turn.pre_prompt_context              recall of memories that match the user's text
//	turn.post_preflight_prompt_context   recall of memories that the preflight plan asks for. See Planner
//	turn.pre_tool_materialization        memory_search, memory_get, memory_remember, memory_forget
//	turn.pre_prompt_compile              how to use the tools, if there are any
//	tool.pre                             denies tools that the turn must not use, also those of other extensions
//	turn.post_turn                       extraction of lasting facts, in the background
//
// Extraction needs Options.Transcript. With Options.Subagent, a subagent has the tools
// instead, and the agent asks the subagent. The extension then also subscribes to
// subagent.start and subagent.stop. See [Extension.SubagentTools].
//
// # What is remembered
//
// A [Memory] has a text, tags, a [Scope] (a user, a project or an agent), a [State], and
// the session and turn that it comes from. Extraction reads only the user's words in a
// turn, never the content of tools or files. An [Extractor] finds what is worth
// remembering: [Sentences] by the form of sentences, [ModelExtractor] by asking a model.
// Each turn is processed only once, even if the process crashes. With Options.Propose, new
// memories wait until somebody accepts them.
//
// # Safety
//
// Recalled text is untrusted data. The prompt marks it as data, limits its size, puts it on
// one line and escapes it, so that it cannot look like anything else. A turn sees the
// scopes of its user, its project and its agent. With Options.User, an agent's notes are
// separate for each user. The memories of a project are shared. Forgetting removes the text
// and its search words from the file and from its log. A turn that began earlier cannot add
// the forgotten fact again. Copies in the file system or in backups are not removed.
//
// # Concurrency
//
// A [Store] and an [Extension] are safe for concurrent use and have no goroutines of their
// own. Several processes may have the same file open. Extraction needs a worker for the
// agent's jobs: agent.Hooks().Work.
//
// # Errors
//
// If recall fails, the turn has no memories and reports a diagnostic. If the policy or the
// user of a turn cannot be determined, the turn reads and writes no memories, whatever
// other hooks say. Check [ErrNotFound], [ErrForgotten], [ErrTooLong] and [ErrEmpty] with
// errors.Is. A model sees them in the tool's result.
//
// # Testing
//
// A store in t.TempDir is fast. [Store.Search], [Classify], [Queries] and extractors can be
// tested without an agent. Package belaytest runs turns with an agent that has the
// extension.
package memory
