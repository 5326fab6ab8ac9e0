package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A mount needs an existing file or directory. If a protected name does not exist, the
// sandbox makes an empty directory there as a placeholder. Each sandbox that uses the
// placeholder has a shared lock on it. A process that gets an exclusive lock removes the
// placeholder. A placeholder is always a directory, for two reasons: a directory with
// files cannot be removed by mistake, and git ignores empty directories.

// placeholderMode is an unusual mode by which a placeholder can be recognized.
const placeholderMode = fs.ModeDir | fs.ModeSticky | 0o755

type placeholder struct {
	name string
	dir  *os.File // the open directory, which has the lock
}

// prepare finds the names to protect, and makes placeholders for missing ones. It tries
// again if another process removes a placeholder before prepare has locked it.
func prepare(policy Policy) (list []hold, made []placeholder, err error) {
	for range attempts {
		if list, err = holds(policy); err != nil {
			return nil, nil, err
		}
		list, made, err = placeholders(list)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return list, made, err
}

// placeholders makes placeholders for missing names. It leaves out missing names that the
// program cannot create anyway.
func placeholders(list []hold) (present []hold, made []placeholder, err error) {
	for _, h := range list {
		if !h.sealed || h.link {
			present = append(present, h)
			continue
		}
		p, err := occupy(h)
		switch {
		case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
			if !h.absent {
				present = append(present, h)
			}
			continue
		case err != nil:
			for _, p := range made {
				_ = p.dir.Close() // releases the lock; another sandbox can use the placeholder
			}
			return nil, nil, fmt.Errorf("prevent the creation of %s: %w", h.name, err)
		}
		if p != nil {
			made = append(made, *p)
		}
		h.absent = false
		present = append(present, h)
	}
	return present, made, nil
}

// attempts is how often an operation is repeated when a name changes at the same time.
const attempts = 100

// occupy returns a locked placeholder, or nil if something else has the name. It tries
// again if another sandbox removes the placeholder at the same time.
func occupy(h hold) (*placeholder, error) {
	for range attempts {
		info, err := os.Lstat(h.name)
		if errors.Is(err, fs.ErrNotExist) {
			if err := makePlaceholder(h.name); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if !isPlaceholder(h.name, info) {
			return nil, nil
		}
		p, err := lock(h.name)
		if err != nil || p != nil {
			return p, err
		}
	}
	return nil, errors.New("another program creates and removes it again and again")
}

// isPlaceholder reports whether a directory is an empty placeholder.
func isPlaceholder(name string, info fs.FileInfo) bool {
	if info.Mode()&^fs.ModeSetgid != placeholderMode { // setgid is inherited from the parent directory
		return false
	}
	dir, err := os.Open(name)
	if err != nil {
		return false
	}
	defer func() { _ = dir.Close() }() // only read, so an error does not matter
	_, err = dir.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// makePlaceholder makes a directory with exactly the mode placeholderMode.
func makePlaceholder(name string) error {
	defer unix.Umask(unix.Umask(0))
	return os.Mkdir(name, placeholderMode)
}

// lock takes a shared lock on a placeholder. It returns nil if the placeholder was
// removed.
func lock(name string) (*placeholder, error) {
	dir, err := os.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_SH); err != nil {
		return nil, errors.Join(fmt.Errorf("lock it: %w", err), dir.Close())
	}
	held, err := dir.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Lstat(name); err == nil && os.SameFile(held, there) {
			return &placeholder{name: name, dir: dir}, nil
		}
	}
	_ = dir.Close() // only read, so an error does not matter
	return nil, nil
}

// tidy removes placeholders that no other sandbox uses. Before that, it lists each
// directory: this fails if another process has already removed the directory.
func (s *script) tidy(made []placeholder) {
	entries := make([]byte, 256)
	s.keep = append(s.keep, entries)
	for _, p := range made {
		s.keep = append(s.keep, p.dir)
		s.do("lock "+p.name, unix.SYS_FLOCK, int(p.dir.Fd()), unix.LOCK_EX|unix.LOCK_NB).unless(2, unix.EWOULDBLOCK, unix.EINVAL)
		s.do("list "+p.name, unix.SYS_GETDENTS64, int(p.dir.Fd()), &entries[0], len(entries)).unless(1, unix.ENOENT)
		s.do("remove "+p.name, unix.SYS_UNLINKAT, unix.AT_FDCWD, p.name, unix.AT_REMOVEDIR).
			unless(0, unix.ENOENT, unix.ENOTEMPTY, unix.EACCES, unix.EROFS, unix.ENOTDIR, unix.EPERM)
	}
}
