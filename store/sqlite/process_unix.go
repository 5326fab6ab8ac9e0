//go:build unix && !linux

package sqlite

import (
	"errors"
	"syscall"
)

// processStart returns "lives" if the process is alive, and "" otherwise. It cannot detect
// that another process has the same id.
func processStart(pid int64) string {
	if err := syscall.Kill(int(pid), 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return ""
	}
	return "lives"
}
