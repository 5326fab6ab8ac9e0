//go:build unix

package toolbox

import (
	"io/fs"
	"os"
	"syscall"
)

// nonblocking keeps the opening of a pipe from waiting for its other end.
const nonblocking = syscall.O_NONBLOCK

// keepOwner gives a new file the owner of the one it replaces, where that is
// allowed.
func keepOwner(f *os.File, old fs.FileInfo) {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	info, err := f.Stat()
	if err != nil {
		return
	}
	if is, ok := info.Sys().(*syscall.Stat_t); ok && (is.Uid != was.Uid || is.Gid != was.Gid) {
		_ = f.Chown(int(was.Uid), int(was.Gid)) // a member of the group may edit without owning
	}
}

// otherNames is how many further names a file has.
func otherNames(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
		return int(s.Nlink) - 1
	}
	return 0
}
