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

// servant is the user that root has the server run as.
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

// unprivileged has a command run as somebody who is not root, in a group of its
// own: what is typed at a terminal is for the tests and not for the server.
func unprivileged(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != 0 {
		return nil
	}
	var err error
	cmd.SysProcAttr.Credential, err = servant()
	return err
}

// give gives a directory to whoever the server runs as.
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
