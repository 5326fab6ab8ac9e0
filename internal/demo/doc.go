// Package demo is the guided tour of `belay demo`: a real session in a scratch
// directory, on SQLite, with real tools and a model that plays a script. Hooks add
// context, rewrite, deny, redact, time out, ask a person, change the model's course
// and continue the turn; the process is killed in the middle of a tool, and another
// one resumes the turn; then the session explains itself. It needs no key and no
// network, and leaves nothing behind.
package demo
