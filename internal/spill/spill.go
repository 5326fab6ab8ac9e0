// Package spill stores the full texts of results that are too long for the model, in files.
// Each session has its own directory. The directory of a subagent's session is inside that
// of its parent, so that a session can be removed with all its files.
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

// Write writes a text of a session to a file and returns its path. Only this user can read
// the file. Write creates the directories.
func Write(dir, session, name, text string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("spill: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("spill: %w", err)
	}
	defer func() { _ = root.Close() }() // ignore errors: everything is written
	below := Directory(session)
	if err := root.MkdirAll(below, 0o700); err != nil {
		return "", fmt.Errorf("spill: %w", err)
	}
	file := filepath.Join(below, name)
	if err := root.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("spill: %w", err)
	}
	return filepath.Join(dir, file), nil
}

// Remove removes the files of a session and of its subagents. It returns nil if there are
// none.
func Remove(dir, session string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove long results: %w", err)
	}
	defer func() { _ = root.Close() }() // ignore errors: nothing was written
	if err := root.RemoveAll(Directory(session)); err != nil {
		return fmt.Errorf("remove long results: %w", err)
	}
	return nil
}

// Directory returns the directory of a session, relative to the directory of all. It hashes the parts of the id, so that
// every id gives a valid name. Different ids give different names, even if the file system
// ignores case.
func Directory(session string) string {
	var parts []string
	for part := range strings.SplitSeq(session, "/") {
		sum := sha256.Sum256([]byte(part))
		parts = append(parts, hex.EncodeToString(sum[:16]))
	}
	return filepath.Join(parts...)
}
