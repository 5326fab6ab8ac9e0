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

// noModel is the message for a user who has neither a key nor a model.
const noModel = "there is no model: set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY; or start a local server and name its model, with BELAY_MODEL=ollama/NAME or `belay run --model ollama/NAME`; or try `belay demo`, which needs neither"

// OpenModel returns the model that the settings name, or else the default model of the first provider with a key.
func OpenModel(settings *config.Loaded) (belay.Model, error) { //nolint:ireturn // which model it is, is the user's choice
	if _, err := ChooseModel(settings); err != nil {
		return nil, err
	}
	return FindModel(settings, FullModelName(settings))
}

// FindModel returns the model with a name, PROVIDER/NAME, as the settings describe it. It sends nothing. It fails if
// the provider needs a key and there is none. The path of a script is relative to the working directory.
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

// NoKeyError is the error for a provider that needs a key and has none on this machine, or for this user.
type NoKeyError struct {
	settings *config.Loaded
	provider *config.Provider
}

func (e *NoKeyError) Error() string {
	p := e.provider
	return fmt.Sprintf("there is no key for %s: set %s, or name the file with the key in %s, under providers: key_file of %s", p.Name, strings.Join(p.KeyEnv, " or "), userFile(e.settings), p.Name)
}

// userFile returns words for the user's settings file, with its path.
func userFile(s *config.Loaded) string {
	if s.UserDir == "" {
		return "the user's " + config.Name
	}
	return "the user's " + filepath.Join(s.UserDir, config.Name)
}

// A ServedModel is a model of a provider that can list its models.
type ServedModel interface {
	belay.InfoModel
	modelLister
}

// MakeModel makes a model of a provider. With an empty key none is sent: the packages of the vendors would otherwise
// take the key of the environment, and send it to any server.
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

// NoKey is sent to servers that need no key, by a protocol that requires one.
const NoKey = "none"

// ChooseModel returns the name of the model to use: the one in the settings, or the default of the first provider with
// a key, in the order of [config.Loaded.ProviderNames].
func ChooseModel(settings *config.Loaded) (string, error) {
	if settings.Model != "" {
		return settings.Model, nil
	}
	var served string // a configured provider without a default model
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
		return "", mistake("which model? No provider with a default model has a key, and %s is configured (%s): set BELAY_MODEL=%s/NAME or model in a %s, or use `belay run --model %s/NAME`, with a name that it knows; `belay models %s --check` asks it", served, settings.From("providers."+served), served, config.Name, served, served)
	}
	return "", mistake(noModel)
}

// ModelName returns the name of the model to use, for showing it.
func ModelName(settings *config.Loaded) string {
	name, err := ChooseModel(settings)
	if err != nil {
		return "none"
	}
	return name
}

// scriptPath returns the path of a script. In a file it is relative to that file, in a flag or a variable to the
// working directory.
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
