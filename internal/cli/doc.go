// Package cli is the command line of Belay. cmd/belay only calls [Main]. The package reads
// flags, prints, and asks the person at the terminal. Package internal/assembly makes the
// agents, and package host runs the agents of workers.
//
// Each command has its own file. Several commands share these files: app.go (the
// streams), exit.go (exit codes), open.go (settings and sessions), work.go (the agent of
// a command), list.go and json.go (listings and --json), and printer.go (a turn on a
// terminal).
//
// Results go to standard output: the model's text, listings and JSON. Progress, questions,
// remarks and errors go to standard error, so that users can pipe the output.
package cli
