package proc

import (
	"runtime"
	"syscall"
)

// tie makes the kernel kill the child when the thread that started it ends. That happens at
// the latest when this process ends. The signal is SIGKILL, because nobody would be left to
// follow a SIGTERM with a SIGKILL.
func tie(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// holdThread reserves the thread of the calling goroutine until letGo is called. Without
// this the thread could end while the process runs, and the kernel would kill the child.
func holdThread() (letGo func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
