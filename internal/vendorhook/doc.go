// Package vendorhook runs the hooks of other coding agents. The agents share one form of
// hook files and one way to talk to a hook's command. A [Profile] has what differs from
// vendor to vendor.
//
// # Usage
//
// [Read] turns the text of hook files into declarations. Package declare runs them, with
// the same limits, sandbox and trust as Belay's own commands. The protocol of each
// declaration translates the event for the command, and the command's answer for the phase.
//
// # Concurrency
//
// A reading is safe for concurrent use: hooks of one event run at the same time.
//
// # Errors
//
// A file of another agent is read leniently. What cannot be used becomes a [Note] with its
// line, and the rest is used. A file that is not JSON is an error.
//
// # Testing
//
// The packages below dialect have tables of events, outputs and expected answers.
package vendorhook
