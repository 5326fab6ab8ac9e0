// Package wholefile writes files that are there as a whole or not at all: what was
// there before stays until all of the new text is on the disk.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write puts a text in the place of a file. Only the user may read the file; its
// directory exists.
func Write(file string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone by then if all went well
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
