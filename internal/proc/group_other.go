//go:build !unix

package proc

import (
	"os"
	"syscall"
)

func ownSession() *syscall.SysProcAttr { return nil }

func askToEnd(p *os.Process) { _ = p.Kill() } // it has possibly ended already

func forceToEnd(p *os.Process) { _ = p.Kill() } // likewise

func groupAlive(int) bool { return false }

// interrupt cannot make a read return here: the reading goroutine ends when the
// pipe is closed.
func interrupt(*os.File) bool { return false }

// Offer cannot write without waiting here.
func Offer(_ *os.File, data []byte) (rest []byte) { return data }

// closePipe does not wait for a running read.
func closePipe(f *os.File) { go func() { _ = f.Close() }() }

func drain(*os.File, func([]byte) bool) bool { return false }
