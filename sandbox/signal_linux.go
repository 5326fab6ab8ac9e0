package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	lastSignal = 64
	sigsetSize = lastSignal / 8
)

// sigaction is large enough for the kernel's struct on every supported architecture. The
// first word is the handler. Zero means the default action.
type sigaction struct {
	handler uintptr
	_       [7]uint64
}

// handled reports whether this process has a handler for a signal.
func handled(sig int) bool {
	const ignore = 1
	action := new(sigaction)
	_, errno := raw(unix.SYS_RT_SIGACTION, uintptr(sig), 0, address(action), sigsetSize)
	return errno == 0 && action.handler > ignore
}

// endAs ends this process with the given status: with the same exit code, or by the same
// signal.
func endAs(status unix.WaitStatus) {
	if !status.Signaled() {
		os.Exit(status.ExitStatus())
	}
	sig := status.Signal()
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // a core dump of this process would be useless
	action := new(sigaction)
	_, _ = raw(unix.SYS_RT_SIGACTION, uintptr(sig), address(action), 0, sigsetSize)
	var none unix.Sigset_t
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &none, nil)
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), sig)
	os.Exit(128 + int(sig)) // reached only if the signal did not end the process
}
