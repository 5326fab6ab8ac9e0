package sandbox

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// A script is a list of system calls. It is prepared in Go, and runs in a forked process,
// in which the Go runtime does not work. Between fork and exec there must be no
// allocation, no stack growth, no other goroutine and no pointer write. The alternative
// is to start this program again, but then all its packages are initialised again. In a
// large program this takes more time than everything else.
type script struct {
	calls []*call
	keep  []any // memory that the arguments point to
}

// call is one system call of a script.
type call struct {
	what string // names the call in error messages
	nr   uintptr
	args [6]uintptr
	from [6]*int32 // for each argument that is the result of an earlier call: where that result is
	into *int32    // where to store the result, or nil

	tolerate [6]syscall.Errno // errors that are not failures
	skip     int              // how many calls to skip after one of these errors
	must     syscall.Errno    // the error that the call must return, or 0
}

// do appends a system call. An argument is a number, a string, a pointer, or the result
// of an earlier call.
func (s *script) do(what string, nr uintptr, args ...any) *call {
	c := &call{what: what, nr: nr}
	for i, arg := range args {
		switch arg := arg.(type) {
		case int:
			c.args[i] = uintptr(arg)
		case uintptr:
			c.args[i] = arg
		case string:
			text := append([]byte(arg), 0)
			s.keep = append(s.keep, text)
			c.args[i] = address(&text[0])
		case *int32:
			c.from[i] = arg
		default:
			s.keep = append(s.keep, arg)
			c.args[i] = address(arg)
		}
	}
	s.calls = append(s.calls, c)
	return c
}

// address returns a pointer as a number. The memory is on the heap, where it does not
// move. The caller must keep the memory alive.
func address(pointer any) uintptr { return reflect.ValueOf(pointer).Pointer() }

// result returns where the result of the call will be stored, for use in later calls.
func (c *call) result() *int32 {
	c.into = new(int32)
	return c.into
}

// unless lists errors that are not failures. After such an error, run skips a number of
// calls.
func (c *call) unless(skip int, errs ...syscall.Errno) {
	c.skip = skip
	copy(c.tolerate[:], errs)
}

// failure says which call of a script failed, and why. Its bytes are sent through a pipe.
type failure struct {
	Part  uint32 // which script failed, see partSetup
	Index uint32
	Errno uint32
}

// err converts a failure to an error.
func (s *script) err(f failure) error {
	what := s.calls[f.Index].what
	if f.Errno == 0 { // the call succeeded, but had to fail
		return errors.New(what)
	}
	return fmt.Errorf("%s: %w", what, syscall.Errno(f.Errno))
}

// run makes the calls. It stops at the first call that fails, and returns false.
//
//go:norace
//go:nosplit
func (s *script) run(failed *failure) bool {
	for i := 0; i < len(s.calls); i++ {
		c := s.calls[i]
		result, errno := c.issue()
		if errno == c.must {
			if errno == 0 && c.into != nil {
				*c.into = int32(result)
			}
			continue
		}
		tolerated := false
		for j := range c.tolerate {
			if errno != 0 && errno == c.tolerate[j] {
				tolerated = true
			}
		}
		if !tolerated {
			failed.Index, failed.Errno = uint32(i), uint32(errno)
			return false
		}
		i += c.skip
	}
	return true
}

//go:norace
//go:nosplit
func (c *call) issue() (uintptr, syscall.Errno) {
	for i := range c.from {
		if c.from[i] != nil {
			c.args[i] = uintptr(*c.from[i])
		}
	}
	for {
		result, _, errno := syscall.RawSyscall6(c.nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		if errno != syscall.EINTR {
			return result, errno
		}
	}
}

// fork starts a process with a copy of this memory. Only the calling thread exists in the
// new process. fork returns in both processes. The caller must block all signals, because
// their handlers belong to the Go runtime. The signals stay blocked in the child.
//
//go:norace
//go:nosplit
func fork(flags uintptr) (pid uintptr, errno syscall.Errno) {
	flags |= uintptr(unix.SIGCHLD)
	return raw(unix.SYS_CLONE, flags, 0, 0, 0)
}

// raw makes a system call without telling the Go runtime.
//
//go:norace
//go:nosplit
func raw(nr, a, b, c, d uintptr) (uintptr, syscall.Errno) {
	result, _, errno := syscall.RawSyscall6(nr, a, b, c, d, 0, 0)
	return result, errno
}

// withoutSignals calls f while all signals are blocked for the thread.
func withoutSignals(f func()) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return fmt.Errorf("block signals: %w", err)
	}
	f()
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil); err != nil {
		return fmt.Errorf("unblock signals: %w", err)
	}
	return nil
}
