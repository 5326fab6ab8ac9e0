package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// named returns the absolute path of a file.
func named(path string) (string, error) {
	if path == "" || strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:") {
		return "", fmt.Errorf("open store %q: this is not a file name: pass the path of a file, or use store/memstore", path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("open store: %w", err)
	}
	return path, nil
}

// locate returns the canonical path of a file, so that all processes use the same path. It
// creates the file if necessary, because a link to a missing file has no canonical path.
func locate(path string) (string, error) {
	path, err := named(path)
	if err != nil {
		return "", err
	}
	created, err := create(path)
	if err != nil {
		return "", err
	}
	found, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("open store: %w", uncreated(path, err))
	}
	if s := (&Store{path: found}); created && s.wasMade() { // the old file was removed, so this is a new store
		if err := os.Truncate(s.openingFile(), 0); err != nil {
			return "", fmt.Errorf("open store: %w", s.unlockable(err))
		}
	}
	return found, nil
}

// create creates the file if it does not exist. Only the owner can read the file, because
// it will contain conversations. SQLite creates the log with the same permissions.
func create(path string) (created bool, err error) {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return false, nil // opening the file reports an error
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // creates the target if path is a link
	if err != nil {
		return false, fmt.Errorf("open store: %w", uncreated(path, err))
	}
	if err := file.Close(); err != nil {
		return false, fmt.Errorf("open store: %w", err)
	}
	return true, nil
}

// uncreated explains why the file could not be created.
func uncreated(path string, err error) error {
	if full := outOfRoom(path, err); full != nil {
		return full
	}
	e := &FileError{Path: path, Kind: ErrReadOnly, Remedy: "check that the directory " + filepath.Dir(path) + " is writable", Err: err}
	if to, err := os.Readlink(path); err == nil {
		e.Remedy = "the path is a link to " + to + ": check that this file can be created"
	} else if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, os.ErrNotExist) {
		e.Remedy = "create the directory " + filepath.Dir(path) + " first"
	}
	return e
}

// foreign rejects a file that is clearly not a store, before anything is written to it or
// beside it. If the file was a store before, foreign reports damage.
func (s *Store) foreign() error {
	refuse := func(remedy, why string) error {
		return fmt.Errorf("open store: %w", s.noStore(remedy, errors.New(why)))
	}
	info, err := os.Stat(s.path)
	switch {
	case err != nil:
		return nil //nolint:nilerr // opening it reports the error
	case info.IsDir():
		return refuse("pass the path of a file", "the path is a directory")
	}
	head, err := header(s.path)
	switch {
	case err != nil:
		return nil //nolint:nilerr // opening it reports the error
	case len(head) == 0 && s.wasMade():
		return fmt.Errorf("open store: %w", s.damaged(errors.New("the file was a store before and is empty now; to start with an empty store, remove the file")))
	case len(head) == 0:
		s.fresh = true
		return nil
	case !bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return refuse("use another file, or move this file away", "the file is not a database")
	case len(head) < headerSize:
		return nil // SQLite reports the error when it opens the file
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 1 << 16
	}
	ours := binary.BigEndian.Uint32(head[68:]) == applicationID
	switch log, err := os.Stat(s.path + "-wal"); {
	case err == nil && log.Size() > 0:
		return nil // the file header may be out of date, because the log has newer pages
	case ours && page > 0 && info.Size()%page != 0:
		return fmt.Errorf("open store: %w", s.damaged(errors.New("the file ends in the middle of a page")))
	case ours, info.Size() <= page: // or it is a database without tables
		return nil
	default:
		return refuse("use another file", "the file is a database of another program")
	}
}

// noStore returns the error for a file that is not a store, or that is no longer a valid
// store.
func (s *Store) noStore(remedy string, err error) *FileError {
	if s.wasMade() {
		return s.damaged(fmt.Errorf("the file was a store before: %w", err))
	}
	return &FileError{Path: s.path, Kind: ErrNotStore, Remedy: remedy, Err: err}
}

const headerSize = 100

// header reads the beginning of a file. It opens the file for writing, as SQLite does: on
// an overlay file system, that can replace the file by a copy, and the identity must not
// change later.
func header(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		file, err = os.Open(path)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the file was not written
	head := make([]byte, headerSize)
	n, err := io.ReadFull(file, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}
