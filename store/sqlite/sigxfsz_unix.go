//go:build unix

package sqlite

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// surviveLimit keeps the process alive when a file reaches the process's size limit (ulimit
// -f). Otherwise the signal SIGXFSZ ends a Go program. The write still fails, with ErrFull.
// Child processes get the signal as usual.
var surviveLimit = sync.OnceFunc(func() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ) // no one reads the channel
})
