// Package demo is the guided tour of Belay. It runs a real session in a temporary
// directory, with real tools and a model that plays a script. It needs no key and no
// network, and leaves no files behind.
//
// In the tour, hooks add context, rewrite, deny, redact, time out, ask a person and
// continue the turn. Then the tour shows the records and the transcript.
//
// `go run ./cmd/belay-tour` runs it with a store in memory, and compiles in less than a
// minute. In `belay demo` (package whole) the store is SQLite: the process is killed in the
// middle of a tool call, and another process resumes the turn.
package demo
