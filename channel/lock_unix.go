//go:build unix

package channel

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile locks a file until it is closed or the process ends. It returns false if another
// process has locked it.
func lockFile(file *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, fmt.Errorf("lock %s: %w", file.Name(), err)
		}
	}
}
