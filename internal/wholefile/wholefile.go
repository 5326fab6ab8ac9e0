// Package wholefile writes files completely or not at all. The old file stays until the
// whole new text is on the disk.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces the content of a file. Only this user can read the new file. Its directory
// must exist.
func Write(file string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // ignore errors: after a success the file no longer exists
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
