package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/near"
)

// The kinds of providers: the protocols that are spoken with them.
const (
	KindAnthropic = "anthropic"   // Messages
	KindOpenAI    = "openai"      // Responses
	KindChat      = "openai-chat" // Chat Completions, which nearly every server speaks
	KindGemini    = "gemini"
)

// Kinds are all kinds.
func Kinds() []string { return []string{KindAnthropic, KindOpenAI, KindChat, KindGemini} }

// Scripted is the provider of models that play a script. It is always there, and
// has nothing to set.
const Scripted = "scripted"

// Provider says who serves models, where that is, and how it is paid.
type Provider struct {
	// Name is the first half of the names of its models.
	Name string `json:"name"`
	Kind string `json:"kind"`
	URL  string `json:"url"`
	// KeyEnv are variables: the first that holds something holds the key.
	KeyEnv []string `json:"key_env"`
	// KeyFile holds the key if no variable does; absolute.
	KeyFile string `json:"key_file"`
	// Tuning is that of all its models, and Models says what differs for some, by
	// their names there.
	Tuning

	Models map[string]Tuning `json:"models"`

	// What follows is not set, and told by [Loaded.Provider].

	// Table is the name under which the built-in table may know the models.
	Table string `json:"-"`
	// Default is the model that is asked if none is named; empty if that cannot be
	// said.
	Default string `json:"-"`
	// Said reports whether the settings speak of it, and Moved whether they say that
	// a built-in one is elsewhere: what it has there is not known.
	Said, Moved bool `json:"-"`
}

// Tuning is what can be said about a model. What is zero is not said.
type Tuning struct {
	// Window is how many tokens a request and its response may take, and MaxTokens
	// how many a response may.
	Window    int `json:"window"`
	MaxTokens int `json:"max_tokens"`
	// Thinking is how many tokens of a response may be thinking, or [Adaptive].
	Thinking int `json:"thinking"`
	// Effort is how hard the model thinks, and Summary what is told of it, in the
	// service's words.
	Effort  string `json:"effort"`
	Summary string `json:"summary"`
	// Extra is a JSON object of fields that are added to requests.
	Extra json.RawMessage `json:"extra"`
	Price belay.Price     `json:"price"`
}

// Adaptive as Tuning.Thinking lets the model decide how much it thinks.
const Adaptive = -1

// NeedsKey reports whether there is a place for a key, so that one is missed if
// none is found.
func (p *Provider) NeedsKey() bool { return len(p.KeyEnv) > 0 || p.KeyFile != "" }

// Of is what is said about a model.
func (p *Provider) Of(model string) Tuning {
	t, all := p.Models[model], p.Tuning
	t.Window, t.MaxTokens, t.Thinking = cmp.Or(t.Window, all.Window), cmp.Or(t.MaxTokens, all.MaxTokens), cmp.Or(t.Thinking, all.Thinking)
	t.Effort, t.Summary, t.Price = cmp.Or(t.Effort, all.Effort), cmp.Or(t.Summary, all.Summary), cmp.Or(t.Price, all.Price)
	if t.Extra == nil {
		t.Extra = all.Extra
	}
	return t
}

// builtIn are the providers that need no settings, in the order in which they are
// looked at for a key. Those on this machine are where their servers are unless
// told otherwise.
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

// builtInOf finds a built-in provider.
func builtInOf(name string) (Provider, bool) {
	all := builtIn()
	at := slices.IndexFunc(all, func(p Provider) bool { return p.Name == name })
	if at < 0 {
		return Provider{}, false
	}
	return all[at], true
}

// vendorOf is the built-in provider that is meant by a kind without an address:
// another account with the same vendor.
func vendorOf(kind string) Provider {
	if kind == KindChat {
		kind = KindOpenAI
	}
	p, _ := builtInOf(kind)
	return p
}

// ProviderNames are the names of all providers: the built-in ones in the order in
// which they are looked at for a key, then those of the settings by name.
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

// Provider is a provider as it is in force: what is built in, and what the settings
// say about it. The variable of a vendor's key is read for the vendor alone: with
// an address elsewhere the settings say which key goes there.
func (l *Loaded) Provider(name string) (*Provider, error) {
	p, said := l.Providers[name]
	known, isBuiltIn := builtInOf(name)
	if !said && !isBuiltIn {
		names := append(l.ProviderNames(), Scripted)
		return nil, fmt.Errorf("%q is no provider of models%s: there are %s; others are set under providers in the user's %s", name, near.Hint(name, names), strings.Join(names, ", "), Name)
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

// KeyVariables are the variables that may hold keys, whatever they are called. They
// are for this process, and for none that it starts.
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
	return names
}

// origin is the part of an address that says who is asked.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// ModelOf tells whose model a name means, and its name there: openai/gpt-5.2 is
// gpt-5.2 of openai. Of a model that plays a script the provider has no more than a
// name.
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

// checkModel says what is wrong with the name of a model, but for its provider.
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

// checkProvider says whether there is a provider for the model that is named. That
// is known when all files are read.
func (l *Loaded) checkProvider() error {
	if l.Model == "" {
		return nil
	}
	_, _, err := l.ModelOf(l.Model)
	return err
}

// providerName are the names that a provider can have: the first slash of a model's
// name ends it.
var providerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// variableName are the names of variables. Small letters are left out, so that a
// key which was put in the place of a name is not taken for one, and not shown.
var variableName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

// checkURL says what is wrong with an address. It is not quoted where a password
// may be in it.
func checkURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("it is not the address of a web server: write https://host/path")
	case u.User != nil:
		return errors.New("there is a name or a password in it: a key comes from key_env or key_file")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("there is something behind its path: write https://host/path")
	}
	for _, request := range requestPaths {
		if rest, ok := strings.CutSuffix(strings.TrimRight(address, "/"), request); ok {
			return fmt.Errorf("%s is the address of one sort of request, which is added to it: write %s", address, rest)
		}
	}
	return nil
}

// requestPaths are what providers add to an address.
var requestPaths = []string{"/chat/completions", "/completions", "/responses", "/v1/messages", "/messages", "/models"}

// checkVersion says what is wrong with an address for a kind that adds the version
// to it by itself.
func checkVersion(kind, address string) error {
	versions := map[string][]string{KindAnthropic: {"/v1"}, KindGemini: {"/v1beta", "/v1"}}
	for _, version := range versions[kind] {
		if rest, ok := strings.CutSuffix(strings.TrimRight(address, "/"), version); ok {
			return fmt.Errorf("with kind %s the version is added to the address: write %s", kind, rest)
		}
	}
	return nil
}

// checkKeyEnv says what is wrong with the name of a variable, without showing it.
func checkKeyEnv(name string) error {
	if variableName.MatchString(name) {
		return nil
	}
	return errors.New("it is not the name of a variable, in capitals, such as WORK_API_KEY; the key itself stands in the variable, or in a file that key_file names")
}

// providerKeys are the settings of a provider that differ from machine to machine,
// and can therefore be set by a variable too.
var providerKeys = []string{"url", "key_env", "key_file"}

// providerVariable is a variable that sets something of a provider.
type providerVariable struct{ variable, provider, key string }

// providerVariables are those of the providers that there are.
func (l *Loaded) providerVariables() []providerVariable {
	var all []providerVariable
	for _, name := range l.ProviderNames() {
		for _, key := range providerKeys {
			all = append(all, providerVariable{Variable(providerPath(name, key)), name, key})
		}
	}
	return all
}

// providerPath is the path of a setting of a provider.
func providerPath(name, key string) string { return "providers." + name + "." + key }

// setProvider takes what a variable says about a provider.
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
