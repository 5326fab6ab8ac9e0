package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/near"
)

// providers reads the providers of a file. It records mistakes with their line.
func (r *reading) providers(node ast.Node) map[string]Provider {
	object, ok := node.(ast.MapNode)
	if !ok {
		r.refusef(node, "providers: expected names with settings: {work: {url: https://host/v1, key_env: WORK_API_KEY}}")
		return nil
	}
	all := make(map[string]Provider)
	for pairs := object.MapRange(); pairs.Next(); {
		name := keyName(pairs.Key())
		switch {
		case name == Scripted:
			r.refusef(pairs.Key(), "providers: the provider %q plays scripts and has no settings: remove this entry", name)
		case !providerName.MatchString(name):
			r.refusef(pairs.Key(), "providers: %q is not a valid name: use letters, digits, dots, dashes and underscores", name)
		default:
			all[name] = r.provider(name, pairs.KeyValue())
		}
	}
	return all
}

// isKeyItself reports whether other programs use this name for an API key.
func isKeyItself(name string) bool {
	switch strings.ReplaceAll(strings.ToLower(name), "-", "_") {
	case "api_key", "apikey", "key", "token", "api_token", "secret":
		return true
	default:
		return false
	}
}

// errKeyItself rejects an API key in a settings file, because people show and share such
// files. It does not repeat the API key.
var errKeyItself = errors.New("an API key must not be in settings: put it into a variable and write key_env: VARIABLE, or into a file and write key_file: FILE, under providers.NAME")

func (r *reading) provider(name string, pair *ast.MappingValueNode) Provider {
	what := "providers." + name
	r.into.from[what] = r.source(pair.Key)
	var p Provider
	var words []word
	keys := r.tuning(what, &p.Tuning, &words)
	keys["kind"] = checked(&p.Kind, func(kind string) error { return oneOf(kind, Kinds()) })
	keys["url"] = checked(&p.URL, checkURL)
	keys["key_env"] = func(node ast.Node) error {
		p.KeyEnv = make([]string, 1)
		return checked(&p.KeyEnv[0], checkKeyEnv)(node)
	}
	keys["key_file"] = func(node ast.Node) error {
		err := decode(node, &p.KeyFile)
		p.KeyFile = absolute(atHome(p.KeyFile), filepath.Dir(r.file))
		return err
	}
	keys["models"] = func(node ast.Node) error {
		p.Models = r.models(what, node, &words)
		return nil
	}
	for key, read := range keys {
		keys[key] = func(node ast.Node) error {
			r.into.from[what+"."+key] = r.source(node)
			return read(node)
		}
	}
	if object, ok := pair.Value.(ast.MapNode); ok { // add only keys that are in the file, so that hints never suggest such a key
		for written := object.MapRange(); written.Next(); {
			if key := written.Key().String(); isKeyItself(key) {
				keys[key] = func(ast.Node) error { return errKeyItself }
			}
		}
	}
	before := len(r.problems)
	if _, nothing := pair.Value.(*ast.NullNode); !nothing {
		r.members(what, pair.Value, keys)
	}
	if len(r.problems) == before {
		r.fits(name, &p, pair.Key, words)
	}
	return p
}

// word is a setting that only some kinds of providers support.
type word struct {
	what, key string
	node      ast.Node
	vendors   []string
}

// fits records a mistake for settings that do not fit together.
func (r *reading) fits(name string, p *Provider, at ast.Node, words []word) {
	known, isBuiltIn := builtInOf(name)
	kind := cmp.Or(p.Kind, known.Kind, KindChat)
	switch {
	case isBuiltIn && vendorOf(kind).Name != vendorOf(known.Kind).Name:
		r.refusef(at, "providers.%s: kind: this built-in provider is of kind %s: use another provider name for kind %s", name, known.Kind, kind)
	case !isBuiltIn && p.URL == "" && p.Kind == "":
		var names []string
		for _, b := range builtIn() {
			names = append(names, b.Name)
		}
		r.refusef(at, "providers.%s: url is missing%s: set url to the address of the server; or set kind, such as kind: anthropic, to use the URL of that vendor with another key", name, near.Hint(name, names))
	}
	if err := checkVersion(kind, p.URL); err != nil {
		r.refusef(at, "providers.%s: url: %w", name, err)
	}
	for _, w := range words {
		if !slices.Contains(w.vendors, vendorOf(kind).Name) {
			r.refusef(w.node, "%s: %s: not supported by kind %s, only by %s", w.what, w.key, kind, strings.Join(w.vendors, " and "))
		}
	}
}

// models reads the settings of single models. A key is the name of a model.
func (r *reading) models(what string, node ast.Node, words *[]word) map[string]Tuning {
	object, ok := node.(ast.MapNode)
	if !ok {
		r.refusef(node, "%s: models: expected names of models with settings: {qwen3: {window: 32768}}", what)
		return nil
	}
	all := make(map[string]Tuning)
	for pairs := object.MapRange(); pairs.Next(); {
		name := keyName(pairs.Key())
		model := what + ".models." + name
		var t Tuning
		r.members(model, pairs.Value(), r.tuning(model, &t, words))
		all[name] = t
	}
	return all
}

// tuning returns functions that read the settings of a model, or of all models of a
// provider.
func (r *reading) tuning(what string, t *Tuning, words *[]word) map[string]func(ast.Node) error {
	only := func(key string, read func(ast.Node) error, vendors ...string) func(ast.Node) error {
		return func(node ast.Node) error {
			*words = append(*words, word{what, key, node, vendors})
			return read(node)
		}
	}
	return map[string]func(ast.Node) error{
		"window":     func(node ast.Node) error { return decode(node, &t.Window) },
		"max_tokens": func(node ast.Node) error { return decode(node, &t.MaxTokens) },
		"thinking":   only("thinking", func(node ast.Node) error { return decodeThinking(node, &t.Thinking) }, KindAnthropic, KindGemini),
		"effort":     only("effort", text(&t.Effort), KindOpenAI),
		"summary":    only("summary", text(&t.Summary), KindOpenAI),
		"extra":      only("extra", func(node ast.Node) error { return decodeExtra(node, &t.Extra) }, KindOpenAI),
		"price": func(node ast.Node) error {
			t.Price = r.price(what, node)
			return nil
		},
	}
}

// price reads the price per million tokens. Cached tokens without a price cost as much as
// input tokens, so that a budget does not count them as free.
func (r *reading) price(what string, node ast.Node) belay.Price {
	p := belay.Price{CacheRead: -1, CacheWrite: -1}
	amount := func(into *float64) func(ast.Node) error {
		return func(node ast.Node) error { return decode(node, into) }
	}
	before := len(r.problems)
	r.members(what+".price", node, map[string]func(ast.Node) error{
		"in": amount(&p.In), "out": amount(&p.Out), "cache_read": amount(&p.CacheRead), "cache_write": amount(&p.CacheWrite),
	})
	for _, cached := range []*float64{&p.CacheRead, &p.CacheWrite} {
		if *cached < 0 {
			*cached = p.In
		}
	}
	if p == (belay.Price{}) && len(r.problems) == before {
		r.refusef(node, "%s: price: all prices are zero, and Belay would use the built-in price: set in and out, or remove price", what)
	}
	return p
}

func decodeThinking(node ast.Node, into *int) error {
	if word, ok := node.(*ast.StringNode); ok && word.Value == "adaptive" {
		*into = Adaptive
		return nil
	}
	if err := decode(node, into); err != nil {
		return fmt.Errorf("expected a number of tokens, or adaptive: %w", err)
	}
	return nil
}

// decodeExtra reads an object and converts it to JSON.
func decodeExtra(node ast.Node, into *json.RawMessage) error {
	var fields map[string]any
	if err := yaml.NodeToValue(node, &fields); err != nil || fields == nil {
		return errors.New("expected keys with values")
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("the value cannot be converted to JSON: %w", err)
	}
	*into = data
	return nil
}

// checked returns a function that reads a text and checks it.
func checked(into *string, check func(string) error) func(ast.Node) error {
	return func(node ast.Node) error {
		if err := decode(node, into); err != nil {
			return err
		}
		return check(*into)
	}
}

// keyName returns a key that the user chose, without quotes.
func keyName(key ast.MapKeyNode) string {
	name := key.String()
	if unquoted, err := strconv.Unquote(name); err == nil {
		return unquoted
	}
	if n := len(name); n >= 2 && name[0] == '\'' && name[n-1] == '\'' {
		return name[1 : n-1]
	}
	return name
}
