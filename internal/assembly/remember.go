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

// Each turn stores its mode and model. So the turn can be resumed without flags, and a
// read-only turn stays read-only.
var (
	TurnMode     = policy.First[string]("belay.mode")
	turnModeFrom = policy.First[string]("belay.mode_from") // where the mode comes from, such as "flag"
	// turnModeBefore is the mode to which an approved plan returns, if a person chose one.
	turnModeBefore = policy.First[string]("belay.mode_before_plan")
	TurnModel      = policy.First[string]("belay.model")
)

// RememberTurn returns the hook that stores the mode and the model with each turn. It runs
// before all other hooks, and they cannot change these values. An empty model is not
// stored. A nil floor has no modes of its own for sessions.
func RememberTurn(s *config.Loaded, f *Floor, model string) hook.Subscription {
	return belay.TurnPrePolicy.On("belay.turn", func(_ context.Context, begun belay.TurnBegun) (belay.TurnPolicy, error) {
		mode, from, before := f.modeToRemember(begun.Session(), s)
		settings := []policy.Setting{TurnMode.Set(mode), turnModeFrom.Set(from)}
		if before != "" {
			settings = append(settings, turnModeBefore.Set(before))
		}
		if model != "" {
			settings = append(settings, TurnModel.Set(model))
		}
		return belay.SetPolicy(settings...), nil
	}, &hook.Options{
		Description: "stores the mode and the model with the turn, for resuming it", Version: "1",
		Capabilities: hook.CanSetPolicy, Priority: firstOfAll, Visibility: hook.VisibleInternally,
	})
}

// firstOfAll is the priority of a hook that runs before all others.
const firstOfAll = -1 << 30

// FullModelName returns the name of the model to use. It makes the path of a script
// absolute, so that the model can be found from any directory.
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

// ModeOfTurn returns the mode in which a turn runs on this machine. If turn is nil, it
// returns the mode of the settings.
func (a *Assembler) ModeOfTurn(ctx context.Context, s *config.Loaded, turn policy.Settings) permit.Mode {
	a.DefaultMode(ctx, s)
	return modeOfTurn(s, turn)
}

// modeOfTurn returns the mode of a turn. A mode that a flag sets now wins. Otherwise the
// turn keeps the mode that it began with. If that mode did not come from a flag, a
// stricter mode that the settings now set replaces it.
func modeOfTurn(s *config.Loaded, turn policy.Settings) permit.Mode {
	today, err := permit.ModeOf(s.Mode)
	if err != nil {
		today = permit.ReadOnly // never happens, because config checks the mode
	}
	name, _ := TurnMode.Value(turn)
	had, err := storedMode(name)
	if err != nil || s.From("mode").Kind == "flag" {
		return today
	}
	if kind, _ := turnModeFrom.Value(turn); kind == "flag" || s.From("mode").Kind == "default" {
		return had
	}
	return had.Tighter(today)
}
