// Command belay runs, checks and explains agents on the Belay runtime.
package main

import (
	"os"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/sandbox"
)

func main() {
	sandbox.Main() // the sandbox starts this program again to run a confined command
	os.Exit(cli.Main())
}
