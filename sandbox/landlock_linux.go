package sandbox

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This package calls the three system calls of Landlock directly. The existing libraries
// restrict all threads of the process. This package must restrict only the one thread
// that becomes the program.

// Access rights that golang.org/x/sys does not define yet.
const (
	accessResolveUnix = 1 << 16
	accessBindUDP     = 1 << 2
	accessSendUDP     = 1 << 3
)

// The rights to change a file system. Reading and executing are not restricted. The right
// to make device files is never granted.
const (
	changes = unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	deviceMaking = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	// uses are the rights to use a device, or a directory of terminals.
	uses = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// abi returns the Landlock version of the kernel.
func abi() (int, error) {
	version, _, errno := syscall.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch errno {
	case 0:
		return int(version), nil
	case unix.ENOSYS:
		return 0, fmt.Errorf("the kernel has no Landlock: use Linux 5.13 or later: %w", errno)
	case unix.EOPNOTSUPP:
		return 0, fmt.Errorf("the kernel has Landlock turned off: add landlock to lsm= on the kernel's command line: %w", errno)
	default:
		return 0, fmt.Errorf("query the Landlock version: %w", errno)
	}
}

// ruleset returns the rights that Landlock must restrict, as far as this version can.
func ruleset(abi int, kind Kind, network bool) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Access_fs: changes | deviceMaking}
	if abi < abiRefer {
		attr.Access_fs &^= unix.LANDLOCK_ACCESS_FS_REFER // this version always denies moves between directories
	}
	if abi < abiTruncate {
		attr.Access_fs &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi < abiIoctl {
		attr.Access_fs &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= abiScope {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if abi >= abiUnix {
		attr.Access_fs |= accessResolveUnix
	}
	if kind == Landlock && !network { // the other kinds have a network namespace
		if abi >= abiTCP {
			attr.Access_net |= unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
		if abi >= abiUDP {
			attr.Access_net |= accessBindUDP | accessSendUDP
		}
	}
	return attr
}

// landlock restricts the thread to the changes that the policy allows.
func (s *script) landlock(o order) {
	attr := ruleset(o.means.abi, o.kind, o.policy.Network)
	rules := s.do("make a Landlock ruleset", unix.SYS_LANDLOCK_CREATE_RULESET,
		&attr, int(unsafe.Sizeof(attr)), 0).result()
	for _, dir := range o.policy.Write {
		s.grant(rules, dir, unix.O_DIRECTORY, attr.Access_fs&changes)
	}
	for _, name := range o.policy.Sockets {
		if attr.Access_fs&accessResolveUnix != 0 {
			s.grant(rules, name, 0, accessResolveUnix)
		}
	}
	for _, device := range devices {
		if _, err := os.Stat(device.name); err == nil {
			s.grant(rules, device.name, 0, attr.Access_fs&device.access)
		}
	}
	s.do("renounce privileges", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	s.do("apply Landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0)
	s.do("close", unix.SYS_CLOSE, rules)
}

// devices are the devices that programs expect. In a sandbox with namespaces, the
// terminals are the program's own.
var devices = []struct {
	name   string
	access uint64
}{
	{"/dev/null", uses},
	{"/dev/zero", uses},
	{"/dev/full", uses},
	{"/dev/random", uses},
	{"/dev/urandom", uses},
	{"/dev/tty", uses},
	{"/dev/ptmx", uses},
	{"/dev/pts", uses},
	{"/dev/shm", changes &^ unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
}

// grant allows access rights on a file, or on everything below a directory.
func (s *script) grant(rules *int32, name string, flags, access uint64) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags}
	if flags != 0 { // a directory of the policy: resolve has resolved its links
		how.Resolve = unix.RESOLVE_NO_SYMLINKS
	}
	rule := &unix.LandlockPathBeneathAttr{Allowed_access: access}
	s.openat2(name, &how).into = &rule.Parent_fd // rule contains the number: the next call reads it there
	s.do("grant "+name, unix.SYS_LANDLOCK_ADD_RULE, rules, unix.LANDLOCK_RULE_PATH_BENEATH, rule, 0)
	s.do("close", unix.SYS_CLOSE, &rule.Parent_fd)
}
