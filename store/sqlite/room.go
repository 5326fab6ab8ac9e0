package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// outOfRoom returns an ErrFull with advice if err means that a file cannot grow. Otherwise
// it returns nil.
func outOfRoom(path string, err error) error {
	e := &FileError{Path: path, Kind: ErrFull, Err: err}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		e.Remedy = nothingStored + "free some space and try again"
	case errors.Is(err, syscall.EDQUOT):
		e.Remedy = nothingStored + "the disk quota is used up: free some space or raise the quota, and try again"
	case errors.Is(err, syscall.EFBIG):
		e.Remedy = nothingStored + "this process is not allowed to write files this large: raise its limit (ulimit -f) and try again"
	default:
		return nil
	}
	return e
}

const nothingStored = "this write was not stored; "

// probeSize is how many bytes probe writes. It is more than SQLite needs to open a file.
const probeSize = 64 << 10

// cannotGrow returns an ErrFull if an error of SQLite comes from missing space, and nil
// otherwise. The error alone does not show it: SQLite says "disk I/O error" if a quota or a
// limit of the process is reached, or if there is no space for the index of the log. So
// cannotGrow tries to write a file beside the store, at the offset of the store's size.
func (s *Store) cannotGrow(err error) error {
	full := outOfRoom(s.path, s.probe())
	if found, ok := errors.AsType[*FileError](full); ok {
		found.Err = fmt.Errorf("%w: %w", err, found.Err)
	}
	return full
}

func (s *Store) probe() (err error) {
	file, err := os.CreateTemp(filepath.Dir(s.path), filepath.Base(s.path)+"-room-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	var at int64
	for _, end := range fileEnds {
		if info, err := os.Stat(s.path + end); err == nil && runtime.GOOS != "windows" { // the file is sparse, so the part before the offset uses no space
			at = max(at, info.Size())
		}
	}
	if _, err := file.WriteAt(make([]byte, probeSize), at); err != nil {
		return err //nolint:wrapcheck // the caller explains it
	}
	return file.Sync() //nolint:wrapcheck // likewise; some file systems find out as late as this
}
