package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/visible"
)

// mostSettings is the maximum size of a settings file in bytes.
const mostSettings = 1 << 20

// Settings is a settings file of Claude Code.
type Settings struct {
	// Path is the file.
	Path string
	// Allow, Ask and Deny are the rules of the key permissions.
	Allow, Ask, Deny []string
	// DefaultMode and Directories are defaultMode and additionalDirectories of the key
	// permissions.
	DefaultMode string
	Directories []string
	// Plugins are the plugins that the file switches on or off. A key is NAME@MARKETPLACE.
	Plugins map[string]bool
	// Marketplaces are the marketplaces in directories that the file names, by name.
	Marketplaces map[string]string
	// Servers and NoServers are servers of .mcp.json that the file switches on or off.
	Servers, NoServers []string
	// Hooks reports whether the file has hooks.
	Hooks bool
	// Others are the other keys, sorted.
	Others []string
	// Notes say what could not be read.
	Notes []string

	text string
}

// ReadSettings reads a settings file. The error is fs.ErrNotExist if there is none. With
// another error, nothing of the file is known.
func ReadSettings(path string) (*Settings, error) {
	text, err := readText(path, mostSettings+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("it cannot be read: %w", err)
	case len(text) > mostSettings:
		return nil, fmt.Errorf("it is longer than %s bytes", visible.Grouped(mostSettings))
	}
	s := &Settings{Path: path, text: text}
	var keys map[string]json.RawMessage
	if strings.TrimSpace(text) == "" {
		return s, nil
	}
	if err := json.Unmarshal([]byte(text), &keys); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		s.key(key, keys[key])
	}
	return s, nil
}

func (s *Settings) notef(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

func (s *Settings) key(key string, value json.RawMessage) {
	switch key {
	case "$schema":
	case "permissions":
		s.permissions(value)
	case "hooks":
		var hooks map[string]json.RawMessage
		s.Hooks = json.Unmarshal(value, &hooks) != nil || len(hooks) > 0
	case "enabledPlugins":
		s.plugins(value)
	case "extraKnownMarketplaces":
		s.marketplaces(value)
	case "enabledMcpjsonServers":
		s.Servers = s.texts(key, value)
	case "disabledMcpjsonServers":
		s.NoServers = s.texts(key, value)
	default:
		s.Others = append(s.Others, key)
	}
}

func (s *Settings) permissions(value json.RawMessage) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(value, &keys); err != nil {
		s.notef("permissions is no object")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		what := "permissions." + key
		switch key {
		case "allow":
			s.Allow = s.texts(what, keys[key])
		case "ask":
			s.Ask = s.texts(what, keys[key])
		case "deny":
			s.Deny = s.texts(what, keys[key])
		case "defaultMode":
			_ = json.Unmarshal(keys[key], &s.DefaultMode) // another type has no effect
		case "additionalDirectories":
			s.Directories = s.texts(what, keys[key])
		default:
			s.notef("%s is ignored", what)
		}
	}
}

// texts reads a list of texts. It notes entries that are no texts.
func (s *Settings) texts(what string, value json.RawMessage) []string {
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		var one string
		if json.Unmarshal(value, &one) == nil && (what == "permissions.deny" || what == "permissions.ask") {
			s.notef("%s is no list: Belay takes it for one rule", what)
			return []string{one}
		}
		s.notef("%s is no list", what)
		return nil
	}
	var all []string
	for _, item := range list {
		var text string
		if err := json.Unmarshal(item, &text); err != nil {
			s.notef("%s: %s is no text", what, item)
			continue
		}
		all = append(all, text)
	}
	return all
}

func (s *Settings) plugins(value json.RawMessage) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(value, &given); err != nil {
		s.notef("enabledPlugins is no object")
		return
	}
	s.Plugins = make(map[string]bool, len(given))
	for name, on := range given {
		var enabled bool
		s.Plugins[name] = json.Unmarshal(on, &enabled) != nil || enabled // a list of versions switches the plugin on
	}
}

func (s *Settings) marketplaces(value json.RawMessage) {
	var given map[string]struct {
		Source struct {
			Source string `json:"source"`
			Path   string `json:"path"`
		} `json:"source"`
	}
	if err := json.Unmarshal(value, &given); err != nil {
		s.notef("extraKnownMarketplaces cannot be read: %v", err)
		return
	}
	s.Marketplaces = make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if from := given[name].Source; from.Path != "" && (from.Source == "directory" || from.Source == "file") {
			s.Marketplaces[name] = from.Path
		} else {
			s.notef("extraKnownMarketplaces: Belay downloads nothing, so it does not use the marketplace %s", name)
		}
	}
}

// at returns the file and the line of a text in it.
func (s *Settings) at(shown, text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return shown
	}
	before, _, found := strings.Cut(s.text, string(quoted))
	if !found {
		return shown
	}
	return fmt.Sprintf("%s:%d", shown, strings.Count(before, "\n")+1)
}
