// Package demo is the guided tour of `belay demo`. It runs a real session in a temporary
// directory, with SQLite, real tools and a model that plays a script. It needs no key and
// no network, and leaves no files behind.
//
// In the tour, hooks add context, rewrite, deny, redact, time out, ask a person and
// continue the turn. The process is killed in the middle of a tool call, and another
// process resumes the turn. Then the tour shows the records and the transcript.
package demo
