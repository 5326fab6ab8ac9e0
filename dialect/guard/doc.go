// Package guard lets other coding agents call Belay as a hook. It reads an event in the
// agent's dialect, asks Belay's hooks and the floor, records what they did, and answers in
// the same dialect.
//
// Experimental: the packages for other agents follow contracts that their vendors change at any
// time.
//
// # Usage
//
// An [Engine] has the hooks, the floor and the store of a project. [Answer] reads an event
// and returns what the process must print, and its exit code:
//
//	output := guard.Answer(ctx, engine, guard.Request{Agent: dialect.ClaudeCode, Stdin: stdin, Dir: dir})
//
// One file for each agent has its dialect: how it writes events, and how it reads answers.
// A dialect says what an answer can express at each event. If it cannot express an answer,
// [Answer] gives a safer one: a denial in place of a question, of a changed input or of an
// end of the turn.
//
// # Concurrency
//
// All functions can be called from several goroutines.
//
// # Errors
//
// Answer returns no error. If an event cannot be read, or if something fails, the output
// denies, in the form that the agent obeys.
//
// # Testing
//
// Give Answer the text that an agent writes, and compare the output. The tests of this
// package have an example of each event and of each answer.
package guard
