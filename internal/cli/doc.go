// Package cli is the command line: cmd/belay calls [Main] and nothing else. It reads flags, prints, and asks the person at the
// terminal. Package internal/assembly makes the agents, and package host runs those of the worker.
//
// One file holds one command. What several commands share has files of its own: the app with its streams (app.go), exit codes
// (exit.go), settings and sessions (open.go), the agent of a command (work.go), listings and --json (list.go, json.go), and what
// a turn looks like on a terminal (printer.go).
//
// Standard output carries results: the model's text, listings, JSON. Everything else goes to standard error: progress, questions,
// remarks and errors. So output can be piped.
package cli
