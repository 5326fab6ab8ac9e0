package assembly

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/toolbox"
)

// KeyOf returns the key of a provider, and the variable or file that it comes from.
// Variables win over the file. The key may be empty.
func KeyOf(settings *config.Loaded, p *config.Provider) (key, where string, err error) {
	for _, variable := range p.KeyEnv {
		if key = strings.TrimSpace(settings.Environment(variable)); key != "" {
			where = variable
			break
		}
	}
	if key == "" && p.KeyFile != "" {
		where = p.KeyFile
		data, err := os.ReadFile(p.KeyFile)
		if err != nil {
			return "", "", mistake("%s: %w", settings.From("providers."+p.Name+".key_file"), err)
		}
		key = string(bytes.TrimSpace(data))
		if problem := notAKey(key); problem != "" {
			return "", "", mistake("%s: %s %s", settings.From("providers."+p.Name+".key_file"), p.KeyFile, problem)
		}
	}
	if strings.ContainsFunc(key, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", "", mistake("the key of %s, from %s, is not valid: it contains white space", p.Name, where)
	}
	return key, where, nil
}

// assignment matches a line that sets a variable, as in shell files. It does not match a
// base64 key that ends with "=".
var assignment = lazyregexp.New(`^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*[^=\s]`)

// notAKey returns why the content of a key file is not a key, or "" if it may be one. It
// does not repeat the content.
func notAKey(text string) string {
	switch set := assignment.FindStringSubmatch(text); {
	case text == "":
		return "is empty"
	case set != nil:
		return fmt.Sprintf("sets a variable, %s=…, but a key file must contain only the key: remove the text before the key, or load the file into the environment and set key_env: %s", set[1], set[1])
	case strings.HasPrefix(text, `"`), strings.HasPrefix(text, "'"):
		return "has quotation marks around the key: remove them"
	default:
		return ""
	}
}

// MaskKey returns the first and last characters of a key, so that a user can recognise it.
// It returns only … for a short key.
func MaskKey(key string) string {
	if len(key) < 16 {
		return "…"
	}
	return fmt.Sprintf("%s…%s", key[:3], key[len(key)-4:])
}

// shortestKey is the minimum length of keys that holdsKey searches for in values.
const shortestKey = 8

// confiner prepares the sandbox of a command before the command runs.
type confiner = func(context.Context, *belay.Invocation, *toolbox.ShellRun) error

// serverToken matches a token of belay serve.
var serverToken = lazyregexp.New(`belay_[A-Za-z0-9]{20,}`)

// holdsKey returns a function that reports whether a variable contains the key of a provider, a
// token of a channel, a token of belay serve, or the credentials of a collector of OpenTelemetry.
// It checks the name and the value.
func holdsKey(settings *config.Loaded) func(variable string) bool {
	names, keys := settings.KeyVariables(), hostSecrets(settings)
	return func(variable string) bool {
		name, value, _ := strings.Cut(variable, "=")
		return slices.Contains(names, name) || forCollector(name, value) || serverToken.MatchString(value) || slices.ContainsFunc(keys, func(key string) bool { return len(key) >= shortestKey && strings.Contains(value, key) })
	}
}

// forCollector reports whether a variable has what identifies Belay to a collector: headers, or a
// URL with a user.
func forCollector(name, value string) bool {
	return strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") && (strings.HasSuffix(name, "_HEADERS") || strings.Contains(value, "@"))
}

// hostSecrets returns the secrets of the settings that can be read now: keys of providers and of
// the search engine, and tokens of channels.
func hostSecrets(settings *config.Loaded) []string {
	keys := settings.ChannelSecrets()
	if key := settings.Environment(settings.Web.KeyEnv); key != "" {
		keys = append(keys, key)
	}
	for _, name := range settings.ProviderNames() {
		p, err := settings.Provider(name)
		if err != nil {
			continue // ignore errors: such a provider has no key
		}
		if key, _, err := KeyOf(settings, p); err == nil && key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// withoutKeys removes the keys of all providers, the tokens of channels and the tokens of belay
// serve from the environment of a command. The toolbox also removes secrets, but it recognises them only
// by the names of variables.
func withoutKeys(settings *config.Loaded, confine confiner) confiner {
	holds := holdsKey(settings)
	return func(ctx context.Context, call *belay.Invocation, run *toolbox.ShellRun) error {
		run.Env = slices.DeleteFunc(slices.Clone(run.Env), holds)
		return confine(ctx, call, run)
	}
}
