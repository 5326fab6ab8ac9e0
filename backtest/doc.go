// Package backtest tries a changed policy on recorded sessions before it is switched on.
//
// Experimental: the report is new, and comparisons of more phases will change it.
//
// # Usage
//
// [Run] reads the user messages, tool calls and results of stored sessions. It asks the
// hooks and the floor of a [Policy] about each of them, and compares the answers with what
// happened. The [Report] lists every message, call and result whose outcome would differ,
// who causes the difference, and why. No model and no tool runs.
//
// # What is asked
//
// Hooks are asked at user.prompt.submit, tool.pre, approval.request and tool.post, in plan
// order, as in a turn. The floor checks the final input of each call. Each call is checked
// by itself: a conversation that would have gone another way after a difference is not
// imagined. Hooks see no turn policy and no prompt context, because neither is stored. So a
// floor does not see the mode in which a turn ran. All turns of a session are asked with the
// policy of the agent that ran its last turn.
//
// Hooks that may have effects outside the process (commands, workers, webhooks and actions
// that write files) are not asked, unless [Options] says that they may be. The report lists
// them, and counts the outcomes that are unknown for this reason.
//
// # What a record does not hold
//
// A user message that a hook denied is not in the transcript, so it cannot be replayed. A
// result that a hook rewrote is stored in its new form. Calls that never reached a hook
// (unknown tool, invalid input, out of scope) are counted and not replayed. A call that an
// interceptor refused looks like a call that a hook refused.
//
// # Errors
//
// Run returns an error if the hooks cannot be installed, if a session does not exist, or if
// records cannot be read. A hook or a floor that fails is part of the report: a gate that fails
// closed denies, as in a turn.
//
// # Concurrency
//
// Run replays several sessions at a time. The report does not depend on it: its order is
// the order in which the sessions began.
//
// # Testing
//
// Record sessions with provider/scripted and store/memstore, and compare Report.Differences:
// see the example.
package backtest
