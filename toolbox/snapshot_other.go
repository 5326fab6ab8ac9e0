//go:build !linux

package toolbox

import (
	"io/fs"
	"time"
)

// inodeChanged returns when the content of a file last changed.
func inodeChanged(info fs.FileInfo) time.Time { return info.ModTime() }
