//go:build unix

package cli

import "syscall"

// detached lets a process outlive the terminal and the agent that started it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
