//go:build !unix

package cli

import "syscall"

// detached is not needed, because this operating system has no workers.
func detached() *syscall.SysProcAttr { return nil }
