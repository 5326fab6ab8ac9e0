//go:build unix && !linux

package sqlite

import (
	"errors"
	"syscall"
)

// processStart returns a text if the process is alive, and "" otherwise. It does not
// check the start time: a reused id counts as the same process.
func processStart(pid int64) string {
	if err := syscall.Kill(int(pid), 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return ""
	}
	return "lives"
}
