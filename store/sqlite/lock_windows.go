package sqlite

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

const (
	lockExclusive       = 2
	lockFailImmediately = 1
	errorLockViolation  = syscall.Errno(33)
)

// lockFile locks a file, exclusively or shared. The lock lasts until the file is closed or
// the process ends. lockFile returns false if another process has locked the file.
func lockFile(file *os.File, shared bool) (bool, error) {
	how := uintptr(lockFailImmediately)
	if !shared {
		how |= lockExclusive
	}
	lockFileEx := syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")
	// The locked byte is far behind the content, so that others may read the content.
	at := syscall.Overlapped{Offset: 1 << 30}
	ok, _, err := lockFileEx.Call(file.Fd(), how, 0, 1, 0, uintptr(unsafe.Pointer(&at))) //nolint:gosec // the call wants a pointer
	switch {
	case ok != 0:
		return true, nil
	case errors.Is(err, errorLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return false, nil
	default:
		return false, &os.PathError{Op: "lock", Path: file.Name(), Err: err}
	}
}

// dropFile releases the lock and then removes the file, because Windows cannot remove an
// open file.
func dropFile(file *os.File) error {
	err := file.Close()
	if removed := os.Remove(file.Name()); removed != nil && !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}
