//go:build unix

package permit

import (
	"os"
	"syscall"
)

// hasOtherName reports whether a file has a second name, a hard link.
func hasOtherName(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}
