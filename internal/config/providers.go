package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/near"
)

// These are the kinds of providers. A kind is a protocol.
const (
	KindAnthropic = "anthropic"   // Messages API
	KindOpenAI    = "openai"      // Responses API
	KindChat      = "openai-chat" // Chat Completions API, which nearly every server supports
	KindGemini    = "gemini"
)

// Kinds returns all kinds of providers.
func Kinds() []string { return []string{KindAnthropic, KindOpenAI, KindChat, KindGemini} }

// Scripted is the provider of models that play a script. It always exists and has no
// settings.
const Scripted = "scripted"

// Provider is a model service: its protocol, URL, key and models.
type Provider struct {
	// Name is the part of a model name before the slash.
	Name string `json:"name"`
	Kind string `json:"kind"`
	URL  string `json:"url"`
	// KeyEnv are environment variables. The first one that is set has the key.
	KeyEnv []string `json:"key_env"`
	// KeyFile is the absolute path of a file with the key. It is used if no variable is
	// set.
	KeyFile string `json:"key_file"`
	// Tuning applies to all models of the provider. Models overrides it for single models.
	// A key is the name of a model.
	Tuning

	Models map[string]Tuning `json:"models"`

	// [Loaded.Provider] sets the following fields. They are not settings.

	// Table is the provider's name in the built-in table of models.
	Table string `json:"-"`
	// Default is the default model, or "".
	Default string `json:"-"`
	// Said means that the settings mention the provider. Moved means that they give a
	// built-in provider another scheme or host, so that its models are unknown.
	Said, Moved bool `json:"-"`
}

// Tuning has the settings of a model. Zero means not set.
type Tuning struct {
	// Window is the context window, and MaxTokens limits a response. Both are in tokens.
	Window    int `json:"window"`
	MaxTokens int `json:"max_tokens"`
	// Thinking is how many tokens the model may use to think, or [Adaptive].
	Thinking int `json:"thinking"`
	// Effort is the reasoning effort, and Summary the kind of reasoning summary. Both use
	// the words of the service.
	Effort  string `json:"effort"`
	Summary string `json:"summary"`
	// Extra is a JSON object. Its fields are added to each request.
	Extra json.RawMessage `json:"extra"`
	Price belay.Price     `json:"price"`
}

// Adaptive is a value of Tuning.Thinking. It lets the model decide how much it thinks.
const Adaptive = -1

// NeedsKey reports whether the provider has a variable or a file for a key. If so, a
// missing key is an error.
func (p *Provider) NeedsKey() bool { return len(p.KeyEnv) > 0 || p.KeyFile != "" }

// Of returns the settings of a model, with those of the provider as defaults.
func (p *Provider) Of(model string) Tuning {
	t, all := p.Models[model], p.Tuning
	t.Window, t.MaxTokens, t.Thinking = cmp.Or(t.Window, all.Window), cmp.Or(t.MaxTokens, all.MaxTokens), cmp.Or(t.Thinking, all.Thinking)
	t.Effort, t.Summary, t.Price = cmp.Or(t.Effort, all.Effort), cmp.Or(t.Summary, all.Summary), cmp.Or(t.Price, all.Price)
	if t.Extra == nil {
		t.Extra = all.Extra
	}
	return t
}

// builtIn returns the providers that need no settings, in the order in which Belay searches
// them for a key. Local providers have the default URLs of their servers.
func builtIn() []Provider {
	return []Provider{
		{Name: "anthropic", Kind: KindAnthropic, URL: "https://api.anthropic.com", KeyEnv: []string{"ANTHROPIC_API_KEY"}, Default: "claude-sonnet-4-5"},
		{Name: "openai", Kind: KindOpenAI, URL: "https://api.openai.com/v1", KeyEnv: []string{"OPENAI_API_KEY"}, Default: "gpt-5.2"},
		{Name: "gemini", Kind: KindGemini, URL: "https://generativelanguage.googleapis.com", KeyEnv: []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"}, Default: "gemini-3.6-flash"},
		{Name: "openrouter", Kind: KindChat, URL: "https://openrouter.ai/api/v1", KeyEnv: []string{"OPENROUTER_API_KEY"}, Default: "anthropic/claude-sonnet-4.5"},
		{Name: "ollama", Kind: KindChat, URL: "http://localhost:11434/v1"},
		{Name: "llama.cpp", Kind: KindChat, URL: "http://localhost:8080/v1"},
		{Name: "vllm", Kind: KindChat, URL: "http://localhost:8000/v1"},
		{Name: "lmstudio", Kind: KindChat, URL: "http://localhost:1234/v1"},
	}
}

// builtInOf returns the built-in provider with this name.
func builtInOf(name string) (Provider, bool) {
	all := builtIn()
	at := slices.IndexFunc(all, func(p Provider) bool { return p.Name == name })
	if at < 0 {
		return Provider{}, false
	}
	return all[at], true
}

// vendorOf returns the vendor's built-in provider of a kind: for KindChat, OpenAI's. It is
// used for a configured provider without a URL, which is another account with the same
// vendor.
func vendorOf(kind string) Provider {
	if kind == KindChat {
		kind = KindOpenAI
	}
	p, _ := builtInOf(kind)
	return p
}

// ProviderNames returns the names of all providers. The built-in ones come first, in the
// order in which Belay searches them for a key. The others follow, sorted by name.
func (l *Loaded) ProviderNames() []string {
	var names []string
	for _, p := range builtIn() {
		names = append(names, p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Providers)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Provider returns a provider: the built-in values, changed by the settings. The variable
// with a vendor's key is used only with the vendor's own URL. For another URL the settings
// must name the key.
func (l *Loaded) Provider(name string) (*Provider, error) {
	p, said := l.Providers[name]
	known, isBuiltIn := builtInOf(name)
	if !said && !isBuiltIn {
		names := append(l.ProviderNames(), Scripted)
		return nil, fmt.Errorf("unknown provider %q%s: available are %s; add others under providers in the user's %s", name, near.Hint(name, names), strings.Join(names, ", "), Name)
	}
	if !isBuiltIn && p.URL == "" {
		known = vendorOf(p.Kind)
	}
	p.Name, p.Table, p.Said = name, name, said
	p.Kind, p.URL = cmp.Or(p.Kind, known.Kind, KindChat), cmp.Or(p.URL, known.URL)
	p.Moved = isBuiltIn && origin(p.URL) != origin(known.URL)
	if origin(p.URL) == origin(known.URL) {
		p.Table, p.Default = known.Name, known.Default
		if p.KeyEnv == nil {
			p.KeyEnv = known.KeyEnv
		}
	}
	return &p, nil
}

// KeyVariables returns the variables that may contain keys. Belay does not pass them to
// child processes.
func (l *Loaded) KeyVariables() []string {
	var names []string
	for _, name := range l.ProviderNames() {
		known, _ := builtInOf(name)
		for _, variable := range slices.Concat(known.KeyEnv, l.Providers[name].KeyEnv) {
			if !slices.Contains(names, variable) {
				names = append(names, variable)
			}
		}
	}
	if l.Web.KeyEnv != "" {
		names = append(names, l.Web.KeyEnv)
	}
	return append(names, l.secretVariables()...)
}

// origin returns the scheme and host of a URL.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// ModelOf splits a model name into its provider and the provider's own name: openai/gpt-5.2
// is gpt-5.2 of openai. The provider of a scripted model has only a name.
func (l *Loaded) ModelOf(name string) (*Provider, string, error) {
	if err := checkModel(name); err != nil {
		return nil, "", err
	}
	provider, model, _ := strings.Cut(name, "/")
	if provider == Scripted {
		return &Provider{Name: Scripted}, model, nil
	}
	p, err := l.Provider(provider)
	return p, model, err
}

// checkModel returns an error if a model name does not have the form PROVIDER/NAME.
func checkModel(model string) error {
	if provider, name, _ := strings.Cut(model, "/"); provider != "" && name != "" {
		return nil
	}
	hint := ""
	for prefix, provider := range map[string]string{"claude": "anthropic", "gpt-": "openai", "gemini-": "gemini"} {
		if strings.HasPrefix(model, prefix) && !strings.Contains(model, "/") {
			hint = fmt.Sprintf(" (did you mean %q?)", provider+"/"+model)
		}
	}
	return fmt.Errorf("%q is not a model%s: write PROVIDER/NAME, such as anthropic/claude-sonnet-4-5 or ollama/qwen3", model, hint)
}

// checkProvider returns an error if the name of the model is invalid, or if its provider
// does not exist. Call it after all files are read, because any file may add providers.
func (l *Loaded) checkProvider() error {
	if l.Model == "" {
		return nil
	}
	_, _, err := l.ModelOf(l.Model)
	return err
}

// providerName matches valid names of providers. They have no slash, because the first
// slash of a model name ends the provider's name.
var providerName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// variableName matches names of variables. Lower-case letters are not allowed, so that
// Belay rejects an API key that was written here by mistake, and does not show it.
var variableName = lazyregexp.New(`^[A-Z_][A-Z0-9_]*$`)

// checkURL returns an error if a URL is invalid. The error does not quote a URL that may
// contain a password.
func checkURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("the value is not a URL: write https://host/path")
	case u.User != nil:
		return errors.New("the URL contains a user name or a password: name the key with key_env or key_file")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the URL has a query or a fragment: write https://host/path")
	}
	for _, request := range requestPaths {
		if rest, ok := strings.CutSuffix(strings.TrimRight(address, "/"), request); ok {
			return fmt.Errorf("%s ends in a request path, which Belay adds: write %s", address, rest)
		}
	}
	return nil
}

// requestPaths are the paths that Belay adds to a URL.
var requestPaths = []string{"/chat/completions", "/completions", "/responses", "/v1/messages", "/messages", "/models"}

// checkVersion returns an error if a URL ends with an API version that Belay adds itself.
func checkVersion(kind, address string) error {
	versions := map[string][]string{KindAnthropic: {"/v1"}, KindGemini: {"/v1beta", "/v1"}}
	for _, version := range versions[kind] {
		if rest, ok := strings.CutSuffix(strings.TrimRight(address, "/"), version); ok {
			return fmt.Errorf("with kind %s Belay adds the version: write %s", kind, rest)
		}
	}
	return nil
}

// checkKeyEnv returns an error if a text is not the name of a variable. The error does not
// show the text.
func checkKeyEnv(name string) error {
	if variableName.MatchString(name) {
		return nil
	}
	return errors.New("the value is not the name of a variable in capitals, such as WORK_API_KEY; put the key itself into that variable, or into a file and name the file with key_file")
}

// providerKeys are the settings of a provider that variables can set, because these
// settings differ between machines.
var providerKeys = []string{"url", "key_env", "key_file"}

// providerVariable is an environment variable that sets one of the providerKeys of a
// provider.
type providerVariable struct{ variable, provider, key string }

func (l *Loaded) providerVariables() []providerVariable {
	var all []providerVariable
	for _, name := range l.ProviderNames() {
		for _, key := range providerKeys {
			all = append(all, providerVariable{Variable(providerPath(name, key)), name, key})
		}
	}
	return all
}

// providerPath returns the path of a setting of a provider.
func providerPath(name, key string) string { return "providers." + name + "." + key }

// setProvider applies the value of a variable to a provider.
func (l *Loaded) setProvider(v providerVariable, word string) error {
	p := l.Providers[v.provider]
	var err error
	switch v.key {
	case "url":
		known, _ := builtInOf(v.provider)
		if p.URL, err = word, checkURL(word); err == nil {
			err = checkVersion(cmp.Or(p.Kind, known.Kind, KindChat), word)
		}
	case "key_env":
		p.KeyEnv, err = []string{word}, checkKeyEnv(word)
	case "key_file":
		p.KeyFile, err = filepath.Abs(atHome(word))
	}
	if err != nil {
		return err
	}
	changed := maps.Clone(l.Providers)
	if changed == nil {
		changed = make(map[string]Provider)
	}
	changed[v.provider] = p
	l.Providers = changed
	from := Source{"environment", v.variable}
	l.from[providerPath(v.provider, v.key)] = from
	if _, ok := l.from["providers."+v.provider]; !ok {
		l.from["providers."+v.provider] = from
	}
	if before := l.from["providers"]; before.Where != "" {
		from.Where = before.Where + ", " + from.Where
	}
	l.from["providers"] = from
	return nil
}
