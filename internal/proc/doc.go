// Package proc runs child processes that cannot block this process or fill its memory.
//
// [Run] starts a child in its own session and process group, without a terminal. It writes
// the child's input, reads its output, and ends the whole group when the context is done.
// It returns when the child has ended, even if other processes still have its pipes open.
// [Window] and [Cap] limit the output of a child.
//
// If this process is killed, it cannot end the group. On Linux the kernel then kills the
// child at once, but not the child's own children. On other systems, the child and its
// children continue.
package proc
