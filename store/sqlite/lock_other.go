//go:build !unix && !windows

package sqlite

import (
	"errors"
	"os"
)

func lockFile(file *os.File, _ bool) (bool, error) {
	return false, &os.PathError{Op: "lock", Path: file.Name(), Err: errors.ErrUnsupported}
}

func dropFile(file *os.File) error { return file.Close() }
