//go:build !linux && !darwin

package space

import "io/fs"

// stampOf returns a stamp that is not reliable, because this system lacks the values. So
// files are read every time.
func stampOf(info fs.FileInfo) stamp {
	return stamp{mode: info.Mode(), size: info.Size(), modified: info.ModTime().UnixNano()}
}
