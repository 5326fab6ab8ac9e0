package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// forgetTyped drops input of the terminal that nobody has read.
func forgetTyped(terminal *os.File) {
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH) // ignore errors: a file that is not a terminal has nothing to drop
}
