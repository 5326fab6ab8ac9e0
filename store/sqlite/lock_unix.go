//go:build unix

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks a file, exclusively or shared. The lock lasts until the file is closed or
// the process ends. lockFile returns false if another process has locked the file.
func lockFile(file *os.File, shared bool) (bool, error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	for {
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, &os.PathError{Op: "lock", Path: file.Name(), Err: err}
		}
	}
}

// dropFile removes a locked file and then releases the lock. In this order no process sees
// the file unlocked.
func dropFile(file *os.File) error {
	err := os.Remove(file.Name())
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, file.Close())
}
