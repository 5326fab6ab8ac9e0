//go:build darwin || linux

package mcptool

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock of a file. It returns nil if another goroutine or process has it.
// The system frees the lock when the process ends, so a lock is never left over.
func tryLock(name string) (free func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return func() { _ = f.Close() }, nil // closing frees the lock
	}
	if closed := f.Close(); !errors.Is(err, syscall.EWOULDBLOCK) || closed != nil {
		return nil, errors.Join(err, closed)
	}
	return nil, nil //nolint:nilnil // another has the lock
}
