// Package proc runs child processes that cannot hang this process or fill its
// memory.
//
// [Run] starts a child in a session and process group of its own, without a
// terminal. It writes its input, reads its output, and ends the whole group when
// the context ends. It returns when the child has ended, even if other processes
// still hold its pipes. [Window] and [Cap] limit the output of a child.
//
// If this process is killed, it cannot end the group. On Linux the kernel then
// kills the child at once, but not the child's own children. On other systems the
// child continues too.
package proc
