//go:build unix

package toolbox

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	// nonblocking is the flag with which open does not block on a named pipe.
	nonblocking = syscall.O_NONBLOCK
	// directoryOnly is the flag with which open fails for anything except a directory.
	directoryOnly = syscall.O_DIRECTORY
)

// keepOwner gives a new file the owner and the group of the old one. The result group
// reports whether the group was kept: this can fail, because the owner need not be a
// member of the group. If the owner cannot be kept, keepOwner returns an error.
func keepOwner(f *os.File, old fs.FileInfo) (group bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("read its owner: %w", err)
	}
	was, ok := old.Sys().(*syscall.Stat_t)
	is, known := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !known || is.Uid == was.Uid && is.Gid == was.Gid:
		return true, nil
	case f.Chown(int(was.Uid), int(was.Gid)) == nil:
		return true, nil
	case is.Uid != was.Uid:
		return false, errOtherOwner
	}
	return false, nil
}

// otherNames returns how many other hard links a file has.
func otherNames(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
		return int(s.Nlink) - 1
	}
	return 0
}
