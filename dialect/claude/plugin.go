package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Plugin is a plugin of Claude Code: a directory with commands, agents, skills, hooks and MCP
// servers.
type Plugin struct {
	// Name is the name of the plugin, and Root is its directory, with links resolved.
	Name, Root string
	// Own means that the user's own settings use the plugin, not those of a project.
	Own bool
	// Commands, Agents and Skills are the directories of these parts. They exist.
	Commands, Agents, Skills []string
	// HookFiles are the files with hooks, relative to Root and with slashes. They exist.
	HookFiles []string
	// Servers are the MCP servers.
	Servers *Servers
	// Notes say what is not used, and why.
	Notes []string
}

// mostManifest is the maximum size of a manifest in bytes.
const mostManifest = 1 << 20

// manifest is the content of .claude-plugin/plugin.json. A part is a path, a list of paths or
// an object.
type manifest struct {
	Name       string          `json:"name"`
	Commands   json.RawMessage `json:"commands"`
	Agents     json.RawMessage `json:"agents"`
	Skills     json.RawMessage `json:"skills"`
	Hooks      json.RawMessage `json:"hooks"`
	MCPServers json.RawMessage `json:"mcpServers"`
}

// unusedParts are keys of a manifest, or of an entry of a marketplace, for parts of a plugin
// that Belay does not have.
var unusedParts = []string{"channels", "dependencies", "experimental", "lspServers", "monitors", "outputStyles", "settings", "themes", "userConfig", "workflows"}

// unusedKeys returns which of the keys a JSON object has.
func unusedKeys(text []byte, keys ...string) []string {
	var given map[string]json.RawMessage
	if json.Unmarshal(text, &given) != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return given[key] == nil })
}

const manifestFile = ".claude-plugin/plugin.json"

// ReadPlugin reads the plugin in a directory. name is used if the manifest has no name.
// lookup returns environment variables.
func ReadPlugin(root, name string, lookup func(name string) (string, bool)) (*Plugin, error) {
	actual, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, plain(err)
	}
	p := &Plugin{Name: name, Root: actual}
	var m manifest
	file := filepath.Join(actual, filepath.FromSlash(manifestFile))
	text, err := readText(file, mostManifest)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("plugin.json cannot be read: %w", err)
	}
	if err == nil {
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return nil, fmt.Errorf("plugin.json cannot be read: %w", err)
		}
	}
	if m.Name != "" {
		p.Name = m.Name
	}
	if p.Name = strings.Trim(notOfName.ReplaceAllString(p.Name, "-"), "-"); p.Name == "" {
		p.Name = agentName(filepath.Base(actual))
	}
	p.Commands = p.part("commands", m.Commands)
	p.Agents = p.part("agents", m.Agents)
	p.Skills = p.part("skills", m.Skills)
	p.hooks(m.Hooks)
	if unused := unusedKeys([]byte(text), unusedParts...); len(unused) > 0 {
		p.notef("plugin.json: Belay does not use %s", strings.Join(unused, ", "))
	}
	if isRegular(filepath.Join(actual, "SKILL.md")) {
		p.notef("SKILL.md is not used: move it into a directory below skills")
	}
	p.servers(file, text, m.MCPServers, func(name string) (string, bool) {
		if name == "CLAUDE_PLUGIN_ROOT" {
			return actual, true
		}
		return lookup(name)
	})
	for _, other := range []string{"output-styles", "themes", "monitors", ".lsp.json", "settings.json"} {
		if _, err := os.Stat(filepath.Join(actual, other)); err == nil {
			p.notef("Belay does not use %s", other)
		}
	}
	return p, nil
}

func (p *Plugin) notef(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// part returns the directories of a part: the directory with its name, and those that the
// manifest names.
func (p *Plugin) part(name string, more json.RawMessage) []string {
	var paths []string
	if len(more) > 0 && json.Unmarshal(more, &paths) != nil {
		var one string
		if json.Unmarshal(more, &one) == nil {
			paths = []string{one}
		} else {
			p.notef("plugin.json: %s is neither a path nor a list of paths", name)
		}
	}
	var dirs []string
	for _, path := range append([]string{name}, paths...) {
		full := filepath.Join(p.Root, filepath.FromSlash(path))
		info, err := os.Stat(full)
		switch {
		case err != nil && path == name:
			continue
		case err != nil:
			p.notef("plugin.json: %s: %s does not exist", name, path)
			continue
		case !p.has(full):
			p.notef("plugin.json: %s: %s is outside of the plugin", name, path)
			continue
		case !info.IsDir():
			full = filepath.Dir(full) // Belay reads the other files of this directory, too
		}
		switch {
		case full == p.Root:
			p.notef("plugin.json: %s: %s is not used: move it into a directory", name, path)
		case !slices.Contains(dirs, full):
			dirs = append(dirs, full)
		}
	}
	return dirs
}

// hooks finds the files with hooks: hooks/hooks.json, those that the manifest names, and the
// manifest itself.
func (p *Plugin) hooks(more json.RawMessage) {
	paths := []string{PluginHookFile}
	var named []json.RawMessage
	if len(more) > 0 && json.Unmarshal(more, &named) != nil {
		named = []json.RawMessage{more}
	}
	for _, one := range named {
		var path string
		var inside map[string]json.RawMessage
		switch {
		case json.Unmarshal(one, &path) == nil:
			paths = append(paths, path)
		case json.Unmarshal(one, &inside) == nil && len(named) == 1 && more[0] == '{':
			paths = append(paths, manifestFile)
		default:
			p.notef("plugin.json: hooks is neither a path nor an object with events, so its hooks do not run")
		}
	}
	for i, path := range paths {
		full := filepath.Join(p.Root, filepath.FromSlash(path))
		rel, err := filepath.Rel(p.Root, full)
		switch {
		case !isRegular(full):
			if i > 0 {
				p.notef("plugin.json: hooks: %s does not exist", path)
			}
		case err != nil || !p.has(full):
			p.notef("plugin.json: hooks: %s is outside of the plugin, so its hooks do not run", path)
		case !slices.Contains(p.HookFiles, filepath.ToSlash(rel)):
			p.HookFiles = append(p.HookFiles, filepath.ToSlash(rel))
		}
	}
}

// has reports whether a path is inside the plugin, after links are resolved.
func (p *Plugin) has(path string) bool {
	actual, err := filepath.EvalSymlinks(path)
	return err == nil && inside(p.Root, actual)
}

// servers reads the MCP servers: those of .mcp.json, and those that the manifest has or names.
func (p *Plugin) servers(manifest, text string, more json.RawMessage, lookup func(string) (string, bool)) {
	p.Servers = new(Servers)
	add := func(s *Servers) {
		p.Servers.Servers, p.Servers.Programs, p.Servers.Notes = append(p.Servers.Servers, s.Servers...), append(p.Servers.Programs, s.Programs...), append(p.Servers.Notes, s.Notes...)
	}
	files := []string{".mcp.json"}
	var named string
	var given map[string]json.RawMessage
	switch {
	case len(more) == 0:
	case json.Unmarshal(more, &named) == nil && filepath.Base(named) != strings.TrimPrefix(named, "./"):
		p.notef("plugin.json: mcpServers names a file in another directory, which trust does not cover: move it beside the plugin's .mcp.json")
	case json.Unmarshal(more, &named) == nil:
		files = append(files, named)
	case json.Unmarshal(more, &given) == nil:
		add(ParseServers(filepath.Join(p.Root, filepath.Base(manifest)), text, given, lookup))
	default:
		p.notef("plugin.json: mcpServers is neither a path nor an object")
	}
	for _, name := range slices.Compact(files) {
		path := filepath.Join(p.Root, filepath.FromSlash(name))
		if !p.has(path) {
			continue // it does not exist, or a link leads out of the plugin
		}
		s, err := ReadServers(path, lookup)
		if err != nil {
			p.notef("%s is not used: %v", name, err)
			continue
		}
		s.Programs = append(s.Programs, path) // trust covers the file, too
		add(s)
	}
	for i := range p.Servers.Servers {
		p.Servers.Servers[i].Name = p.Name + "-" + p.Servers.Servers[i].Name
	}
}

// Marketplace reads a marketplace in a directory: the directories of its plugins, by name.
// Plugins that are not in the directory are notes.
func Marketplace(dir string) (plugins map[string]string, notes []string, err error) {
	text, err := readText(filepath.Join(dir, ".claude-plugin", "marketplace.json"), mostManifest)
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
	base, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, nil, plain(err)
	}
	plugins = make(map[string]string)
	for _, entry := range m.Plugins {
		var p struct {
			Name   string          `json:"name"`
			Source json.RawMessage `json:"source"`
		}
		if err := json.Unmarshal(entry, &p); err != nil {
			notes = append(notes, fmt.Sprintf("an entry cannot be read: %v", err))
			continue
		}
		var source string
		if json.Unmarshal(p.Source, &source) != nil {
			notes = append(notes, fmt.Sprintf("plugin %s is elsewhere: Belay downloads nothing", p.Name))
			continue
		}
		found := false
		for _, from := range []string{m.Metadata.PluginRoot, ""} {
			root, err := filepath.EvalSymlinks(filepath.Join(base, filepath.FromSlash(from), filepath.FromSlash(source)))
			if err == nil && inside(base, root) {
				plugins[p.Name], found = root, true
				if unused := unusedKeys(entry, append([]string{"agents", "commands", "hooks", "mcpServers", "skills"}, unusedParts...)...); len(unused) > 0 {
					notes = append(notes, fmt.Sprintf("plugin %s: Belay does not use %s of its entry, but only what the plugin's own files declare", p.Name, strings.Join(unused, ", ")))
				}
				break
			}
		}
		if !found {
			notes = append(notes, fmt.Sprintf("plugin %s: %s does not exist in the marketplace", p.Name, source))
		}
	}
	return plugins, notes, nil
}

// FindPlugin returns the directory of an installed plugin. id is NAME@MARKETPLACE. own is the
// user's directory of Claude Code, and marketplaces are directories that settings name.
func FindPlugin(id, own string, marketplaces map[string]string) (string, error) {
	name, market, _ := strings.Cut(id, "@")
	if dir, ok := marketplaces[market]; ok {
		plugins, _, err := Marketplace(dir)
		if err != nil {
			return "", fmt.Errorf("marketplace %s: %w", market, err)
		}
		if root, ok := plugins[name]; ok {
			return root, nil
		}
		return "", fmt.Errorf("the marketplace %s in %s has no plugin %s", market, dir, name)
	}
	if own == "" {
		return "", errors.New("it is not installed")
	}
	if root := installed(filepath.Join(own, "plugins", "installed_plugins.json"), id); root != "" {
		return root, nil
	}
	var known map[string]struct {
		Location string `json:"installLocation"`
	}
	if text, err := readText(filepath.Join(own, "plugins", "known_marketplaces.json"), mostManifest); err == nil && json.Unmarshal([]byte(text), &known) == nil {
		if plugins, _, err := Marketplace(known[market].Location); err == nil && plugins[name] != "" {
			return plugins[name], nil
		}
	}
	return "", errors.New("it is not installed: install it with Claude Code, or name its marketplace in extraKnownMarketplaces as a directory")
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

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
