// Package wholefile writes files completely or not at all: the old file stays
// until all of the new text is on the disk.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces the content of a file. Only the user can read the file; its
// directory must exist.
func Write(file string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // after a success it no longer exists
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
