package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
)

// What a turn was begun with is kept with it: whoever goes on with it needs no
// flags, and a turn that was to change nothing changes nothing later.
var (
	turnMode     = belay.PolicyFirst[string]("belay.mode")
	turnModeFrom = belay.PolicyFirst[string]("belay.mode_from") // the kind of its source
	turnModel    = belay.PolicyFirst[string]("belay.model")
)

// rememberTurn is the hook that keeps mode and model with each turn. It comes
// before all others, and what it sets stands.
func rememberTurn(s *config.Loaded) hook.Subscription {
	return belay.TurnPrePolicy.On("belay.turn", func(context.Context, belay.TurnBegun) (belay.TurnPolicy, error) {
		return belay.SetPolicy(turnMode.Set(s.Mode), turnModeFrom.Set(s.From("mode").Kind), turnModel.Set(fullModelName(s))), nil
	}, &hook.Options{
		Description: "keeps mode and model with the turn, for whoever goes on with it", Version: "1",
		Capabilities: hook.CanSetPolicy, Priority: firstOfAll, Visibility: hook.VisibleInternally,
	})
}

const firstOfAll = -1 << 30

// fullModelName names the model so that it is found from any directory.
func fullModelName(s *config.Loaded) string {
	name, scripted := strings.CutPrefix(modelName(s), "scripted/")
	if !scripted {
		return modelName(s)
	}
	path, err := filepath.Abs(scriptPath(s, name))
	if err != nil {
		return modelName(s)
	}
	return "scripted/" + path
}

// modeOfTurn is the mode that a turn is taken in. A flag decides. Without one it
// is what the turn was begun with; settings of today count where they are tighter,
// unless it was a flag that the turn was begun with.
func modeOfTurn(s *config.Loaded, turn belay.PolicySettings) permit.Mode {
	today, err := permit.ModeOf(s.Mode)
	if err != nil {
		today = permit.ReadOnly // settings are checked when they are read
	}
	name, _ := turnMode.Value(turn)
	had, err := permit.ModeOf(name)
	if err != nil || s.From("mode").Kind == "flag" {
		return today
	}
	if kind, _ := turnModeFrom.Value(turn); kind == "flag" || s.From("mode").Kind == "default" {
		return had
	}
	return had.Tighter(today)
}
