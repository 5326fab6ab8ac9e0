package pgtest

import "syscall"

// memory returns a directory in memory (tmpfs), if there is one with space for
// many databases; containers often have a small one.
func memory() string {
	const dir, room = "/dev/shm", 4 << 30
	var found syscall.Statfs_t
	if err := syscall.Statfs(dir, &found); err != nil || found.Bavail*uint64(found.Bsize) < room {
		return ""
	}
	return dir
}
