package sandbox

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The values of failure.Part.
const (
	partSetup = iota
	partFork
	partProgram
)

// plan is the work of the second process (see runInside). Everything is prepared before
// the fork.
type plan struct {
	setup   script
	program script // ends in exec
	after   script // runs in the second process after the third has started

	report int // pipe for failures; closed when the program starts
	status int // pipe for the status of the program
	all    unix.Sigset_t
	failed failure
	ended  ending
	wait   unix.WaitStatus
	at     struct{ all, failed, ended, wait uintptr } // the addresses of these fields, for system calls
}

// ending is the status of the program. Its bytes are sent through a pipe.
type ending struct {
	Status uint32
	Left   uint32 // 1 if the program left processes running
}

// newPlan prepares the second process. It also returns the first process's ends of the
// pipes.
func newPlan(o order, list []hold) (*plan, *ends, error) {
	report, theirReport, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	status, theirStatus, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	theirLifeline, lifeline, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	dir, err := unix.Getwd()
	if err != nil {
		return nil, nil, fmt.Errorf("find the working directory: %w", err)
	}
	p := &plan{report: int(theirReport.Fd()), status: int(theirStatus.Fd())}
	p.at.all, p.at.failed, p.at.ended, p.at.wait = address(&p.all), address(&p.failed), address(&p.ended), address(&p.wait)
	for i := range p.all.Val {
		p.all.Val[i] = ^p.all.Val[i]
	}

	s := &p.setup
	s.do("close", unix.SYS_CLOSE, int(lifeline.Fd()))
	s.do("tie it to the process outside", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, int(unix.SIGKILL), 0, 0, 0)
	s.do("make a pipe not block", unix.SYS_FCNTL, int(theirLifeline.Fd()), unix.F_SETFL, unix.O_NONBLOCK)
	s.do("find the process outside, which has ended", unix.SYS_READ, int(theirLifeline.Fd()), new([1]byte), 1).must = unix.EAGAIN
	s.do("begin a session", unix.SYS_SETSID)
	if o.means.users {
		s.sameUser()
	}
	s.mounts(o, list, outsideSockets(o.policy, os.Getenv))
	if !o.policy.Network {
		s.loopback()
	}
	s.do("enter "+dir, unix.SYS_CHDIR, dir)
	null := s.do("open /dev/null", unix.SYS_OPENAT, unix.AT_FDCWD, "/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0).result()
	if err := s.restrict(o); err != nil {
		return nil, nil, err
	}
	s.do("protect this process from the program", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0)

	for fd := range 3 {
		p.after.do("close the program's files", unix.SYS_DUP3, null, fd, 0)
	}
	p.after.do("close", unix.SYS_CLOSE, p.report)
	if err := p.becomeProgram(o); err != nil {
		return nil, nil, err
	}
	return p, &ends{report: report, status: status, theirs: []*os.File{theirReport, theirStatus, theirLifeline}, lifeline: lifeline}, nil
}

// sameUser gives the user and the group the same numbers inside as outside. Files of
// other users look as if they belonged to nobody.
func (s *script) sameUser() {
	for _, file := range []struct{ name, text string }{
		{"setgroups", "deny"},
		{"uid_map", fmt.Sprintf("%d %d 1", os.Geteuid(), os.Geteuid())},
		{"gid_map", fmt.Sprintf("%d %d 1", os.Getegid(), os.Getegid())},
	} {
		name := "/proc/self/" + file.name
		fd := s.do("open "+name, unix.SYS_OPENAT, unix.AT_FDCWD, name, unix.O_WRONLY|unix.O_CLOEXEC, 0).result()
		s.do("write "+name, unix.SYS_WRITE, fd, file.text, len(file.text))
		s.do("close", unix.SYS_CLOSE, fd)
	}
}

// becomeProgram prepares the third process, which becomes the program.
func (p *plan) becomeProgram(o order) error {
	s := &p.program
	s.do("begin a session", unix.SYS_SETSID)
	s.bound(o)
	s.leaveDescriptors()
	for sig := 1; sig <= lastSignal; sig++ {
		if handled(sig) {
			s.do("reset signals", unix.SYS_RT_SIGACTION, sig, new(sigaction), 0, sigsetSize).unless(0, unix.EINVAL)
		}
	}
	var mask unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, nil, &mask); err != nil {
		return fmt.Errorf("read the signal mask: %w", err)
	}
	s.do("unblock signals", unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, &mask, 0, sigsetSize)
	argv, err := syscall.SlicePtrFromStrings(o.argv)
	if err != nil {
		return fmt.Errorf("run %s: %w", o.program, err)
	}
	env, err := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil {
		return fmt.Errorf("run %s: %w", o.program, err)
	}
	s.do("run "+o.program, unix.SYS_EXECVE, o.program, &argv[0], &env[0])
	return nil
}

// fork starts the second process. It returns only in the first process.
//
//go:norace
//go:nosplit
//go:noinline
func (p *plan) fork(flags uintptr) (uintptr, syscall.Errno) {
	pid, errno := fork(flags)
	if pid == 0 && errno == 0 {
		p.second()
	}
	return pid, errno
}

// second is the main function of the second process. It never returns. All signals stay
// blocked: second receives them one by one, and passes all except SIGCHLD to the program.
//
//go:norace
//go:nosplit
func (p *plan) second() {
	p.failed.Part = partSetup
	if !p.setup.run(&p.failed) {
		p.fail()
	}
	program, errno := fork(0)
	if errno != 0 {
		p.failed.Part, p.failed.Errno = partFork, uint32(errno)
		p.fail()
	}
	if program == 0 {
		p.failed.Part = partProgram
		p.program.run(&p.failed) // returns only on failure
		p.fail()
	}
	p.after.run(&p.failed)
	told := false
	for {
		sig, errno := raw(unix.SYS_RT_SIGTIMEDWAIT, p.at.all, 0, 0, sigsetSize)
		if errno != 0 {
			continue
		}
		if sig != uintptr(unix.SIGCHLD) {
			_, _ = raw(unix.SYS_KILL, -program, sig, 0, 0)
			continue
		}
		ended := false
		for {
			pid, errno := raw(unix.SYS_WAIT4, ^uintptr(0), p.at.wait, unix.WNOHANG, 0)
			if errno != 0 { // no process is left
				if !told {
					p.tell()
				}
				exit()
			}
			if pid == 0 {
				break
			}
			if pid == program {
				ended = true
				p.ended.Status = uint32(p.wait)
			}
		}
		if ended {
			p.ended.Left, told = 1, true
			p.tell()
		}
	}
}

// tell reports the status of the program to the first process. After this, the first
// process may end while background processes continue.
//
//go:norace
//go:nosplit
func (p *plan) tell() {
	_, _ = raw(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, 0, 0, 0)
	_, _ = raw(unix.SYS_WRITE, uintptr(p.status), p.at.ended, unsafe.Sizeof(p.ended), 0)
}

// fail reports the failure and exits.
//
//go:norace
//go:nosplit
func (p *plan) fail() {
	_, _ = raw(unix.SYS_WRITE, uintptr(p.report), p.at.failed, unsafe.Sizeof(p.failed), 0)
	exit()
}

//go:norace
//go:nosplit
func exit() {
	for {
		_, _ = raw(unix.SYS_EXIT_GROUP, 0, 0, 0, 0)
	}
}
