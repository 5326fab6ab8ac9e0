// Command belay runs, checks and explains agents on the Belay runtime.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"charm.land/fang/v2"
)

func main() { os.Exit(run()) }

// run returns the exit status. An interrupt cancels the command's context.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := fang.Execute(ctx, rootCommand()); err != nil {
		return 1 // fang has printed it
	}
	return 0
}
