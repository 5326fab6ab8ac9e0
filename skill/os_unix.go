//go:build unix

package skill

import "syscall"

// nonblocking is the flag with which open does not block on a named pipe.
const nonblocking = syscall.O_NONBLOCK
