//go:build unix

package main

import (
	"context"
	"os/exec"
	"syscall"
)

// inRoot returns a command that runs in another root directory, as the user of the container.
func inRoot(ctx context.Context, root, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Err = nil // the program is looked up in the other root
	cmd.Env = []string{"HOME=/work"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: containerUser, Gid: containerUser}}
	return cmd
}
