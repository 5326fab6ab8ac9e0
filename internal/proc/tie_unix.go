//go:build unix && !linux

package proc

import "syscall"

// tie can do nothing here: a child outlives a process that is killed.
func tie(*syscall.SysProcAttr) {}
