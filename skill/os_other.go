//go:build !unix

package skill

// nonblocking is the flag that keeps open from blocking on a pipe. This system
// needs none.
const nonblocking = 0
