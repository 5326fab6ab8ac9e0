// Command belay runs, checks and explains agents on the Belay runtime.
package main

import (
	"os"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/sandbox"
)

func main() {
	sandbox.Main() // a process that was started to confine a command only does that
	os.Exit(cli.Main())
}
