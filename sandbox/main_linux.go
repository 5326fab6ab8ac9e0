package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// ready is whether this process has called Main, and so whether another one of the same
// program will. It is the one thing that the process knows and no value can tell.
var ready atomic.Bool

// Main makes this program able to contain others. Call it as the first thing that main
// does, and in tests as the first thing that TestMain does. It returns at once, unless
// the process was started to run a program in a sandbox: then it becomes that program
// and does not return.
func Main() {
	if len(os.Args) > 1 && os.Args[1] == marker {
		runtime.LockOSThread() // what is done to this thread is to be done to the program
		err := obey(os.Args[2:])
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(exitCode(err))
	}
	if len(os.Args) > 1 && os.Args[1] == watchMarker {
		if runWatcher(os.Args[2:]) != nil {
			os.Exit(1) // nobody reads what it says
		}
		os.Exit(0)
	}
	ready.Store(true)
}

// startError is that the program itself could not be started.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// exitCode is the shells' for a command that cannot be run.
func exitCode(err error) int {
	if _, ok := errors.AsType[*startError](err); ok && errors.Is(err, unix.ENOENT) {
		return 127
	}
	return 126
}

// obey becomes the program under its policy, or says why not.
func obey(args []string) error {
	o, err := parseOrder(args)
	if err != nil {
		return err
	}
	restoreLimit()
	if o.kind == Namespaces {
		return runInside(o)
	}
	if err := watchThis(o); err != nil {
		return err
	}
	var s script
	if o.kind == Landlock {
		if err := s.restrict(o); err != nil {
			return err
		}
	}
	s.bound(o)
	s.leaveDescriptors()
	var failed failure
	if !s.run(&failed) {
		return s.err(failed)
	}
	runtime.KeepAlive(&s)
	err = syscall.Exec(o.program, o.argv, os.Environ()) //nolint:gosec // running what it is told to is the point
	return &startError{fmt.Errorf("run %s: %w", o.program, err)}
}

// restrict takes from the thread what the program shall not have.
func (s *script) restrict(o order) error {
	if err := s.renounce(o.means.users); err != nil {
		return err
	}
	s.landlock(o)
	s.seccomp(o)
	return nil
}

// leaveDescriptors closes what was inherited, other than standard input, output and
// error, when the program starts. An open file can be written to whatever the
// policy says.
func (s *script) leaveDescriptors() {
	s.do("close what was inherited", unix.SYS_CLOSE_RANGE, 3, uintptr(^uint32(0)), unix.CLOSE_RANGE_CLOEXEC)
}

// restoreLimit undoes what the runtime does to the limit of open files when it starts,
// as the runtime itself does for a program that it starts. That it does so before
// it finds that there is none by that name is used here.
func restoreLimit() { _ = syscall.Exec("", []string{""}, nil) }
