package proc

import (
	"runtime"
	"syscall"
)

// tie has the kernel kill the child when the thread that started it ends, as all
// threads do with their process. SIGTERM would be kinder, but nobody is left to
// follow it up.
func tie(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// holdThread keeps the thread of the calling goroutine from ending, and from being
// used by others, until what it returns is called: a thread may end before its
// process does, and would take the child along.
func holdThread() (letGo func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
