// Package spill keeps the full texts of results that are too long for the model, in files. Each session has a directory of
// its own, and a subagent's is below that of its parent, so that a session can be removed with all its files.
package spill

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Write writes a text of a session to a file that only this user can read, and returns its path. It makes the directories.
func Write(dir, session, name, text string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("spill: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("spill: %w", err)
	}
	defer func() { _ = root.Close() }() // there is nothing left to write
	below := directory(session)
	if err := root.MkdirAll(below, 0o700); err != nil {
		return "", fmt.Errorf("spill: %w", err)
	}
	file := filepath.Join(below, name)
	if err := root.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("spill: %w", err)
	}
	return filepath.Join(dir, file), nil
}

// Remove removes the files of a session and of its subagents. It is no error if there are none.
func Remove(dir, session string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove long results: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing was written
	if err := root.RemoveAll(directory(session)); err != nil {
		return fmt.Errorf("remove long results: %w", err)
	}
	return nil
}

// directory returns the directory of a session. Any id gives a plain name, and no two ids the same one, also where the file
// system ignores case.
func directory(session string) string {
	var parts []string
	for part := range strings.SplitSeq(session, "/") {
		sum := sha256.Sum256([]byte(part))
		parts = append(parts, hex.EncodeToString(sum[:16]))
	}
	return filepath.Join(parts...)
}
