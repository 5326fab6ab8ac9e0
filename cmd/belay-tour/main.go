// Command belay-tour shows what Belay does, in less than a minute and without a key: hooks
// rewrite, deny and time out, a person is asked, and every run is recorded. It compiles
// faster than the command belay, whose `belay demo` also has SQLite and kills a process.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/belay-run/belay/internal/demo"
	"github.com/belay-run/belay/sandbox"
)

func main() {
	sandbox.Main() // the sandbox starts this program again to run a confined command
	if err := demo.Run(context.Background(), os.Stdout, demo.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, "belay-tour:", err)
		os.Exit(1)
	}
}
