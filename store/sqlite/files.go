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

// files records which files SQLite has open. Another program can remove or replace these
// files. SQLite would not notice, and would write to files that no one can find again. So
// each commit first checks them, with three calls of stat.
type files struct {
	path string

	mu   sync.Mutex
	open [len(fileEnds)]os.FileInfo // nil if the file did not exist
}

// note records the identity of the database file. The store calls it before SQLite opens
// the file.
func (f *files) note() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[0] = stat(f.path)
}

// opened checks that a new connection uses the same database file as the others. For the
// writer's connection, opened also records the log and its index, because SQLite may have
// just created them.
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

// inPlace returns an error if a file was removed or replaced.
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

// check checks one file. The caller holds f.mu.
func (f *files) check(i int) error {
	name := f.path + fileEnds[i]
	info, err := os.Stat(name)
	switch {
	case f.open[i] == nil:
		if err == nil {
			f.open[i] = stat(name) // SQLite has created the file since
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
		Remedy: "this write was not stored; stop all programs that use the store, put its files back or restore a backup, then start the programs again",
	}
}

// stat returns the identity of a file, or nil if the file does not exist.
func stat(name string) os.FileInfo {
	info, err := os.Stat(name)
	if err != nil {
		return nil
	}
	_ = os.SameFile(info, info) // on Windows this reads the identity, which is otherwise read later
	return info
}

// inUse are the database files that stores of this process have open. Other code of the
// process must not open and close such a file. On Unix, closing it drops SQLite's locks,
// because they belong to the whole process. Then another process could remove the log.
var inUse struct {
	sync.Mutex
	files map[*Store]os.FileInfo
}

// use adds the file to inUse. If no other store of this process has the file open, use
// first calls look, which may read the file.
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
		return nil // opening the file reports the error
	}
	if inUse.files == nil {
		inUse.files = make(map[*Store]os.FileInfo)
	}
	inUse.files[s] = mine
	return nil
}

func (s *Store) unuse() {
	inUse.Lock()
	defer inUse.Unlock()
	delete(inUse.files, s)
}
