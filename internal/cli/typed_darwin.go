package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// reading is the system's FREAD: it drops unread input.
const reading = 1

// forgetTyped drops unread input of a terminal.
func forgetTyped(terminal *os.File) {
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, reading) // other files have nothing to drop
}
