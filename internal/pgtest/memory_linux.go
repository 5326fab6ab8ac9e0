package pgtest

import "syscall"

// memory returns a directory in memory (tmpfs), or "" if there is too little space for many
// databases. Containers often have little.
func memory() string {
	const dir, room = "/dev/shm", 4 << 30
	var found syscall.Statfs_t
	if err := syscall.Statfs(dir, &found); err != nil || found.Bavail*uint64(found.Bsize) < room {
		return ""
	}
	return dir
}
