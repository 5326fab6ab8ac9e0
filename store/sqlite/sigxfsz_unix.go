//go:build unix

package sqlite

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// surviveLimit keeps the process alive when a file reaches the process's limit (ulimit
// -f): the signal that the system sends ends a Go program. The write fails all the
// same, and is told as ErrFull. Programs that this one starts get the signal as ever.
var surviveLimit = sync.OnceFunc(func() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ) // nobody reads it
})
