package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// forgetTyped drops unread input of a terminal.
func forgetTyped(terminal *os.File) {
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH) // other files have nothing to drop
}
