//go:build unix && !linux

package proc

import "syscall"

// tie does nothing: on this system a child continues when this process is killed.
func tie(*syscall.SysProcAttr) {}
