package sandbox

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// The system call filter rejects what Landlock and namespaces cannot prevent:
//
//   - sockets that are not part of a network namespace, such as those between a virtual
//     machine and its host;
//   - all network sockets, if there is no network namespace;
//   - putting characters into the input of an inherited terminal;
//   - io_uring, if there is no network, because io_uring can make sockets that the filter
//     does not see.

// numbers are the system call numbers that the filter checks, for one architecture. A
// processor may support several architectures.
type numbers struct {
	arch       uint32
	socket     uint32
	socketcall uint32 // rejected, because the filter cannot check its arguments; 0 if there is none
	ioctl      uint32
	uring      uint32
	most       uint32 // higher numbers are of another architecture; 0 means no limit
}

// machines returns the system call numbers for all architectures that this processor
// supports.
func machines() []numbers {
	switch runtime.GOARCH {
	case "amd64":
		return []numbers{
			{arch: unix.AUDIT_ARCH_X86_64, socket: 41, ioctl: 16, uring: 425, most: 0x40000000},
			{arch: unix.AUDIT_ARCH_I386, socket: 359, socketcall: 102, ioctl: 54, uring: 425},
		}
	case "arm64":
		return []numbers{
			{arch: unix.AUDIT_ARCH_AARCH64, socket: 198, ioctl: 29, uring: 425},
			{arch: unix.AUDIT_ARCH_ARM, socket: 281, ioctl: 54, uring: 425},
		}
	case "riscv64":
		return []numbers{{arch: unix.AUDIT_ARCH_RISCV64, socket: 198, ioctl: 29, uring: 425}}
	case "loong64":
		return []numbers{{arch: unix.AUDIT_ARCH_LOONGARCH64, socket: 198, ioctl: 29, uring: 425}}
	default:
		return nil
	}
}

// families returns the allowed socket families. Nil means all.
func families(kind Kind, network bool) []uint32 {
	switch {
	case network:
		return nil
	case kind == Landlock:
		return []uint32{unix.AF_UNIX, unix.AF_NETLINK}
	default:
		return []uint32{unix.AF_UNIX, unix.AF_NETLINK, unix.AF_INET, unix.AF_INET6}
	}
}

// The offsets of the values that the filter checks. The filter checks only the lower half
// of an argument, and so does the kernel for these calls. All architectures here store
// the lower half first.
const (
	atNumber = 0
	atArch   = 4
	atFirst  = 16
	atSecond = 24
)

// filter returns the filter program. Each part of it ends with a verdict.
func filter(families []uint32) []unix.SockFilter {
	var program []unix.SockFilter
	statement := func(code int, k uint32) {
		program = append(program, unix.SockFilter{Code: uint16(code), K: k})
	}
	load := func(at uint32) { statement(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at) }
	answer := func(k uint32) { statement(unix.BPF_RET|unix.BPF_K, k) }
	refuse := func(errno uint32) { answer(unix.SECCOMP_RET_ERRNO | errno) }
	// when adds a part that runs only if the test is true.
	when := func(test int, k uint32, part func()) {
		at := len(program)
		statement(unix.BPF_JMP|test|unix.BPF_K, k)
		part()
		program[at].Jf = uint8(len(program) - at - 1)
	}

	for _, m := range machines() {
		load(atArch)
		when(unix.BPF_JEQ, m.arch, func() {
			load(atNumber)
			if m.most != 0 {
				when(unix.BPF_JGE, m.most, func() { refuse(uint32(unix.ENOSYS)) })
			}
			when(unix.BPF_JEQ, m.ioctl, func() {
				load(atSecond)
				when(unix.BPF_JEQ, unix.TIOCSTI, func() { refuse(uint32(unix.EPERM)) })
				when(unix.BPF_JEQ, unix.TIOCLINUX, func() { refuse(uint32(unix.EPERM)) })
				answer(unix.SECCOMP_RET_ALLOW)
			})
			if families != nil {
				when(unix.BPF_JEQ, m.uring, func() { refuse(uint32(unix.ENOSYS)) })
				if m.socketcall != 0 {
					when(unix.BPF_JEQ, m.socketcall, func() { refuse(uint32(unix.ENOSYS)) })
				}
				when(unix.BPF_JEQ, m.socket, func() {
					load(atFirst)
					for _, family := range families {
						when(unix.BPF_JEQ, family, func() { answer(unix.SECCOMP_RET_ALLOW) })
					}
					refuse(uint32(unix.EACCES))
				})
			}
			answer(unix.SECCOMP_RET_ALLOW)
		})
	}
	refuse(uint32(unix.ENOSYS)) // an unknown architecture
	return program
}

// seccomp applies the filter to the thread. The thread must have dropped its privileges
// before.
func (s *script) seccomp(o order) {
	program := filter(families(o.kind, o.policy.Network))
	prog := &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	s.do("filter system calls", unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, prog, 0, 0)
}
