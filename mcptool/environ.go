package mcptool

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay/internal/redact"
)

// passed are the variables of an environ that every server gets, besides LC_*.
var passed = []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "SHELL"}

// onWindows are more such variables, which programs on Windows need to start.
var onWindows = []string{"SYSTEMROOT", "PATH", "PATHEXT", "APPDATA", "LOCALAPPDATA", "TEMP", "USERPROFILE"}

// environ is the environment that servers get variables from, see Options.Environ and
// Server.Environ.
type environ struct {
	host   map[string]string
	common map[string]string // the variables that every server gets
}

func newEnviron(all []string) *environ {
	e := &environ{host: make(map[string]string, len(all)), common: make(map[string]string)}
	for _, entry := range all {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			continue
		}
		e.host[name] = value
		if slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") || runtime.GOOS == "windows" && slices.Contains(onWindows, strings.ToUpper(name)) {
			e.common[name] = value
		}
	}
	return e
}

// of returns the environment of a program as sorted NAME=value entries.
func (e *environ) of(named map[string]string) []string {
	all := maps.Clone(e.common)
	maps.Copy(all, named)
	list := make([]string, 0, len(all))
	for _, name := range sortedKeys(all) {
		list = append(list, name+"="+all[name])
	}
	return list
}

// fill expands the variables in values. It also returns the values of the variables that
// it inserted, which are secrets.
func (e *environ) fill(values map[string]string) (filled map[string]string, secrets []string, err error) {
	if values == nil {
		return nil, nil, nil
	}
	filled = make(map[string]string, len(values))
	for _, name := range sortedKeys(values) {
		text, err := expand(values[name], func(variable string) (string, bool) {
			value, ok := e.host[variable]
			if ok {
				secrets = append(secrets, value)
			}
			return value, ok
		})
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		filled[name] = text
	}
	return filled, secrets, nil
}

// expand replaces ${NAME} and ${NAME:-text}. Everything else stays as it is.
func expand(text string, lookup func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		inside, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", errors.New("${ without }: write ${NAME}")
		}
		name, fallback, has := strings.Cut(inside, ":-")
		if !isVariable(name) {
			return "", fmt.Errorf("${%s} is not a valid variable: write ${NAME}, where NAME has only letters, digits and _", inside)
		}
		value, ok := lookup(name)
		switch {
		case ok && (value != "" || !has):
			b.WriteString(value)
		case has:
			b.WriteString(fallback)
		default:
			return "", fmt.Errorf("the variable %s is not set: set it, or write ${%s:-text}", name, name)
		}
		text = after
	}
}

func isVariable(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// literals returns the secrets that are written in the declaration itself. A value is a
// secret if the name of its variable, header or URL parameter suggests a secret (see
// redact.Name).
func literals(s *Server) (secrets []string) {
	const least = 8 // shorter values are common words
	add := func(name, value string) {
		if !redact.Name(name) || strings.Contains(value, "${") {
			return
		}
		_, credentials, _ := strings.Cut(value, " ") // the part after a scheme such as Bearer
		for _, secret := range []string{value, credentials} {
			if len(secret) >= least {
				secrets = append(secrets, secret)
			}
		}
	}
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for name, value := range values {
			add(name, value)
		}
	}
	if address, err := url.Parse(s.URL); err == nil {
		for name, values := range address.Query() {
			for _, value := range values {
				add(name, value)
			}
		}
	}
	return secrets
}

// knownSecrets removes the secrets that a server was given. Tokens of logins are added while
// the server runs.
type knownSecrets struct {
	mu       sync.RWMutex
	all      []string
	replacer *strings.Replacer
}

func newKnown(secrets []string) *knownSecrets {
	return &knownSecrets{all: secrets, replacer: redactor(secrets)}
}

// add adds secrets that are not yet known.
func (k *knownSecrets) add(secrets ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := len(k.all)
	for _, s := range secrets {
		if s != "" && !slices.Contains(k.all, s) {
			k.all = append(k.all, s)
		}
	}
	if len(k.all) > before {
		k.replacer = redactor(slices.Clone(k.all))
	}
}

// Replace returns a text without the secrets.
func (k *knownSecrets) Replace(text string) string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.replacer.Replace(text)
}

// htmlSafe escapes characters as some JSON encoders do, such as Go's.
var htmlSafe = strings.NewReplacer("&", `\u0026`, "<", `\u003c`, ">", `\u003e`)

// redactor removes secrets and their escaped forms from a text. It also removes each
// single line of a secret, because logs are written line by line.
func redactor(secrets []string) *strings.Replacer {
	const least = 4 // shorter values occur in ordinary text
	for _, s := range secrets {
		for line := range strings.Lines(s) {
			secrets = append(secrets, strings.TrimSpace(line))
		}
	}
	for _, s := range secrets {
		secrets = append(secrets, url.QueryEscape(s), url.PathEscape(s))
		quoted := string(encoded(s))
		for _, form := range []string{quoted, htmlSafe.Replace(quoted)} { // JSON encoders differ
			secrets = append(secrets, form[1:len(form)-1])
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, s := range slices.Compact(secrets) {
		if len(s) >= least {
			pairs = append(pairs, s, "[REDACTED]")
		}
	}
	return strings.NewReplacer(pairs...)
}
