package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/policy"
)

// What a turn was begun with is kept with it: whoever goes on with it needs no
// flags, and a turn that was to change nothing changes nothing later.
var (
	turnMode     = policy.First[string]("belay.mode")
	turnModeFrom = policy.First[string]("belay.mode_from") // the kind of its source
	turnModel    = policy.First[string]("belay.model")
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
func modeOfTurn(s *config.Loaded, turn policy.Settings) permit.Mode {
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

// goOnAs has the settings name the model that an open turn was begun with, unless
// a flag names one, and says what changes for the turn.
func (a *app) goOnAs(settings *config.Loaded, info *belay.SessionInfo) error {
	open := info.State.Turn
	if open == nil {
		return nil
	}
	if name, ok := turnModel.Value(open.Policy); ok && settings.From("model").Kind != "flag" {
		if err := settings.Recall("model", "turn "+open.ID, name); err != nil {
			return usage("session %s: %w", info.ID, err)
		}
	}
	had, _ := turnMode.Value(open.Policy)
	switch now := modeOfTurn(settings, open.Policy); {
	case had == "":
	case had != now.Name:
		a.remarkf("%s", a.onErr.yellow(fmt.Sprintf("mode: the turn was %s, now %s (%s)", had, now.Name, settings.From("mode"))))
	case had != settings.Mode:
		a.remarkf("%s", a.onErr.dim(fmt.Sprintf("mode: %s, as the turn was begun", had)))
	}
	return nil
}
