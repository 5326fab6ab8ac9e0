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
func Write(file string, text []byte) error { return write(file, text, os.Rename) }

// Create is like Write, but returns fs.ErrExist if the file exists. If several processes
// create a file at once, only one of them succeeds.
func Create(file string, text []byte) error { return write(file, text, os.Link) }

// write writes a temporary file, and gives it its name with put.
func write(file string, text []byte, put func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // ignore errors: after a rename the file no longer exists
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return put(f.Name(), file)
}
