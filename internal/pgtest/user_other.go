//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
)

func unprivileged(*exec.Cmd) error {
	return errors.New("a server for tests is started on Unix systems only")
}

func give(string) error { return nil }
