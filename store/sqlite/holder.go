package sqlite

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// A holder is an open store, in this process or another. It locks a file with its id as
// name, in a directory beside the database. The file says which process it is. The operating
// system releases the lock when the process ends, however it ends. So if another process can
// take the lock, the holder has ended. No program should remove the lock file. If one did,
// the list of holders says which process to check.

// openingLock is the name of the file that a process locks while it opens the store and
// creates the tables.
const openingLock = "opening"

// lockDir returns the directory of the lock files.
func (s *Store) lockDir() string { return s.path + "-holders" }

// enter gives this store a new holder id and locks the file with that name. The content of
// the file is for people: if it cannot be written, nobody learns the process id.
func (s *Store) enter() error {
	for {
		id := rand.Text()
		file, ok, err := takeLock(filepath.Join(s.lockDir(), id), os.O_CREATE, false)
		if err != nil {
			return err
		}
		if ok {
			s.id, s.lock = id, file
			_, _ = file.WriteString(describe(s.holder()))
			return nil
		}
	}
}

// takeLock opens a file and locks it. It returns false if another process has locked the
// file, or if the file was removed in the meantime.
func takeLock(name string, flags int, shared bool) (*os.File, bool, error) {
	file, err := os.OpenFile(name, os.O_RDWR|flags, 0o600)
	if err != nil {
		return nil, false, err
	}
	ok, err := lockFile(file, shared)
	if ok {
		mine, errMine := file.Stat()
		named, errNamed := os.Stat(name)
		ok = errMine == nil && errNamed == nil && os.SameFile(mine, named)
	}
	if !ok {
		_ = file.Close() // the file was not written
		return nil, false, err
	}
	return file, true, nil
}

// opening waits until no other process is opening the store. Then it blocks other processes
// until the returned file is closed.
func (s *Store) opening(ctx context.Context) (*os.File, error) {
	if err := os.MkdirAll(s.lockDir(), 0o700); err != nil {
		return nil, err
	}
	name := s.openingFile()
	for deadline := time.Now().Add(s.opts.BusyTimeout); ; {
		file, ok, err := takeLock(name, os.O_CREATE, false)
		switch {
		case err != nil:
			return nil, err
		case ok:
			return file, nil
		case time.Now().After(deadline):
			return nil, &FileError{
				Path: s.path, Kind: ErrLocked, Remedy: fmt.Sprintf("another program has been opening the store for longer than %s: end that program, or increase BusyTimeout", s.opts.BusyTimeout),
				Err: errors.New("the lock file " + name + " is locked"),
			}
		}
		pause := time.NewTimer(10 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Store) openingFile() string { return filepath.Join(s.lockDir(), openingLock) }

// made is the content of the opening lock once the tables exist. If the database is empty
// or invalid later, it is damaged.
const made = "made\n"

// markMade records that the tables exist. If the write fails, the next process tries again.
func markMade(opening *os.File) {
	if info, err := opening.Stat(); err == nil && info.Size() == 0 {
		_, _ = opening.WriteString(made)
	}
}

// wasMade reports whether the file was a store before.
func (s *Store) wasMade() bool {
	info, err := os.Stat(s.openingFile())
	return err == nil && info.Size() > 0
}

// lively reports whether any process has the store open.
func (s *Store) lively() bool {
	users, err := s.users()
	return err != nil || len(users) > 0
}

// Users returns the processes that have the store in a file open, such as "process 71 on
// myhost, since 2026-03-01T12:00:00Z". Those that have opened it read-only do not count.
// Users changes nothing.
func Users(path string) ([]string, error) {
	if actual, err := filepath.EvalSymlinks(path); err == nil {
		path = actual
	}
	users, err := (&Store{path: path}).users()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("look who has the store open: %w", err)
	}
	return users, nil
}

// users returns the processes whose lock files are locked.
func (s *Store) users() (users []string, err error) {
	entries, err := os.ReadDir(s.lockDir())
	for _, entry := range entries {
		if entry.Name() == openingLock {
			continue
		}
		name := filepath.Join(s.lockDir(), entry.Name())
		file, free, err := takeLock(name, 0, true)
		switch {
		case free:
			_ = file.Close()
		case !errors.Is(err, os.ErrNotExist):
			text, _ := os.ReadFile(name) // "" if it was not written
			users = append(users, cmp.Or(string(text), "a process"))
		}
	}
	return users, err
}

// register adds this store to the list of holders.
func (s *Store) register(ctx context.Context) error {
	h := s.holder()
	return s.submitSince(ctx, s.opened, func(ctx context.Context, w *writing) error {
		return w.AddHolder(ctx, table.AddHolderParams{ID: s.id, Pid: h.Pid, Host: h.Host, Since: h.Since, Process: processStart(h.Pid), Path: s.path})
	})
}

// holder describes this process.
func (s *Store) holder() table.Holder {
	return table.Holder{Pid: int64(os.Getpid()), Host: hostname(), Since: record.Nanos(s.now())}
}

func hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return host
}

// gone reports whether the process of a holder has ended.
func (s *Store) gone(ctx context.Context, q *table.Queries, id string) bool {
	if id == s.id {
		return false
	}
	file, ok, err := takeLock(filepath.Join(s.lockDir(), filepath.Base(id)), 0, true) // shared, so that several processes can check at the same time
	if ok {
		_ = file.Close()
		return true
	}
	return errors.Is(err, os.ErrNotExist) && !s.lives(ctx, q, id)
}

// lives is called if a holder's lock file does not exist. It reports whether the holder is
// still in the list of holders and its process is alive: then another program removed the
// file. A holder that closes its store first removes itself from the list. In a copy of the
// database, the list describes the original, so lives compares the path.
func (s *Store) lives(ctx context.Context, q *table.Queries, id string) bool {
	h, err := q.Holder(ctx, id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false
	case err != nil:
		return true // assume that the holder is alive
	default:
		return h.Path == s.path && h.Host == hostname() && h.Process != "" && h.Process == processStart(h.Pid)
	}
}

// removeLock removes the lock file of a dead holder.
func (s *Store) removeLock(id string) error {
	file, ok, err := takeLock(filepath.Join(s.lockDir(), filepath.Base(id)), 0, false)
	switch {
	case ok:
		return dropFile(file)
	case errors.Is(err, os.ErrNotExist):
		return nil
	default:
		return err
	}
}

// sweep removes lock files whose holder is not in the list: the process ended while it
// opened the store.
func (s *Store) sweep(ctx context.Context) error {
	entries, err := os.ReadDir(s.lockDir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == openingLock || entry.Name() == s.id {
			continue
		}
		_, err := s.read.Holder(ctx, entry.Name())
		switch {
		case errors.Is(err, sql.ErrNoRows):
			if err := s.removeLock(entry.Name()); err != nil {
				return err
			}
		case err != nil:
			return s.explain(err)
		}
	}
	return nil
}

func describe(h table.Holder) string {
	return fmt.Sprintf("process %d on %s, since %s", h.Pid, h.Host, record.Moment(h.Since).UTC().Format(time.RFC3339))
}
