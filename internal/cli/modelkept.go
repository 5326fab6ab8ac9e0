package cli

import (
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
)

// heedKept makes the settings use the model of the session, if they name no usable model.
// If --model names another model, heedKept prints a remark.
func (a *app) heedKept(settings *config.Loaded, info *belay.SessionInfo) error {
	kept := info.State.Model
	switch {
	case kept == "":
		return nil
	case settings.From("model").Kind == "flag":
		if name := assembly.FullModelName(settings); name != kept {
			a.remarkf("%s", a.onErr.dim(fmt.Sprintf("model: %s (%s); later turns of the session use %s", assembly.ModelName(settings), settings.From("model"), kept)))
		}
		return nil
	}
	if _, err := assembly.OpenModel(settings); err == nil {
		return nil
	}
	if err := settings.Recall("model", "session "+info.ID, kept); err != nil {
		return usage("the model of the session no longer exists, and there is no other: %w; name one with --model PROVIDER/NAME", err)
	}
	return nil
}

// answering returns the name of the model that answers in this session.
func (w *work) answering() string {
	if w.session != nil && w.session.State.Model != "" && w.Settings.From("model").Kind != "flag" {
		return w.session.State.Model
	}
	return assembly.ModelName(w.Settings)
}
