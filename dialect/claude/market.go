package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Marketplace reads a marketplace in a directory: its plugins, by name. Plugins that are not in
// the directory are notes.
func Marketplace(dir string) (plugins map[string]*PluginSource, notes []string, err error) {
	if filepath.Base(dir) == "marketplace.json" { // settings may name the file
		dir = filepath.Dir(filepath.Dir(dir))
	}
	base, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, nil, plain(err)
	}
	file := filepath.Join(base, ".claude-plugin", "marketplace.json")
	text, err := readText(file, mostManifest)
	if err != nil {
		return nil, nil, err
	}
	var m struct {
		Metadata struct {
			PluginRoot string `json:"pluginRoot"`
		} `json:"metadata"`
		Plugins []json.RawMessage `json:"plugins"`
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, nil, fmt.Errorf("marketplace.json cannot be read: %w", err)
	}
	plugins = make(map[string]*PluginSource)
	at := 0 // where the next entry begins in the text
	for i, entry := range m.Plugins {
		at += strings.Index(text[at:], string(entry))
		from := &PluginSource{Market: file, Entry: slices.Concat(bytes.Repeat([]byte("\n"), strings.Count(text[:at], "\n")), entry)}
		at += len(entry)
		var p struct {
			Name   string          `json:"name"`
			Source json.RawMessage `json:"source"`
		}
		if err := json.Unmarshal(entry, &p); err != nil {
			notes = append(notes, fmt.Sprintf("plugins[%d] cannot be read: %v", i, err))
			continue
		}
		var source string
		switch {
		case p.Name == "":
			notes = append(notes, fmt.Sprintf("plugins[%d] has no name, so it is not used", i))
			continue
		case plugins[p.Name] != nil:
			notes = append(notes, fmt.Sprintf("plugins[%d]: there is a plugin %s already, so this one is not used", i, p.Name))
			continue
		case json.Unmarshal(p.Source, &source) != nil:
			notes = append(notes, fmt.Sprintf("plugin %s is elsewhere: Belay downloads nothing", p.Name))
			continue
		}
		from.Name = p.Name
		if from.Root, err = below(base, m.Metadata.PluginRoot, source); err != nil {
			notes = append(notes, fmt.Sprintf("plugins[%d].source: plugin %s: %q %v, so it is not used", i, p.Name, source, err))
			continue
		}
		plugins[p.Name] = from
	}
	return plugins, notes, nil
}

// below returns the directory in a marketplace that a source names. A source never leads out of
// the marketplace, also not through a link. pluginRoot may stand before the source.
func below(base, pluginRoot, source string) (string, error) {
	if filepath.IsAbs(source) || strings.HasPrefix(source, "/") {
		return "", errors.New("is an absolute path")
	}
	out := false
	for _, from := range []string{pluginRoot, ""} {
		path := filepath.Join(filepath.FromSlash(from), filepath.FromSlash(source))
		if path = filepath.Clean("./" + path); !filepath.IsLocal(path) {
			out = true
			continue
		}
		root, err := filepath.EvalSymlinks(filepath.Join(base, path))
		switch {
		case err != nil:
		case !inside(base, root):
			out = true
		case isDir(root):
			return root, nil
		}
	}
	if out {
		return "", errors.New("leads out of the marketplace")
	}
	return "", errors.New("is no directory in the marketplace")
}

// FindPlugin finds an installed plugin. id is NAME@MARKETPLACE. own is the user's directory of
// Claude Code, and marketplaces are directories that settings name.
func FindPlugin(id, own string, marketplaces map[string]string) (*PluginSource, error) {
	name, market, _ := strings.Cut(id, "@")
	if dir, ok := marketplaces[market]; ok {
		plugins, notes, err := Marketplace(dir)
		if err != nil {
			return nil, fmt.Errorf("marketplace %s: %w", market, err)
		}
		if from, ok := plugins[name]; ok {
			return from, nil
		}
		for _, note := range notes {
			if strings.Contains(note, "plugin "+name+" ") || strings.Contains(note, "plugin "+name+":") {
				return nil, fmt.Errorf("marketplace.json of %s: %s", market, note)
			}
		}
		return nil, fmt.Errorf("the marketplace %s in %s has no plugin %s", market, dir, name)
	}
	if own == "" {
		return nil, errors.New("it is not installed")
	}
	var known map[string]struct {
		Location string `json:"installLocation"`
	}
	var listed *PluginSource
	if text, err := readText(filepath.Join(own, "plugins", "known_marketplaces.json"), mostManifest); err == nil && json.Unmarshal([]byte(text), &known) == nil {
		if plugins, _, err := Marketplace(known[market].Location); err == nil {
			listed = plugins[name]
		}
	}
	root := installed(filepath.Join(own, "plugins", "installed_plugins.json"), id)
	switch {
	case root != "" && listed != nil: // the copy, with what the marketplace says about it
		return &PluginSource{Root: root, Name: name, Market: listed.Market, Entry: listed.Entry}, nil
	case root != "":
		return &PluginSource{Root: root, Name: name}, nil
	case listed != nil:
		return listed, nil
	}
	return nil, errors.New("it is not installed: install it with Claude Code, or name its marketplace in extraKnownMarketplaces as a directory")
}

// installed returns the directory of a plugin that Claude Code has installed, or "".
func installed(file, id string) string {
	text, err := readText(file, 4*mostManifest)
	if err != nil {
		return ""
	}
	var list struct {
		Plugins map[string]json.RawMessage `json:"plugins"`
	}
	if json.Unmarshal([]byte(text), &list) != nil {
		return ""
	}
	type place struct {
		Path string `json:"installPath"`
	}
	var places []place
	if json.Unmarshal(list.Plugins[id], &places) != nil {
		var one place
		if json.Unmarshal(list.Plugins[id], &one) == nil {
			places = []place{one}
		}
	}
	for _, p := range slices.Backward(places) { // the newest is last
		if info, err := os.Stat(p.Path); err == nil && info.IsDir() {
			return p.Path
		}
	}
	return ""
}

// Enabled returns the ids of the plugins that settings switch on, sorted. A later file wins.
func Enabled(files ...*Settings) []string {
	on := make(map[string]bool)
	for _, f := range files {
		maps.Copy(on, f.Plugins)
	}
	maps.DeleteFunc(on, func(_ string, enabled bool) bool { return !enabled })
	return slices.Sorted(maps.Keys(on))
}
