//go:build unix

package proc

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// ownSession makes the child the leader of a session, and so of a process group:
// no terminal can reach it, and one signal reaches all of it.
func ownSession() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	tie(attr)
	return attr
}

func askToEnd(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) } // it has possibly ended already

func forceToEnd(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) } // likewise

// groupAlive reports whether a group has a running member. As long as it has any
// member, its number is not reused. Dead members that were not reaped yet, as
// happens in containers, do not count.
func groupAlive(pid int) bool {
	return !errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH) && !allDead(pid)
}

// interrupt makes a running read return.
func interrupt(f *os.File) bool { return f.SetReadDeadline(time.Unix(1, 0)) == nil }

// Offer writes what fits into a pipe without blocking, and returns the rest. If that
// is not possible, it returns everything.
func Offer(f *os.File, data []byte) (rest []byte) {
	conn, err := f.SyscallConn()
	if err != nil {
		return data
	}
	n := 0
	err = conn.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), data) // the caller gets the rest
		return true                         // never wait
	})
	if err != nil || n <= 0 {
		return data
	}
	return data[n:]
}

func closePipe(f *os.File) { _ = f.Close() } // nothing was written through it

// mostPiped is the capacity of a pipe, unless an administrator has changed it.
const mostPiped = 1 << 20

// drain passes on the content of a pipe without waiting for more. It stops
// after the size of a pipe, even if another process continues to write. It
// reports whether it reached the end: the pipe is closed, or its content is not
// wanted.
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
			return true // never wait
		})
		switch {
		case errors.Is(readErr, syscall.EINTR):
			continue
		case err != nil || readErr != nil: // empty, and another process holds it open
			return false
		case n <= 0 || !put(buf[:n]):
			return true
		}
		left -= n
	}
	return false
}
