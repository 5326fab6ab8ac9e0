//go:build unix

package permit

import (
	"os"
	"syscall"
)

// hasOtherName reports whether a path names a file that has another name too, by a
// hard link.
func hasOtherName(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}
