package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// takeCare starts a caretaker: a process that removes placeholders. The caretaker waits
// until all processes that have the returned file open have ended. It has its own
// session, so that signals to those processes do not reach it.
func takeCare(made []placeholder) (pid int, alive *os.File, err error) {
	if len(made) == 0 {
		return 0, nil, nil
	}
	ended, alive, err := pipe()
	if err != nil {
		return 0, nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, nil, err
	}
	s := &script{keep: []any{ended, alive, null}}
	s.do("begin a session", unix.SYS_SETSID)
	s.do("leave the directory", unix.SYS_CHDIR, "/")
	s.do("close", unix.SYS_CLOSE, int(alive.Fd()))
	for fd := range 3 {
		s.do("close the program's files", unix.SYS_DUP3, int(null.Fd()), fd, 0)
	}
	s.do("wait", unix.SYS_READ, int(ended.Fd()), new([1]byte), 1)
	s.tidy(made)

	var child uintptr
	var errno syscall.Errno
	err = withoutSignals(func() { child, errno = s.fork(new(failure)) })
	runtime.KeepAlive(s)
	if errno != 0 {
		return 0, nil, fmt.Errorf("start the process that removes placeholders: %w", errno)
	}
	if err != nil {
		return 0, nil, err
	}
	_ = ended.Close() // only the child needs it
	_ = null.Close()  // only the child needs it
	return int(child), alive, nil
}

// fork runs the script in a new process.
//
//go:norace
//go:nosplit
//go:noinline
func (s *script) fork(failed *failure) (uintptr, syscall.Errno) {
	pid, errno := fork(0)
	if pid == 0 && errno == 0 {
		s.run(failed)
		exit()
	}
	return pid, errno
}
