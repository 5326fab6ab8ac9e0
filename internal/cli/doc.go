// Package cli is the command line: cmd/belay calls [Main] and nothing else. One
// file holds one command. What several commands share has files of its own: the
// app with its streams (app.go), exit codes (exit.go), settings, store and agent
// (open.go, work.go), what a turn looks like on a terminal (printer.go).
//
// Standard output carries results: the model's text, listings, JSON. All else,
// progress, questions, remarks and errors, goes to standard error, so that
// output can be piped.
package cli
