//go:build !darwin && !linux

package mcptool

import (
	"errors"
	"io/fs"
	"os"
)

// tryLock takes the lock of a file. It returns nil if another goroutine or process has it. If
// a process is killed while it has the lock, the lock stays, and the error of the refresh
// names the directory to remove.
func tryLock(name string) (free func(), err error) {
	err = os.Mkdir(name, 0o700)
	if err == nil {
		return func() { _ = os.Remove(name) }, nil // the user sees the error of the next refresh
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, nil //nolint:nilnil // another has the lock
	}
	return nil, err
}
