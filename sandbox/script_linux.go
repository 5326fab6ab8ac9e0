package sandbox

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// A script is a list of system calls, prepared in Go and run in a forked process, where
// the Go runtime does not work. Between fork and exec there may be no allocation, no
// stack growth, no other goroutine and no pointer write. Starting the program again
// would avoid this, but would cost the initialisation of its packages, which for a
// large program is more than all the rest.
type script struct {
	calls []*call
	keep  []any // keeps the memory of the arguments alive
}

// call is one system call of a script.
type call struct {
	what string // names the call in errors
	nr   uintptr
	args [6]uintptr
	from [6]*int32 // results of earlier calls that are arguments of this one
	into *int32    // index of its result

	tolerate [6]syscall.Errno // errors that are not failures
	skip     int              // how many calls to skip after one of these errors
	must     syscall.Errno    // the error that it must return
}

// do appends a call. An argument is a number, a string, a pointer, or the result of
// an earlier call.
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

// address returns the address that a pointer points to. The memory is on the heap,
// where it does not move; the caller keeps it alive.
func address(pointer any) uintptr { return reflect.ValueOf(pointer).Pointer() }

// result keeps the call's result for later calls.
func (c *call) result() *int32 {
	c.into = new(int32)
	return c.into
}

// unless names errors that are not failures. After one of them, that many calls are
// skipped.
func (c *call) unless(skip int, errs ...syscall.Errno) {
	c.skip = skip
	copy(c.tolerate[:], errs)
}

// failure is the first failed call of a script, with its error. Its bytes are
// sent through a pipe.
type failure struct {
	Part  uint32 // which script, for the reader
	Index uint32
	Errno uint32
}

// err returns the error of a failure.
func (s *script) err(f failure) error {
	what := s.calls[f.Index].what
	if f.Errno == 0 { // it succeeded, but had to fail
		return errors.New(what)
	}
	return fmt.Errorf("%s: %w", what, syscall.Errno(f.Errno))
}

// run makes the calls, up to the first that fails.
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

// fork starts a process that has a copy of this one's memory and only the calling
// thread. Both return from it. All signals must be blocked, since their handlers belong to
// the runtime; they stay so in the child.
//
//go:norace
//go:nosplit
func fork(flags uintptr) (pid uintptr, errno syscall.Errno) {
	flags |= uintptr(unix.SIGCHLD)
	return raw(unix.SYS_CLONE, flags, 0, 0, 0)
}

// raw makes a system call without informing the runtime.
//
//go:norace
//go:nosplit
func raw(nr, a, b, c, d uintptr) (uintptr, syscall.Errno) {
	result, _, errno := syscall.RawSyscall6(nr, a, b, c, d, 0, 0)
	return result, errno
}

// withoutSignals calls f on a thread with all signals blocked.
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
