package proc

import (
	"runtime"
	"syscall"
)

// tie makes the kernel kill the child when the thread that started it ends,
// which happens at the latest with this process. It uses SIGKILL, because after
// SIGTERM no process would be left to enforce the end.
func tie(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// holdThread keeps the thread of the calling goroutine alive and unused by others,
// until the returned function is called: a thread can end before its process,
// which would kill the child.
func holdThread() (letGo func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
