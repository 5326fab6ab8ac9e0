package sqlite

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// fileEnds are the name suffixes of the files that SQLite has open: the database,
// its log, and the index of the log.
var fileEnds = [...]string{"", "-wal", "-shm"}

// files records which files SQLite has open. Another program can remove or
// replace them. SQLite does not notice and continues to write to files that are
// lost. So each commit checks first, with three calls of stat.
type files struct {
	path string

	mu   sync.Mutex
	open [len(fileEnds)]os.FileInfo // nil if the file does not exist yet
}

// note records the identity of the database file. It is called before SQLite
// opens it.
func (f *files) note() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[0] = stat(f.path)
}

// opened checks that a new connection has the same database file as the others. The
// writer's connection decides which log and index are the right ones: if it is the
// only connection, they were created for it.
func (f *files) opened(writer bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(0); err != nil {
		return err
	}
	for i := 1; writer && i < len(fileEnds); i++ {
		f.open[i] = stat(f.path + fileEnds[i])
	}
	return nil
}

// inPlace returns an error if one of the files was removed or replaced.
func (f *files) inPlace() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range fileEnds {
		if err := f.check(i); err != nil {
			return err
		}
	}
	return nil
}

// check checks one file. The caller holds the lock.
func (f *files) check(i int) error {
	name := f.path + fileEnds[i]
	info, err := os.Stat(name)
	switch {
	case f.open[i] == nil:
		if err == nil {
			f.open[i] = stat(name) // SQLite creates it at first use
		}
		return nil
	case err == nil && os.SameFile(info, f.open[i]):
		return nil
	case err == nil:
		err = fmt.Errorf("%s was replaced while this process had it open", name)
	case errors.Is(err, os.ErrNotExist):
		err = fmt.Errorf("%s was removed while this process had it open", name)
	}
	return &FileError{
		Path: f.path, Kind: ErrReplaced, Err: err,
		Remedy: "this write was not stored; end all programs that use the store, put its files back or restore a backup, then continue",
	}
}

// stat returns what identifies a file, or nil if there is none.
func stat(name string) os.FileInfo {
	info, err := os.Stat(name)
	if err != nil {
		return nil
	}
	_ = os.SameFile(info, info) // Windows reads the identity at first use
	return info
}

// inUse are the database files that stores of this process have open. Other code of
// the process must not open and close such a file: on Unix that drops SQLite's locks,
// which belong to the whole process, and another process could then remove the log.
var inUse struct {
	sync.Mutex
	files map[*Store]os.FileInfo
}

// use adds the file to the list. If it is new there, use first calls look, which can
// read the file.
func (s *Store) use(look func() error) error {
	inUse.Lock()
	defer inUse.Unlock()
	mine := stat(s.path)
	s.alone = true
	for _, info := range inUse.files {
		if mine != nil && os.SameFile(mine, info) {
			s.alone = false
		}
	}
	if s.alone {
		if err := look(); err != nil {
			return err
		}
	}
	if mine == nil {
		return nil // opening it reports the error
	}
	if inUse.files == nil {
		inUse.files = make(map[*Store]os.FileInfo)
	}
	inUse.files[s] = mine
	return nil
}

// unuse takes the file off the list.
func (s *Store) unuse() {
	inUse.Lock()
	defer inUse.Unlock()
	delete(inUse.files, s)
}
