package assembly

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/scripted"
)

// noModel is the message for a user who has no key and names no model.
const noModel = "there is no model: set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY; or start a local server and name its model, with BELAY_MODEL=ollama/NAME or `belay run --model ollama/NAME`; or try `belay demo`, which needs neither"

// OpenModel returns the model in the settings, or else the default model of the first
// provider with a key.
func OpenModel(settings *config.Loaded) (belay.Model, error) { //nolint:ireturn // which model it is, is the user's choice
	if _, err := ChooseModel(settings); err != nil {
		return nil, err
	}
	return FindModel(settings, FullModelName(settings))
}

// FindModel returns the model with the name PROVIDER/NAME. It sends no request. It returns
// an error if the provider needs a key and there is none. The path of a script is relative
// to the working directory.
func FindModel(settings *config.Loaded, name string) (belay.Model, error) { //nolint:ireturn // see openModel
	p, model, err := settings.ModelOf(name)
	if err != nil {
		return nil, mistake("%w", err)
	}
	if p.Name == config.Scripted {
		script, err := scripted.Load(model)
		if err != nil {
			return nil, mistake("%w", err)
		}
		return script, nil
	}
	key, from, err := KeyOf(settings, p)
	if err != nil {
		return nil, err
	}
	if key == "" && p.NeedsKey() {
		return nil, mistake("%w", &NoKeyError{settings, p})
	}
	called := &calledModel{Model: MakeModel(p, model, key), name: name, at: p, model: model}
	if key != "" {
		called.key, called.keyFrom = MaskKey(key), from
	}
	return called, nil
}

// NoKeyError is the error for a provider that needs a key, if Belay finds no key.
type NoKeyError struct {
	settings *config.Loaded
	provider *config.Provider
}

func (e *NoKeyError) Error() string {
	p := e.provider
	return fmt.Sprintf("there is no key for %s: set %s; or put the key into a file, and name this file in %s, as key_file under providers.%s", p.Name, strings.Join(p.KeyEnv, " or "), userFile(e.settings), p.Name)
}

// userFile returns "the user's belay.yaml", with its path if it is known.
func userFile(s *config.Loaded) string {
	if s.UserDir == "" {
		return "the user's " + config.Name
	}
	return "the user's " + filepath.Join(s.UserDir, config.Name)
}

// A ServedModel is a model whose provider can list its models.
type ServedModel interface {
	belay.InfoModel
	modelLister
}

// MakeModel makes a model of a provider. If key is empty, the model sends no key. Without
// this rule the vendors' packages would take a key from the environment, and send it to
// any server.
func MakeModel(p *config.Provider, model, key string) ServedModel { //nolint:ireturn // which model it is, is the user's choice
	t := p.Of(model)
	switch p.Kind {
	case config.KindAnthropic:
		return anthropic.New(model, &anthropic.Options{
			Key: cmp.Or(key, NoKey), URL: p.URL, MaxTokens: t.MaxTokens, Thinking: t.Thinking, Window: t.Window, Price: t.Price,
		})
	case config.KindGemini:
		return gemini.New(model, &gemini.Options{
			Key: cmp.Or(key, NoKey), URL: p.URL, MaxTokens: t.MaxTokens, Thinking: t.Thinking, Window: t.Window, Price: t.Price,
		})
	default:
		api := openai.Chat
		if p.Kind == config.KindOpenAI {
			api = openai.Responses
		}
		return openai.New(model, &openai.Options{
			Key: key, URL: p.URL, API: api, Provider: p.Table, MaxTokens: t.MaxTokens, Effort: t.Effort, Summary: t.Summary,
			Extra: t.Extra, Window: t.Window, Price: t.Price,
		})
	}
}

// NoKey is sent instead of a key, if the protocol requires a key and the server does not.
const NoKey = "none"

// ChooseModel returns the name of the model to use: the one in the settings, or the default
// model of the first provider with a key. The order is that of
// [config.Loaded.ProviderNames].
func ChooseModel(settings *config.Loaded) (string, error) {
	if settings.Model != "" {
		return settings.Model, nil
	}
	var served string // a configured provider that has no default model
	for _, name := range settings.ProviderNames() {
		p, err := settings.Provider(name)
		if err != nil {
			return "", err
		}
		if p.Default == "" {
			if p.Said {
				served = cmp.Or(served, name)
			}
			continue
		}
		key, _, err := KeyOf(settings, p)
		if err != nil {
			return "", err
		}
		if key != "" {
			return name + "/" + p.Default, nil
		}
	}
	if served != "" {
		return "", mistake("no model is chosen: no provider with a default model has a key, and the provider %s (%s) has no default model: set BELAY_MODEL=%s/NAME or model in a %s, or use `belay run --model %s/NAME`; `belay models %s --check` lists the names of its models", served, settings.From("providers."+served), served, config.Name, served, served)
	}
	return "", mistake(noModel)
}

// ModelName returns the name of the model to use, or "none".
func ModelName(settings *config.Loaded) string {
	name, err := ChooseModel(settings)
	if err != nil {
		return "none"
	}
	return name
}

// scriptPath returns the path of a script. A path in a settings file is relative to that
// file. A path in a flag or a variable is relative to the working directory, or to that of -C.
func scriptPath(settings *config.Loaded, name string) string {
	kind := settings.From("model").Kind
	if kind == "flag" || kind == "environment" {
		return settings.At(name)
	}
	if filepath.IsAbs(name) {
		return name
	}
	if kind == "user" {
		return filepath.Join(filepath.Dir(settings.UserFile), name)
	}
	return filepath.Join(settings.Project, name)
}
