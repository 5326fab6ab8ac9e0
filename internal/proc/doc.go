// Package proc runs child processes that can neither hang nor flood the process
// that asked for them.
//
// [Run] starts a child in a session and process group of its own, without a
// terminal. It feeds it, reads it, and ends the whole group when the context
// does. It returns when the child has ended, whoever else still holds its pipes.
// [Window] and [Cap] keep what a child writes within bounds.
//
// If this process is killed, nobody is left to end the group. On Linux the kernel
// then kills the child, at once and without SIGTERM, but not what the child has
// started: that goes on, as on other systems the child does.
package proc
