package toolbox

import (
	"io/fs"
	"syscall"
	"time"
)

// inodeChanged returns when the content, the name or the permissions of a file last
// changed.
func inodeChanged(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Ctim.Unix())
	}
	return info.ModTime()
}
