package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// reading is FREAD of the system: what is to be read is dropped.
const reading = 1

// forgetTyped drops what was typed at a terminal and not read yet.
func forgetTyped(terminal *os.File) {
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, reading) // what is no terminal has nothing to drop
}
