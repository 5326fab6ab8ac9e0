// Package codex reads the hooks of Codex.
//
// Experimental: the packages for other agents follow contracts that their vendors change at any
// time.
//
// # Usage
//
// [ReadHooks] turns the text of a hooks.json into declarations of package declare.
//
// # Concurrency
//
// The declarations can be used from several goroutines.
//
// # Errors
//
// Only a file that is not JSON is an error. What Belay cannot use becomes a note.
//
// # Testing
//
// The tests have a table of events, outputs and expected answers.
package codex
