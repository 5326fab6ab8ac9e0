//go:build unix

package sqlite

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// surviveLimit keeps the process alive when a file reaches the process's limit (ulimit
// -f): the signal that the system sends ends a Go program. The write still fails, with
// ErrFull. Child processes get the signal as usual.
var surviveLimit = sync.OnceFunc(func() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ) // nobody reads it
})
