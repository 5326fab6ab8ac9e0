// Command belay runs, checks and explains agents on the Belay runtime.
package main

import (
	"os"

	"github.com/belay-run/belay/internal/cli"
)

func main() { os.Exit(cli.Main()) }
