// Command picture draws the picture of the README: it runs the turn of the demo, with its processes, its
// kill and its store, and draws the records of the hooks.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/belay-run/belay/internal/demo"
	"github.com/belay-run/belay/sandbox"
)

func main() {
	sandbox.Main() // the demo confines a program
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// run draws into the file that the arguments name. The demo starts this program a second time, as the process
// to kill: that one writes its story to standard output and draws nothing.
func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the file to write, not %q", args)
	}
	story := io.Discard
	if args[0] == "demo" {
		story = os.Stdout
	}
	recording, err := demo.Record(ctx, story)
	if err != nil || recording == nil {
		return err
	}
	return os.WriteFile(args[0], []byte(draw(recording)), 0o644) //nolint:gosec // a picture is for everyone to read
}
