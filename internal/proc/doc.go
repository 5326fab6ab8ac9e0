// Package proc runs child processes that can neither hang nor flood the process
// that asked for them.
//
// [Run] starts a child in a session and process group of its own, without a
// terminal. It feeds it, reads it, and ends the whole group when the context
// does. It returns when the child has ended, even if other processes still hold
// its pipes. [Window] and [Cap] keep what a child writes within bounds.
//
// If this process is killed, it cannot end the group. On Linux the kernel then
// kills the child at once, but not the child's own children. On other systems the
// child continues too.
package proc
