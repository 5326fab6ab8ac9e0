//go:build unix

package skill

import "syscall"

// nonblocking is the flag that keeps open from blocking on a pipe.
const nonblocking = syscall.O_NONBLOCK
