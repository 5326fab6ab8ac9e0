package space

import (
	"io/fs"
	"syscall"
)

func stampOf(info fs.FileInfo) stamp {
	s := stamp{mode: info.Mode(), size: info.Size(), modified: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.changed, s.inode, s.known = st.Ctimespec.Nano(), int64(st.Ino), true
	}
	return s
}
