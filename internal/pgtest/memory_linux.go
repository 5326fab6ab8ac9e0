package pgtest

import "syscall"

// memory is a directory whose files are in memory alone, if there is one with room
// for many databases; containers often have a small one.
func memory() string {
	const dir, room = "/dev/shm", 4 << 30
	var found syscall.Statfs_t
	if err := syscall.Statfs(dir, &found); err != nil || found.Bavail*uint64(found.Bsize) < room {
		return ""
	}
	return dir
}
