//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// servant returns the user that runs the server if this process runs as root.
func servant() (*syscall.Credential, error) {
	found, err := user.Lookup("postgres")
	if err != nil {
		found, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no user postgres or nobody: %w", err)
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("the id of user %s: %w", found.Username, err)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("the group of user %s: %w", found.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// unprivileged makes a command run as a normal user, and in its own process group, so that
// Ctrl-C in the terminal reaches only the tests.
func unprivileged(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != 0 {
		return nil
	}
	var err error
	cmd.SysProcAttr.Credential, err = servant()
	return err
}

// give changes the owner of a directory to the server's user.
func give(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	to, err := servant()
	if err != nil {
		return err
	}
	return os.Chown(dir, int(to.Uid), int(to.Gid))
}
