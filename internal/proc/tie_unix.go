//go:build unix && !linux

package proc

import "syscall"

// tie does nothing here: a child continues when this process is killed.
func tie(*syscall.SysProcAttr) {}
