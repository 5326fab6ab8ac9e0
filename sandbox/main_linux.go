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

// ready reports whether this process has called Main: then a child of the same
// program calls it, too. It is global because it is a property of the process.
var ready atomic.Bool

// Main lets this program run others in a sandbox. Call it as the first thing that main
// does, and in tests as the first thing that TestMain does. It returns at once, unless
// the process was started to run a program in a sandbox: then it becomes that program
// and does not return.
func Main() {
	if len(os.Args) > 1 && os.Args[1] == marker {
		runtime.LockOSThread() // the restrictions of this thread become those of the program
		err := obey(os.Args[2:])
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(exitCode(err))
	}
	if len(os.Args) > 1 && os.Args[1] == watchMarker {
		if runWatcher(os.Args[2:]) != nil {
			os.Exit(1) // its error cannot be reported
		}
		os.Exit(0)
	}
	ready.Store(true)
}

// startError means that the program itself could not be started.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// exitCode returns the exit code of shells for a command that cannot run.
func exitCode(err error) int {
	if _, ok := errors.AsType[*startError](err); ok && errors.Is(err, unix.ENOENT) {
		return 127
	}
	return 126
}

// obey applies the policy and becomes the program, or returns why it cannot.
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

// restrict applies the restrictions to the thread.
func (s *script) restrict(o order) error {
	if err := s.renounce(o.means.users); err != nil {
		return err
	}
	s.landlock(o)
	s.seccomp(o)
	return nil
}

// leaveDescriptors closes inherited files, except standard input, output and error,
// when the program starts. An open file could be written in spite of the policy.
func (s *script) leaveDescriptors() {
	s.do("close inherited files", unix.SYS_CLOSE_RANGE, 3, uintptr(^uint32(0)), unix.CLOSE_RANGE_CLOEXEC)
}

// restoreLimit undoes the change that the Go runtime makes to the limit of open files
// when it starts, as the runtime itself does for programs that it starts. This relies
// on the runtime doing so before it finds that the program does not exist.
func restoreLimit() { _ = syscall.Exec("", []string{""}, nil) }
