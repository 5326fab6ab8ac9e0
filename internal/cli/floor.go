package cli

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
)

// The zones of what tools do, as far as the name of a tool tells.
const (
	zoneSafe      = 0 // reads
	zoneWorkspace = 1 // changes files of the project
	zoneMachine   = 5 // anything: what cannot be told
)

// floor is an interim floor: it judges a call by its tool alone and looks at no
// path, address or command. Reading is zone 0, writing zone 1; the shell, and
// every tool that it does not know, is zone 5. Package permit, which looks closer,
// will take its place.
type floor struct{ settings *config.Loaded }

var _ belay.Authorizer = floor{}

// Authorize passes zones up to the Auto of the turn's mode, asks up to its Ask,
// and denies the rest.
func (f floor) Authorize(_ context.Context, call belay.ToolCall) (belay.Authorization, error) {
	zone, mode := zoneOf(call.Tool()), modeOfTurn(f.settings, call.Policy())
	by := fmt.Sprintf("mode %s", mode.Name)
	switch {
	case zone <= mode.Auto:
		return belay.Authorization{}, nil
	case zone <= mode.Ask:
		return belay.Authorization{
			Decision: belay.ToolAsk, By: by,
			Reason: fmt.Sprintf("%s is zone %d, and %s mode runs up to zone %d by itself", call.Tool(), zone, mode.Name, mode.Auto),
		}, nil
	default:
		return belay.Authorization{
			Decision: belay.ToolDeny, By: by,
			Reason: fmt.Sprintf("%s is zone %d, and %s mode allows nothing above zone %d", call.Tool(), zone, mode.Name, mode.Ask),
		}, nil
	}
}

func zoneOf(tool string) int {
	switch tool {
	case "read", "list", "glob", "grep":
		return zoneSafe
	case "write", "edit":
		return zoneWorkspace
	default:
		return zoneMachine
	}
}
