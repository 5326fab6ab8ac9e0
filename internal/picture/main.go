// Command picture draws the picture in the README. It runs the turn of the demo, with its
// processes and its kill, and draws the records of the hooks.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/belay-run/belay/internal/demo"
	"github.com/belay-run/belay/internal/demo/whole"
	"github.com/belay-run/belay/sandbox"
)

func main() {
	sandbox.Main() // the sandbox starts this program again to run a confined command
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// run draws the picture into the file that the argument names. The demo starts this program
// a second time, as the process that will be killed. That process only writes its part of
// the demo to standard output.
func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the file to write, not %q", args)
	}
	story := io.Discard
	if args[0] == "demo" {
		story = os.Stdout
	}
	recording, err := demo.Record(ctx, story, whole.Options())
	if err != nil || recording == nil {
		return err
	}
	return os.WriteFile(args[0], []byte(draw(recording)), 0o644) //nolint:gosec // a picture is for everyone to read
}
