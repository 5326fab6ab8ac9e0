//go:build !unix

package skill

// nonblocking is the flag with which open does not block on a named pipe. This operating
// system needs none.
const nonblocking = 0
