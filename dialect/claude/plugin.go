package claude

import (
	"cmp"
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

// PluginSource says where a plugin is.
type PluginSource struct {
	// Root is the directory of the plugin. Name is used if its manifest has no name.
	Root, Name string
	// Market is the file marketplace.json that lists the plugin, or empty. Entry is what it
	// says about the plugin, after as many empty lines as the file has before it.
	Market string
	Entry  []byte
}

// Plugin is a plugin of Claude Code: a directory with commands, agents, skills, hooks and MCP
// servers.
type Plugin struct {
	// Source is what the plugin was read from.
	Source *PluginSource
	// Name is the name of the plugin, and Root is its directory, with links resolved.
	Name, Root string
	// Own means that the user's own settings use the plugin, not those of a project.
	Own bool
	// Commands, Agents and Skills are the directories of these parts. They exist. See Has.
	Commands, Agents, Skills []string
	// HookFiles are the files with hooks, relative to Root and with slashes. They exist.
	HookFiles []string
	// EntryHooks means that the entry of the marketplace has hooks, too.
	EntryHooks bool
	// Servers are the MCP servers.
	Servers *Servers
	// Notes say what is not used, and why.
	Notes []string

	only map[string][]string // by part and directory: the files that belong to the plugin; none means all
}

// Singles returns the files and directories of a part that are named one by one in a directory
// of Commands, Agents or Skills. If there are none, all of the directory belongs to the plugin.
func (p *Plugin) Singles(part, dir string) []string { return p.only[part+"\x00"+dir] }

// Has reports whether a file in a directory of Commands, Agents or Skills belongs to the plugin.
func (p *Plugin) Has(part, dir, path string) bool {
	files := p.Singles(part, dir)
	return len(files) == 0 || slices.ContainsFunc(files, func(file string) bool { return inside(file, path) })
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

// declared is where a plugin declares its parts.
type declared struct {
	manifest

	where string // as notes name it
	alone bool   // what it names is all that there is
}

// hasParts reports whether a part is declared.
func (m *manifest) hasParts() bool {
	return len(m.Commands)+len(m.Agents)+len(m.Skills)+len(m.Hooks)+len(m.MCPServers) > 0
}

// ReadPlugin reads a plugin. Its entry in a marketplace adds to its manifest, or is all that
// declares its parts, if the entry has "strict": false. lookup returns environment variables.
func ReadPlugin(from *PluginSource, lookup func(name string) (string, bool)) (*Plugin, error) {
	actual, err := filepath.EvalSymlinks(from.Root)
	if err != nil {
		return nil, plain(err)
	}
	p := &Plugin{Source: from, Name: from.Name, Root: actual, only: make(map[string][]string)}
	own, entry := declared{where: "plugin.json"}, declared{where: "marketplace.json"}
	file := filepath.Join(actual, filepath.FromSlash(manifestFile))
	text, err := readText(file, mostManifest)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("plugin.json cannot be read: %w", err)
	}
	if err == nil {
		if err := json.Unmarshal([]byte(text), &own.manifest); err != nil {
			return nil, fmt.Errorf("plugin.json cannot be read: %w", err)
		}
	}
	if len(from.Entry) > 0 {
		listed := struct {
			*manifest
			Strict *bool `json:"strict"`
		}{manifest: &entry.manifest}
		if err := json.Unmarshal(from.Entry, &listed); err != nil {
			return nil, fmt.Errorf("marketplace.json: its entry cannot be read: %w", err)
		}
		entry.alone = listed.Strict != nil && !*listed.Strict
		if entry.alone && own.hasParts() && entry.hasParts() {
			return nil, errors.New("plugin.json and the entry in marketplace.json both declare parts, and the entry says \"strict\": false: remove one of the two")
		}
	}
	if own.Name != "" {
		p.Name = own.Name
	}
	if p.Name = strings.Trim(notOfName.ReplaceAllString(p.Name, "-"), "-"); p.Name == "" {
		p.Name = agentName(filepath.Base(actual))
	}
	part := func(name string, of func(m *manifest) json.RawMessage) []string {
		return p.part(name, entry.alone && len(of(&entry.manifest)) > 0, []declared{own, entry}, of)
	}
	p.Commands = part("commands", func(m *manifest) json.RawMessage { return m.Commands })
	p.Agents = part("agents", func(m *manifest) json.RawMessage { return m.Agents })
	p.Skills = part("skills", func(m *manifest) json.RawMessage { return m.Skills })
	if !entry.alone || len(entry.Hooks) == 0 {
		p.hookFiles("", PluginHookFile)
	}
	p.hooks(&own)
	p.hooks(&entry)
	if unused := unusedKeys([]byte(text), unusedParts...); len(unused) > 0 {
		p.notef("plugin.json: Belay does not use %s", strings.Join(unused, ", "))
	}
	if unused := unusedKeys(from.Entry, unusedParts...); len(unused) > 0 {
		p.notef("marketplace.json: Belay does not use %s of its entry", strings.Join(unused, ", "))
	}
	if isRegular(filepath.Join(actual, "SKILL.md")) {
		p.notef("SKILL.md is not used: move it into a directory below skills")
	}
	p.servers(file, text, &own, &entry, func(name string) (string, bool) {
		if name == "CLAUDE_PLUGIN_ROOT" {
			return actual, true
		}
		return lookup(name)
	})
	for _, other := range []string{"output-styles", "themes", "monitors", "workflows", "bin", "hooks.json", ".lsp.json", "settings.json"} {
		if _, err := os.Stat(filepath.Join(actual, other)); err == nil {
			p.notef("Belay does not use %s", other)
		}
	}
	return p, nil
}

func (p *Plugin) notef(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// part returns the directories of a part: the directory with its name, unless what is named is
// all, and those that are named. If a file is named, Has knows that only this one belongs to the
// plugin.
func (p *Plugin) part(name string, alone bool, from []declared, of func(m *manifest) json.RawMessage) []string {
	var dirs []string // whole directories first
	single := make(map[string][]string)
	if full := filepath.Join(p.Root, name); !alone && p.has(full) && isDir(full) {
		dirs = append(dirs, full)
	}
	for _, d := range from {
		for _, path := range p.paths(d.where, name, of(&d.manifest)) {
			full := filepath.Join(p.Root, filepath.FromSlash(path))
			if _, err := os.Stat(full); err != nil {
				p.notef("%s: %s: %s does not exist", d.where, name, path)
				continue
			}
			switch one := !isDir(full) || name == "skills" && isRegular(filepath.Join(full, "SKILL.md")); {
			case !p.has(full):
				p.notef("%s: %s: %s is outside of the plugin", d.where, name, path)
			case full == p.Root, one && filepath.Dir(full) == p.Root && name != "skills":
				p.notef("%s: %s: %s is not used: move it into a directory", d.where, name, path)
			case one:
				single[filepath.Dir(full)] = append(single[filepath.Dir(full)], full)
			case !slices.Contains(dirs, full):
				dirs = append(dirs, full)
			}
		}
	}
	whole := slices.Clone(dirs)
	for _, dir := range slices.Sorted(maps.Keys(single)) {
		if !slices.ContainsFunc(whole, func(one string) bool { return inside(one, dir) }) {
			p.only[name+"\x00"+dir] = single[dir]
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// paths reads a path or a list of paths.
func (p *Plugin) paths(where, name string, value json.RawMessage) []string {
	var paths []string
	if len(value) > 0 && json.Unmarshal(value, &paths) != nil {
		var one string
		if json.Unmarshal(value, &one) != nil {
			p.notef("%s: %s is neither a path nor a list of paths", where, name)
			return nil
		}
		return []string{one}
	}
	return paths
}

// hooks finds the files with hooks that a manifest or an entry names, and hooks inside of it.
func (p *Plugin) hooks(d *declared) {
	more := d.Hooks
	var named []json.RawMessage
	if len(more) > 0 && json.Unmarshal(more, &named) != nil {
		named = []json.RawMessage{more}
	}
	for _, one := range named {
		var path string
		var inside map[string]json.RawMessage
		switch {
		case json.Unmarshal(one, &path) == nil:
			p.hookFiles(d.where, path)
		case json.Unmarshal(one, &inside) != nil || len(named) > 1 || more[0] != '{':
			p.notef("%s: hooks is neither a path nor an object with events, so its hooks do not run", d.where)
		case d.where == "plugin.json":
			p.hookFiles(d.where, manifestFile)
		default:
			p.EntryHooks = true
		}
	}
}

// hookFiles adds a file with hooks. where is empty for the usual file, which may be missing.
func (p *Plugin) hookFiles(where, path string) {
	full := filepath.Join(p.Root, filepath.FromSlash(path))
	rel, err := filepath.Rel(p.Root, full)
	switch {
	case !isRegular(full):
		if where != "" {
			p.notef("%s: hooks: %s does not exist", where, path)
		}
	case err != nil || !p.has(full):
		p.notef("%s: hooks: %s is outside of the plugin, so its hooks do not run", cmp.Or(where, "plugin.json"), path)
	case !slices.Contains(p.HookFiles, filepath.ToSlash(rel)):
		p.HookFiles = append(p.HookFiles, filepath.ToSlash(rel))
	}
}

// has reports whether a path is inside the plugin, after links are resolved.
func (p *Plugin) has(path string) bool {
	actual, err := filepath.EvalSymlinks(path)
	return err == nil && inside(p.Root, actual)
}

// servers reads the MCP servers: those of .mcp.json, and those that the manifest or the entry
// of the marketplace has or names.
func (p *Plugin) servers(manifest, text string, own, entry *declared, lookup func(string) (string, bool)) {
	p.Servers = new(Servers)
	add := func(s *Servers) {
		p.Servers.Servers, p.Servers.Programs, p.Servers.Notes = append(p.Servers.Servers, s.Servers...), append(p.Servers.Programs, s.Programs...), append(p.Servers.Notes, s.Notes...)
	}
	var files []string
	if !entry.alone || len(entry.MCPServers) == 0 {
		files = append(files, ".mcp.json")
	}
	for _, d := range []*declared{own, entry} {
		var named string
		var given map[string]json.RawMessage
		switch more := d.MCPServers; {
		case len(more) == 0:
		case json.Unmarshal(more, &named) == nil && filepath.Base(named) != strings.TrimPrefix(named, "./"):
			p.notef("%s: mcpServers names a file in another directory, which trust does not cover: move it beside the plugin's .mcp.json", d.where)
		case json.Unmarshal(more, &named) == nil:
			files = append(files, strings.TrimPrefix(named, "./"))
		case json.Unmarshal(more, &given) != nil:
			p.notef("%s: mcpServers is neither a path nor an object", d.where)
		case d == own:
			add(ParseServers(filepath.Join(p.Root, filepath.Base(manifest)), text, given, lookup))
		default:
			s := ParseServers(filepath.Join(p.Root, filepath.Base(p.Source.Market)), string(p.Source.Entry), given, lookup)
			s.Programs = append(s.Programs, p.Source.Market) // trust covers the file, too
			add(s)
		}
	}
	slices.Sort(files)
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

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
