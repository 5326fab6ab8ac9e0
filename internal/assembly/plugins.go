package assembly

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/vendorhook"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/space"
)

// lookup returns a function that returns environment variables. It knows the variables of
// Claude Code.
func lookup(s *config.Loaded) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		if name == "CLAUDE_PROJECT_DIR" {
			return s.Project, true
		}
		value := s.Environment(name)
		return value, value != ""
	}
}

// plugins returns the plugins of Claude Code that settings switch on, sorted by name.
func plugins(s *config.Loaded) []*claude.Plugin {
	found, _ := findPlugins(s)
	return found
}

// findPlugins is like plugins. It also returns why other plugins are not used.
func findPlugins(s *config.Loaded) (found []*claude.Plugin, missing []OtherFile) {
	if !s.OtherAgents.Uses("plugins") {
		return nil, nil
	}
	ctx := context.Background()
	own := claudeFiles(ctx, s, nil).Own()
	var files []*claude.Settings
	markets := make(map[string]string)
	for _, f := range settingsFiles(ctx, s) {
		if f.err != nil {
			continue
		}
		files = append(files, f.Settings)
		for name, dir := range f.Marketplaces {
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(s.Project, dir)
			}
			markets[name] = dir
		}
	}
	for _, id := range claude.Enabled(files...) {
		from, err := claude.FindPlugin(id, own, markets)
		var p *claude.Plugin
		if err == nil {
			p, err = claude.ReadPlugin(from, lookup(s))
		}
		if err != nil {
			missing = append(missing, OtherFile{Path: "plugin " + id, Use: fmt.Sprintf("not used: %v", err), Partly: true})
			continue
		}
		found = append(found, p)
	}
	return found, missing
}

// runsCommands reports whether a command in a directory has shell commands, which run only
// after trust.
func runsCommands(dir string) bool {
	runs := false
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { // files that cannot be read are no commands
		if err != nil || e.IsDir() || filepath.Ext(path) != ".md" {
			return nil //nolint:nilerr // see above
		}
		if text, err := readRegular(path); err == nil && strings.Contains(string(text), "!`") || strings.Contains(string(text), "```!") {
			runs = true
			return fs.SkipAll
		}
		return nil
	})
	return runs
}

// projectServersName is the name of the place with the project's file .mcp.json.
const projectServersName = "mcp.json"

// serverPlaces returns the project's file .mcp.json as a place, so that its servers start only
// after trust.
func serverPlaces(s *config.Loaded) []*HookPlace {
	file := filepath.Join(s.Project, ".mcp.json")
	if _, err := os.Stat(file); err != nil || !s.OtherAgents.Uses("mcp") || !staysInside(s.Project, file) {
		return nil
	}
	return []*HookPlace{{Vendor: dialect.ClaudeCode, Foreign: &space.Foreign{
		Dir: s.Project, Origin: hook.Origin{Kind: hook.OriginProject, Name: projectServersName}, Files: []string{".mcp.json"}, Trust: "belay trust .mcp.json",
		Read: func() ([]*declare.Declaration, error) { return nil, nil },
		Servers: func() ([]mcptool.Server, []string, error) {
			read, err := projectServers(s)
			if err != nil {
				return nil, nil, nil //nolint:nilerr // serverUses reports it; a file of another agent does not stop an agent
			}
			return read.Servers, read.Programs, nil
		},
	}}}
}

// projectServers reads the servers of the project's file .mcp.json. A server that settings of
// Claude Code switch off is disabled.
func projectServers(s *config.Loaded) (*claude.Servers, error) {
	read, err := claude.ReadServers(filepath.Join(s.Project, ".mcp.json"), lookup(s))
	if err != nil {
		return nil, err
	}
	for _, f := range settingsFiles(context.Background(), s) {
		for i := range read.Servers {
			if f.err == nil && slices.Contains(f.NoServers, read.Servers[i].Name) {
				read.Servers[i].Disabled = true
				read.Notes = append(read.Notes, fmt.Sprintf("server %s is switched off by %s", read.Servers[i].Name, ShownPath(s, f.path)))
			}
		}
	}
	return read, nil
}

// serverUses reports the project's file .mcp.json.
func serverUses(s *config.Loaded) []OtherFile {
	read, err := projectServers(s)
	f := OtherFile{Path: ".mcp.json"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case !s.OtherAgents.Uses("mcp"):
		f.Use = switchedOff(s, "mcp")
	case err != nil:
		f.Use, f.Partly = fmt.Sprintf("not used: %v", err), true
	case !staysInside(s.Project, filepath.Join(s.Project, ".mcp.json")):
		f.Use, f.Partly = "not used: it is a link that leads out of the project", true
	default:
		own := ownServers(s)
		var parts []string
		used := 0
		for i := range read.Servers {
			if name := read.Servers[i].Name; own[name] != "" {
				parts = append(parts, replacedBy(s, "server "+name, own[name]))
			} else {
				used++
			}
		}
		if used > 0 || len(parts) == 0 {
			verb := "start"
			if used == 1 {
				verb = "starts"
			}
			parts = append([]string{visible.Counted(used, "MCP server") + ", which " + verb + " after `belay trust .mcp.json`"}, parts...)
		}
		f.Use = strings.Join(append(parts, read.Notes...), "; ")
		f.Partly = len(read.Notes) > 0
	}
	return []OtherFile{f}
}

// pluginPlaces returns the plugins that have hooks, MCP servers or commands that run something.
func pluginPlaces(s *config.Loaded, transcript vendorhook.Transcript) []*HookPlace {
	var all []*HookPlace
	for _, p := range plugins(s) {
		place := newPluginPlace(s, p.Source, "plugin-"+idPart(p.Name), transcript)
		if !s.OtherAgents.Uses("hooks") {
			place.Read = func() ([]*declare.Declaration, error) { return nil, nil }
			place.Files, place.inside = nil, nil
		}
		for _, path := range filled(p) {
			if rel, err := filepath.Rel(p.Root, path); err == nil && runsCommands(path) {
				place.Dirs = append(place.Dirs, filepath.ToSlash(rel))
			}
		}
		if len(p.Servers.Servers) > 0 && s.OtherAgents.Uses("mcp") {
			place.Files = union(place.Files, ".mcp.json", ".claude-plugin/plugin.json")
			place.Covers = func(name string, text []byte) []byte {
				if name != ".claude-plugin/plugin.json" && slices.Contains(p.HookFiles, name) {
					return hookPart(name, text)
				}
				return text
			}
			place.Servers = func() ([]mcptool.Server, []string, error) {
				now, err := claude.ReadPlugin(again(p.Source), lookup(s))
				if err != nil {
					return nil, nil, nil //nolint:nilerr // pluginUses reports it
				}
				return now.Servers.Servers, now.Servers.Programs, nil
			}
		}
		if place.Servers != nil || place.hasHooks() || len(place.Dirs) > 3 {
			all = append(all, place)
		}
	}
	return all
}

// filled returns the files and directories of a plugin with commands and skills.
func filled(p *claude.Plugin) []string {
	var all []string
	for part, dirs := range map[string][]string{"commands": p.Commands, "skills": p.Skills} {
		for _, dir := range dirs {
			if single := p.Singles(part, dir); len(single) > 0 {
				all = append(all, single...)
			} else {
				all = append(all, dir)
			}
		}
	}
	slices.Sort(all)
	return all
}

// again returns a source of a plugin with its present entry in the marketplace.
func again(from *claude.PluginSource) *claude.PluginSource {
	if from.Market == "" {
		return from
	}
	listed, _, err := claude.Marketplace(from.Market)
	if err != nil || listed[from.Name] == nil {
		return &claude.PluginSource{Root: from.Root, Name: from.Name}
	}
	return &claude.PluginSource{Root: from.Root, Name: from.Name, Market: from.Market, Entry: listed[from.Name].Entry}
}

// union returns a list with more elements, but none of them twice.
func union(list []string, more ...string) []string {
	return append(list, slices.DeleteFunc(more, func(one string) bool { return slices.Contains(list, one) })...)
}

// pluginUses reports the plugins that settings name, and the plugin or marketplace that the
// project itself is.
func pluginUses(ctx context.Context, s *config.Loaded) []OtherFile {
	if !s.OtherAgents.Uses("plugins") {
		for _, f := range settingsFiles(ctx, s) {
			if f.err == nil && len(f.Plugins) > 0 {
				return []OtherFile{{Path: ShownPath(s, f.path), Use: "enabledPlugins: " + switchedOff(s, "plugins")}}
			}
		}
		return nil
	}
	found, uses := findPlugins(s)
	for _, p := range found {
		uses = append(uses, pluginUse(s, p, "plugin "+p.Name))
	}
	if isFile(filepath.Join(s.Project, ".claude-plugin", "plugin.json")) {
		const idle = "a plugin that no settings switch on (enabledPlugins)"
		if p, err := claude.ReadPlugin(&claude.PluginSource{Root: s.Project, Name: filepath.Base(s.Project)}, lookup(s)); err != nil {
			uses = append(uses, OtherFile{Path: ".claude-plugin/plugin.json", Use: fmt.Sprintf("not used: %v", err), Partly: true})
		} else if !slices.ContainsFunc(found, func(o *claude.Plugin) bool { return o.Root == p.Root }) {
			uses = append(uses, pluginUse(s, p, idle))
		}
	}
	if isFile(filepath.Join(s.Project, ".claude-plugin", "marketplace.json")) {
		uses = append(uses, marketUses(s, found)...)
	}
	return uses
}

// marketUses reports the plugins of the marketplace that the project is.
func marketUses(s *config.Loaded, used []*claude.Plugin) []OtherFile {
	f := OtherFile{Path: ".claude-plugin/marketplace.json"}
	listed, notes, err := claude.Marketplace(s.Project)
	if err != nil {
		f.Use, f.Partly = fmt.Sprintf("not used: %v", err), true
		return []OtherFile{f}
	}
	f.Use = strings.Join(append([]string{fmt.Sprintf("a marketplace with %s in it: enabledPlugins in settings switches them on", visible.Counted(len(listed), "plugin"))}, notes...), "; ")
	f.Partly = len(notes) > 0
	uses := []OtherFile{f}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		p, err := claude.ReadPlugin(listed[name], lookup(s))
		switch {
		case err != nil:
			uses = append(uses, OtherFile{Path: ShownPath(s, listed[name].Root), Use: fmt.Sprintf("plugin %s is not usable: %v", name, err), Partly: true})
		case !slices.ContainsFunc(used, func(o *claude.Plugin) bool { return o.Root == p.Root && o.Name == p.Name }):
			uses = append(uses, pluginUse(s, p, "plugin "+p.Name+", which no settings switch on"))
		}
	}
	return uses
}

// pluginUse reports the parts of a plugin. The parts of a plugin that is switched on have
// entries of their own.
func pluginUse(s *config.Loaded, p *claude.Plugin, what string) OtherFile {
	parts := []string{what}
	count := func(n int, noun string) {
		if n > 0 {
			parts = append(parts, visible.Counted(n, noun))
		}
	}
	commands, agents := 0, 0
	for _, dir := range p.Commands {
		list, err := claude.Prefixed(claude.NewCommands(dir, "", &claude.PermissionOptions{}), "", func(path string) bool { return p.Has("commands", dir, path) }).List(context.Background())
		commands += len(list)
		for _, problem := range problemsOf(err) {
			p.Notes = append(p.Notes, fmt.Sprintf("%s is not usable: %s", ShownPath(s, problem.Path), problem.Message))
		}
	}
	for _, dir := range p.Agents {
		list, problems := (&agentDir{dir: dir, plugin: p}).read()
		agents += len(list)
		for i := range problems {
			p.Notes = append(p.Notes, fmt.Sprintf("%s is not usable: %s", ShownPath(s, problems[i].Path), problems[i].Message))
		}
	}
	count(commands, "command")
	count(agents, "agent")
	count(len(p.Skills), "directory of skills")
	count(len(p.Servers.Servers), "MCP server")
	if len(p.HookFiles) > 0 || p.EntryHooks {
		parts = append(parts, "hooks")
	}
	notes := append(slices.Clone(p.Notes), p.Servers.Notes...)
	path := ShownPath(s, p.Root)
	if path == "." {
		path = ".claude-plugin/plugin.json"
	}
	return OtherFile{Path: path, Use: strings.Join(append([]string{strings.Join(parts, ", ")}, notes...), "; "), Partly: len(notes) > 0}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
