package filetest

import (
	"os"
	"syscall"
	"testing"
)

// WriteProgram writes a file that can be executed at once. With os.WriteFile that may fail
// with "text file busy": another goroutine that starts a process at this moment gives its
// child the open file for an instant (golang/go#22315). No process starts while
// WriteProgram writes.
func WriteProgram(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// AwaitForks returns when no process is being started. Files that were written and closed
// before can be executed after it. It is for files that a library wrote.
func AwaitForks() {
	syscall.ForkLock.RLock()
	syscall.ForkLock.RUnlock() //nolint:gocritic,staticcheck // to wait for the lock is all
}
