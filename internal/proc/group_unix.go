//go:build unix

package proc

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// ownSession makes the child the leader of a new session and process group. So it has no
// terminal, and one signal reaches the whole group.
func ownSession() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	tie(attr)
	return attr
}

func askToEnd(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) } // ignore errors: the group may have ended

func forceToEnd(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) } // ignore errors: the group may have ended

// groupAlive reports whether a group has a running process. It ignores processes that are
// dead but not yet reaped, because containers often have such processes. The number of a
// group is not reused while the group has any process.
func groupAlive(pid int) bool {
	return !errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH) && !allDead(pid)
}

// interrupt makes a blocked read return.
func interrupt(f *os.File) bool { return f.SetReadDeadline(time.Unix(1, 0)) == nil }

// Offer writes as much as fits into a pipe without blocking, and returns the rest. If it
// cannot write, it returns all data.
func Offer(f *os.File, data []byte) (rest []byte) {
	conn, err := f.SyscallConn()
	if err != nil {
		return data
	}
	n := 0
	err = conn.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), data) // ignore errors: the caller gets the rest
		return true                         // do not wait
	})
	if err != nil || n <= 0 {
		return data
	}
	return data[n:]
}

func closePipe(f *os.File) { _ = f.Close() } // ignore errors: nothing was written

// mostPiped is the maximum size of a pipe, unless an administrator has changed it.
const mostPiped = 1 << 20

// drain reads what is in a pipe, and passes it to put. It does not wait for more. It stops
// after mostPiped bytes, even if another process continues to write. ended is true if the
// pipe is closed, or if put does not want more.
func drain(f *os.File, put func([]byte) bool) (ended bool) {
	if f.SetReadDeadline(time.Time{}) != nil {
		return false
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	buf := make([]byte, chunk)
	for left := mostPiped; left > 0; {
		n := 0
		var readErr error
		err := conn.Read(func(fd uintptr) bool {
			n, readErr = syscall.Read(int(fd), buf)
			return true // do not wait
		})
		switch {
		case errors.Is(readErr, syscall.EINTR):
			continue
		case err != nil || readErr != nil: // the pipe is empty, and another process has it open
			return false
		case n <= 0 || !put(buf[:n]):
			return true
		}
		left -= n
	}
	return false
}
