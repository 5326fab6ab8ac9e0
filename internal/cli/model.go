package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/scripted"
)

// defaultModel is taken when there is a key and nobody named a model.
const defaultModel = "anthropic/claude-sonnet-4-5"

// noModel is the one line for whoever has neither a key nor a model.
const noModel = "there is no model to ask: set ANTHROPIC_API_KEY; or run a local server that speaks the Anthropic API, set BELAY_ANTHROPIC_URL and BELAY_MODEL=anthropic/NAME; or try `belay demo`, which needs neither"

// openModel makes the model that the settings name.
func openModel(settings *config.Loaded) (belay.Model, error) { //nolint:ireturn // which model it is, is the user's choice
	provider, name, _ := strings.Cut(settings.Model, "/")
	if provider == "scripted" {
		model, err := scripted.Load(scriptPath(settings, name))
		if err != nil {
			return nil, usage("%w", err)
		}
		return model, nil
	}
	key, _, err := anthropicKey(settings)
	if err != nil {
		return nil, err
	}
	if key == "" && settings.Anthropic.URL == "" {
		return nil, usage(noModel)
	}
	if provider == "" {
		if settings.Anthropic.URL != "" && key == "" {
			return nil, usage("which model? %s names a server: set BELAY_MODEL=anthropic/NAME, or model in a %s, with a name that it knows", settings.From("anthropic.url"), config.Name)
		}
		_, name, _ = strings.Cut(defaultModel, "/")
	}
	return anthropic.New(name, &anthropic.Options{Key: cmp.Or(key, "none"), URL: settings.Anthropic.URL}), nil
}

// anthropicKey finds the key and says where it was.
func anthropicKey(settings *config.Loaded) (key, where string, err error) {
	if key := strings.TrimSpace(settings.Environment("ANTHROPIC_API_KEY")); key != "" {
		return key, "ANTHROPIC_API_KEY", nil
	}
	path := settings.Anthropic.KeyFile
	if path == "" {
		return "", "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", "", usage("%s: %w", settings.From("anthropic.key_file"), err)
	}
	if key := string(bytes.TrimSpace(data)); key != "" {
		return key, path, nil
	}
	return "", "", usage("%s: %s is empty", settings.From("anthropic.key_file"), path)
}

// scriptPath is the path of a script: one that a file names is seen from that
// file, one on the command line or in the environment from where the user is.
func scriptPath(settings *config.Loaded, name string) string {
	kind := settings.From("model").Kind
	if filepath.IsAbs(name) || kind == "flag" || kind == "environment" {
		return name
	}
	if kind == "user" {
		return filepath.Join(filepath.Dir(settings.UserFile), name)
	}
	return filepath.Join(settings.Project, name)
}

// modelName is the model that would be asked, for showing it.
func modelName(settings *config.Loaded) string { return cmp.Or(settings.Model, defaultModel) }

// masked shows enough of a key to tell it from others.
func masked(key string) string {
	if len(key) < 16 {
		return "…"
	}
	return fmt.Sprintf("%s…%s", key[:3], key[len(key)-4:])
}
