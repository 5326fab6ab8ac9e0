//go:build !unix

package skill

// nonblocking keeps the opening of a pipe from waiting for its other end, where
// there are pipes among files.
const nonblocking = 0
