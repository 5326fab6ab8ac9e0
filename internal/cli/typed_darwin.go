package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// reading is FREAD of the system. It selects the input queue.
const reading = 1

// forgetTyped drops input of the terminal that nobody has read.
func forgetTyped(terminal *os.File) {
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, reading) // ignore errors: a file that is not a terminal has nothing to drop
}
