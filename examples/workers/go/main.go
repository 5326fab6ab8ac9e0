// Command go is a hook that runs as a worker. It denies writes to production.
package main

import (
	"context"
	"path"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare/worker"
)

func main() { worker.Main(worker.On(belay.ToolPre, noProd)) }

func noProd(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	var in struct{ Path string }
	if err := call.Decode(&in); err != nil {
		return belay.Pass, err // tool.pre is a gate: an error denies
	}
	if strings.HasPrefix(path.Clean(in.Path)+"/", "/srv/prod/") {
		return belay.Deny("production is off limits"), nil
	}
	return belay.Pass, nil
}
