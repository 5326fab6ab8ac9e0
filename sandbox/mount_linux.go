package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openat2 opens a name as how says. Apart from some devices, no symbolic link is
// followed, because all links were resolved before. If a name is a link now, someone has
// replaced it since, and the program does not run.
func (s *script) openat2(name string, how *unix.OpenHow) *call {
	return s.do("open "+name, unix.SYS_OPENAT2, unix.AT_FDCWD, name, how, int(unsafe.Sizeof(*how)))
}

// place opens a name as the source or target of a mount. It follows no links.
func (s *script) place(name string) *int32 {
	return s.openat2(name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS}).result()
}

// tree makes a copy of the mount at a name, with all mounts below it.
func (s *script) tree(name string) *int32 {
	from := s.place(name)
	tree := s.do("copy the mount of "+name, unix.SYS_OPEN_TREE, from, "",
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE).result()
	s.do("close", unix.SYS_CLOSE, from)
	return tree
}

func (s *script) attach(tree *int32, name string) { s.attachTo(tree, s.place(name), name) }

func (s *script) attachTo(tree, to *int32, name string) {
	s.do("mount on "+name, unix.SYS_MOVE_MOUNT, tree, "", to, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	s.do("close", unix.SYS_CLOSE, to)
	s.do("close", unix.SYS_CLOSE, tree)
}

func (s *script) readOnly(what string, tree any, name string, flags int) {
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	s.do("make "+what+" read-only", unix.SYS_MOUNT_SETATTR, tree, name, flags|unix.AT_RECURSIVE, attr, int(unsafe.Sizeof(*attr)))
}

// mounts sets up the file system for the program. Everything is mounted read-only, and
// the writable directories are mounted once more on top.
func (s *script) mounts(o order, holds []hold, sockets []string) {
	s.do("separate the mounts from those outside", unix.SYS_MOUNT, "none", "/", 0, unix.MS_REC|unix.MS_PRIVATE, 0)
	s.do("mount /proc", unix.SYS_MOUNT, "proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, 0)
	s.boundProcesses(o)
	write := o.policy.Write
	if slices.Contains(write, "/") {
		write = nil // the root mount is already writable
	}
	trees := make([]*int32, len(write))
	for i, dir := range write {
		trees[i] = s.tree(dir)
	}
	if !slices.Contains(o.policy.Write, "/") {
		s.readOnly("everything", unix.AT_FDCWD, "/", 0)
	}
	s.ownDevices(o.policy.Bounds.Memory)
	for i, dir := range write {
		s.attach(trees[i], dir)
	}
	for _, h := range holds {
		tree := s.tree(h.name)
		if h.sealed {
			s.readOnly(h.name, tree, "", unix.AT_EMPTY_PATH)
		}
		s.attach(tree, h.name)
	}
	for _, name := range o.policy.Hide {
		s.cover(name)
	}
	for _, name := range sockets {
		s.hide(name)
	}
}

// cover hides a file behind /dev/null, or a directory behind an empty read-only one. A
// missing file needs no cover. If someone has replaced the file by a link, the program
// does not run.
func (s *script) cover(name string) {
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return
	}
	tree := s.devNull
	if isDir(name) {
		tree = s.nothing
	}
	// Unlike place, this fails if the name itself is a link.
	to := s.openat2(name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}).result()
	s.attachTo(tree(), to, name)
}

// devNull copies the mount of /dev/null.
func (s *script) devNull() *int32 {
	return s.do("copy the mount of /dev/null", unix.SYS_OPEN_TREE, unix.AT_FDCWD, "/dev/null", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC).result()
}

// nothing makes a mount of an empty, read-only directory.
func (s *script) nothing() *int32 {
	made := s.do("make a file system", unix.SYS_FSOPEN, "tmpfs", unix.FSOPEN_CLOEXEC).result()
	s.do("make a file system", unix.SYS_FSCONFIG, made, unix.FSCONFIG_SET_STRING, "mode", "0555", 0)
	s.do("make a file system", unix.SYS_FSCONFIG, made, unix.FSCONFIG_CMD_CREATE, 0, 0, 0)
	tree := s.do("make a mount", unix.SYS_FSMOUNT, made, unix.FSMOUNT_CLOEXEC,
		unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC).result()
	s.do("close", unix.SYS_CLOSE, made)
	return tree
}

// ownDevices gives the program its own terminals and shared memory.
func (s *script) ownDevices(memory int64) {
	options := "mode=1777"
	if memory > 0 {
		options += ",size=" + strconv.FormatInt(memory, 10)
	}
	if isDir("/dev/shm") {
		s.do("mount /dev/shm", unix.SYS_MOUNT, "tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
	}
	if !isDir("/dev/pts") {
		return
	}
	s.do("mount /dev/pts", unix.SYS_MOUNT, "devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	if info, err := os.Lstat("/dev/ptmx"); err == nil && info.Mode()&os.ModeCharDevice != 0 { // otherwise /dev/ptmx is a link to /dev/pts/ptmx
		s.attach(s.tree("/dev/pts/ptmx"), "/dev/ptmx")
	}
}

func isDir(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.IsDir()
}

// hide covers a Unix socket with /dev/null, if the socket still exists.
func (s *script) hide(name string) {
	to := s.do("open "+name, unix.SYS_OPEN_TREE, unix.AT_FDCWD, name, unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	to.unless(4, unix.ENOENT, unix.ENOTDIR, unix.EACCES, unix.ELOOP) // a socket that is missing cannot be used either
	place := to.result()
	tree := s.devNull()
	s.do("hide "+name, unix.SYS_MOVE_MOUNT, tree, "", place, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	s.do("close", unix.SYS_CLOSE, place)
	s.do("close", unix.SYS_CLOSE, tree)
}

// loopback turns on the loopback interface of the new network namespace.
func (s *script) loopback() {
	request := &struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: unix.IFF_UP | unix.IFF_RUNNING}
	copy(request.name[:], "lo")
	socket := s.do("make a socket", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0).result()
	s.do("bring up the loopback interface", unix.SYS_IOCTL, socket, unix.SIOCSIFFLAGS, request)
	s.do("close", unix.SYS_CLOSE, socket)
}
