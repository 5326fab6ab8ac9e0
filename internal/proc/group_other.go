//go:build !unix

package proc

import (
	"os"
	"syscall"
)

func ownSession() *syscall.SysProcAttr { return nil }

func askToEnd(p *os.Process) { _ = p.Kill() } // ignore errors: the process may have ended

func forceToEnd(p *os.Process) { _ = p.Kill() } // ignore errors: the process may have ended

func groupAlive(int) bool { return false }

// interrupt cannot make a read return on this system. The goroutine that reads ends when
// the pipe is closed.
func interrupt(*os.File) bool { return false }

// Offer writes nothing on this system, because it cannot write without blocking.
func Offer(_ *os.File, data []byte) (rest []byte) { return data }

// closePipe closes a pipe without waiting for a read that is still running.
func closePipe(f *os.File) { go func() { _ = f.Close() }() }

func drain(*os.File, func([]byte) bool) bool { return false }
