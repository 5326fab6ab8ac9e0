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

// ready reports whether this process has called Main. Then a child of the same program
// calls Main too. The variable is global because it describes the process.
var ready atomic.Bool

// Main lets this program run other programs in a sandbox. Call it at the very beginning
// of main, and of TestMain in tests. It normally returns at once. But if the process was
// started to run a program in a sandbox, Main becomes that program and does not return.
func Main() {
	if len(os.Args) > 1 && os.Args[1] == marker {
		runtime.LockOSThread() // the program inherits the restrictions of this thread
		err := obey(os.Args[2:])
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(exitCode(err))
	}
	if len(os.Args) > 1 && os.Args[1] == watchMarker {
		if runWatcher(os.Args[2:]) != nil {
			os.Exit(1) // there is no one to report the error to
		}
		os.Exit(0)
	}
	ready.Store(true)
}

// startError means that the sandbox works, but the program could not be started.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// exitCode returns the exit code that shells use for a command that cannot run.
func exitCode(err error) int {
	if _, ok := errors.AsType[*startError](err); ok && errors.Is(err, unix.ENOENT) {
		return 127
	}
	return 126
}

// obey applies the policy and becomes the program. It returns only with an error.
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

// restrict adds the restrictions of the thread to the script.
func (s *script) restrict(o order) error {
	if err := s.renounce(o.means.users); err != nil {
		return err
	}
	s.landlock(o)
	s.seccomp(o)
	return nil
}

// leaveDescriptors closes all inherited files except standard input, output and error
// when the program starts. The program could write to an open file even if the policy
// forbids it.
func (s *script) leaveDescriptors() {
	s.do("close inherited files", unix.SYS_CLOSE_RANGE, 3, uintptr(^uint32(0)), unix.CLOSE_RANGE_CLOEXEC)
}

// restoreLimit restores the limit of open files, which the Go runtime raises at the
// start. syscall.Exec does this, even though the call here fails: the runtime restores
// the limit before it looks for the program.
func restoreLimit() { _ = syscall.Exec("", []string{""}, nil) }
