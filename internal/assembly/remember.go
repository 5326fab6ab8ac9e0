package assembly

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/policy"
)

// The mode and the model of a turn are stored with it. It can then be resumed without flags, and a read-only turn stays
// read-only.
var (
	TurnMode     = policy.First[string]("belay.mode")
	turnModeFrom = policy.First[string]("belay.mode_from") // the kind of its source
	TurnModel    = policy.First[string]("belay.model")
)

// RememberTurn returns the hook that stores the mode and the model with each turn, so that the turn can be resumed
// with them. It runs before all other hooks, and they cannot change these values. An empty model is not stored.
func RememberTurn(s *config.Loaded, model string) hook.Subscription {
	return belay.TurnPrePolicy.On("belay.turn", func(context.Context, belay.TurnBegun) (belay.TurnPolicy, error) {
		settings := []policy.Setting{TurnMode.Set(s.Mode), turnModeFrom.Set(s.From("mode").Kind)}
		if model != "" {
			settings = append(settings, TurnModel.Set(model))
		}
		return belay.SetPolicy(settings...), nil
	}, &hook.Options{
		Description: "stores the mode and the model with the turn, for resuming it", Version: "1",
		Capabilities: hook.CanSetPolicy, Priority: firstOfAll, Visibility: hook.VisibleInternally,
	})
}

// firstOfAll is a priority before all others.
const firstOfAll = -1 << 30

// FullModelName returns the name of the model to use. The path of a script is absolute, so that it is found from any
// directory.
func FullModelName(s *config.Loaded) string {
	name, scripted := strings.CutPrefix(ModelName(s), "scripted/")
	if !scripted {
		return ModelName(s)
	}
	path, err := filepath.Abs(scriptPath(s, name))
	if err != nil {
		return ModelName(s)
	}
	return "scripted/" + path
}

// ModeOfTurn returns the mode that a turn runs in on this machine, or without a turn the mode of the settings.
func (a *Assembler) ModeOfTurn(ctx context.Context, s *config.Loaded, turn policy.Settings) permit.Mode {
	a.DefaultMode(ctx, s)
	return modeOfTurn(s, turn)
}

// modeOfTurn returns the mode for a turn. A flag decides. Without one it is the mode that the turn began with. Settings
// that have changed since apply only if they are stricter, and only if the turn did not begin with a flag.
func modeOfTurn(s *config.Loaded, turn policy.Settings) permit.Mode {
	today, err := permit.ModeOf(s.Mode)
	if err != nil {
		today = permit.ReadOnly // settings are checked when they are read
	}
	name, _ := TurnMode.Value(turn)
	had, err := permit.ModeOf(name)
	if err != nil || s.From("mode").Kind == "flag" {
		return today
	}
	if kind, _ := turnModeFrom.Value(turn); kind == "flag" || s.From("mode").Kind == "default" {
		return had
	}
	return had.Tighter(today)
}
