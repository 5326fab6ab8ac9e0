package assembly

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/dialect/codex"
	"github.com/belay-run/belay/dialect/gemini"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/vendorhook"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/space"
)

// mostHookFile is the largest hook file of another agent that is read.
const mostHookFile = 4 << 20

// agentFiles says where an agent has its hooks.
type agentFiles struct {
	vendor dialect.Vendor
	dir    string   // below the project and below the user's home directory
	files  []string // below dir
	read   func(*vendorhook.Options, ...vendorhook.File) (*vendorhook.Reading, error)
	speak  func(*vendorhook.Options, *declare.Declaration) ([]vendorhook.Note, error)
}

func agentsWithHooks() []agentFiles {
	return []agentFiles{
		{dialect.ClaudeCode, ".claude", claude.HookFiles(), claude.ReadHooks, claude.SpeakHook},
		{dialect.Codex, ".codex", []string{codex.HookFile}, codex.ReadHooks, codex.SpeakHook},
		{dialect.GeminiCLI, ".gemini", []string{gemini.HookFile}, gemini.ReadHooks, gemini.SpeakHook},
	}
}

// A HookPlace is a directory of another agent with hooks.
type HookPlace struct {
	*space.Foreign

	// Vendor is the agent.
	Vendor dialect.Vendor
	// Notes are what a person should know about its files. Loading the directory sets them.
	Notes []vendorhook.Note
	// Reading has the counts of its hooks. Loading the directory sets it.
	Reading *vendorhook.Reading

	replaced int                  // hooks that Belay's own files have, too
	inside   *claude.PluginSource // a plugin with hooks in its entry of a marketplace
}

// HookPlaces returns the directories of other agents that have hooks: in the project, and
// the user's own. It does not return switched off directories, and runs nothing.
func HookPlaces(s *config.Loaded, transcript vendorhook.Transcript) []*HookPlace {
	if !s.OtherAgents.Uses("hooks") {
		return append(serverPlaces(s), pluginPlaces(s, transcript)...)
	}
	var all []*HookPlace
	add := func(from *agentFiles, base string, private bool) {
		if p := newHookPlace(s, from, base, private, transcript); p.hasHooks() {
			all = append(all, p)
		}
	}
	home := homeOf(s)
	agents := agentsWithHooks()
	all = append(all, serverPlaces(s)...)
	all = append(all, pluginPlaces(s, transcript)...)
	for i := range agents {
		if dir := filepath.Join(s.Project, agents[i].dir); RealDir(s.Project) != home && staysInside(s.Project, dir) {
			add(&agents[i], s.Project, false)
		}
		if home != "" {
			add(&agents[i], home, true)
		}
	}
	return all
}

// newHookPlace describes a directory of an agent. Base is the project or the user's home
// directory.
func newHookPlace(s *config.Loaded, from *agentFiles, base string, private bool, transcript vendorhook.Transcript) *HookPlace {
	p := &HookPlace{Vendor: from.vendor, Foreign: &space.Foreign{
		Dir: filepath.Join(base, from.dir), Origin: hook.Origin{Kind: hook.OriginProject, Name: string(from.vendor)}, Private: private, Strict: s.OtherAgents.Strict,
		Files: from.files, Dirs: []string{"hooks"}, Covers: hookPart, Trust: "belay trust " + from.dir,
	}}
	if from.vendor == dialect.ClaudeCode { // commands and skills may run shell commands: see fills
		for _, dir := range []string{"commands", "skills"} {
			if s.OtherAgents.Uses(dir) {
				p.Dirs = append(p.Dirs, dir)
			}
		}
	}
	project := base
	if private {
		project = s.Project
		p.Origin, p.Trust = hook.Origin{Kind: hook.OriginSpace, Name: string(from.vendor) + "-user"}, "belay trust ~/"+from.dir
	}
	p.Read = func() ([]*declare.Declaration, error) { return p.readHooks(s, from, project, "", transcript) }
	return p
}

// newPluginPlace returns the directory of a Claude Code plugin.
func newPluginPlace(s *config.Loaded, source *claude.PluginSource, id string, transcript vendorhook.Transcript) *HookPlace {
	var files []string
	p := &HookPlace{Vendor: dialect.ClaudeCode}
	if plugin, err := claude.ReadPlugin(source, lookup(s)); err == nil { // pluginUses reports an error
		files = plugin.HookFiles
		if plugin.EntryHooks {
			p.inside = source
		}
	}
	root := source.Root
	p.Foreign = &space.Foreign{
		Dir: root, Origin: hook.Origin{Kind: hook.OriginSpace, Name: id}, Strict: s.OtherAgents.Strict,
		Files: files, Dirs: []string{"hooks", "scripts", "hooks-handlers"}, Covers: hookPart, Trust: "belay trust " + ShownPath(s, root),
	}
	from := &agentFiles{dialect.ClaudeCode, "", files, claude.ReadHooks, claude.SpeakHook}
	p.Read = func() ([]*declare.Declaration, error) { return p.readHooks(s, from, s.Project, root, transcript) }
	return p
}

// hasHooks reports whether a file of the directory has hooks.
func (p *HookPlace) hasHooks() bool {
	for _, dir := range []string{"commands", "skills"} {
		if slices.Contains(p.Dirs, dir) && runsCommands(filepath.Join(p.Dir, dir)) {
			return true // there is something to trust
		}
	}
	if p.inside != nil {
		return true
	}
	return slices.ContainsFunc(p.Files, func(file string) bool { return hasHooks(filepath.Join(p.Dir, filepath.FromSlash(file))) })
}

// FindHookPlace returns the directory of another agent that a person names: by its path, or
// as listings show it, such as .claude or ~/.claude. It returns nil if there is none.
func FindHookPlace(s *config.Loaded, word string) *HookPlace {
	full, err := filepath.Abs(word)
	for _, p := range HookPlaces(s, nil) {
		if strings.TrimSuffix(word, "/") == strings.TrimPrefix(p.Trust, "belay trust ") || err == nil && RealDir(full) == RealDir(p.Dir) {
			return p
		}
	}
	return nil
}

// LoadTrusted loads the directory of a trust record.
func LoadTrusted(s *config.Loaded, r *space.Record) (*space.Space, error) {
	for _, p := range append(serverPlaces(s), pluginPlaces(s, nil)...) {
		if RealDir(p.Dir) == r.Dir {
			return space.LoadForeign(p.Foreign)
		}
	}
	if strings.HasPrefix(r.Space, "plugin-") {
		if p := newPluginPlace(s, &claude.PluginSource{Root: r.Dir}, r.Space, nil); p.hasHooks() {
			return space.LoadForeign(p.Foreign)
		}
	}
	agents := agentsWithHooks()
	for i := range agents {
		if filepath.Base(r.Dir) == agents[i].dir {
			return space.LoadForeign(newHookPlace(s, &agents[i], filepath.Dir(r.Dir), r.Origin == hook.OriginSpace, nil).Foreign)
		}
	}
	return space.Load(r.Dir, r.Origin)
}

// idPart returns a name as a part of a hook id.
func idPart(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' {
			return c
		}
		return '-'
	}, name)
}

// readHooks reads the hook files of the directory.
func (p *HookPlace) readHooks(s *config.Loaded, from *agentFiles, project, root string, transcript vendorhook.Transcript) ([]*declare.Declaration, error) {
	opts := &vendorhook.Options{Project: RealDir(project), Root: root, Strict: p.Strict, Mode: s.Mode, Transcript: transcript}
	if s.UserDir != "" {
		if r, err := OpenTrust(s).Lookup(RealDir(p.Dir)); err == nil && r != nil { // a damaged record is reported with the standing of the directory
			opts.Grants = r.Grants
		}
	}
	var files []vendorhook.File
	for _, name := range from.files {
		path := filepath.Join(p.Dir, filepath.FromSlash(name))
		text, err := readRegular(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, &declare.FaultError{File: path, Line: 1, Message: fmt.Sprintf("this file of %s cannot be read, so its hooks do not run: %v", p.Vendor.Title(), err)}
		}
		files = append(files, vendorhook.File{Path: path, Text: text, Whole: root != "" && filepath.Base(name) != "plugin.json" || from.vendor == dialect.Codex})
	}
	if p.inside != nil {
		now := again(p.inside)
		if len(now.Entry) > 0 {
			files = append(files, vendorhook.File{Path: p.inside.Market, Text: now.Entry})
		}
	}
	r, err := from.read(opts, files...)
	p.Notes, p.Reading = r.Notes, r
	for _, d := range r.Hooks {
		if p.inside != nil && d.File == p.inside.Market {
			d.Scripts = append(d.Scripts, p.inside.Market) // trust covers the file, too
		}
	}
	return r.Hooks, err
}

// readRegular reads a regular file that is not too large.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // opening a pipe would block
		return nil, errors.New("it is not a regular file")
	case info.Size() > mostHookFile:
		return nil, fmt.Errorf("it is larger than %d MiB", mostHookFile>>20)
	}
	return os.ReadFile(path)
}

// hasHooks reports whether a file has hooks. A file that cannot be read may have some.
func hasHooks(path string) bool {
	text, err := readRegular(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(text, &keys) != nil {
		return true
	}
	hooks := bytes.TrimSpace(keys["hooks"])
	return len(hooks) > 0 && string(hooks) != "{}" && string(hooks) != "null"
}

// hookPart returns the part of a settings file that has to do with hooks, or nil. Other
// agents write other settings into the same files.
func hookPart(_ string, text []byte) []byte {
	var keys map[string]json.RawMessage
	if json.Unmarshal(text, &keys) != nil {
		return text
	}
	part := make(map[string]json.RawMessage)
	for _, key := range []string{"hooks", "disableAllHooks"} {
		if value, ok := keys[key]; ok {
			part[key] = value
		}
	}
	if len(part) == 0 {
		return nil
	}
	data, err := json.MarshalIndent(part, "", "  ")
	if err != nil {
		return text
	}
	return append(data, '\n')
}

// homeOf returns the user's home directory, or "".
func homeOf(s *config.Loaded) string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	if home := s.Environment(name); home != "" {
		return RealDir(home)
	}
	return ""
}

// loadOthers reads the hooks of other agents. A mistake in their files does not stop an
// agent, unless other_agents.strict is set.
func (p *Places) loadOthers(s *config.Loaded) {
	for _, place := range HookPlaces(s, p.transcript) {
		p.loadOther(s, place)
	}
}

// count says how many hooks the directory has, and what becomes of them. Every hook is in one
// of the numbers.
func (p *HookPlace) count(s *config.Loaded) *OtherFile {
	r := p.Reading
	if r == nil || r.Declared == 0 {
		return nil
	}
	parts := []string{visible.Counted(r.Declared, "hook") + " of " + p.Vendor.Title()}
	for _, one := range []struct {
		n    int
		what string
	}{{r.Used - p.replaced, "used"}, {p.replaced, "replaced by Belay's own files"}, {r.Refused, "not used (see the warnings)"}, {r.Off, "switched off by disableAllHooks"}, {r.Own, "of `belay hook install`, for " + p.Vendor.Title() + " only"}} {
		if one.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	return &OtherFile{Path: ShownPath(s, p.Dir), Use: strings.Join(parts, ", ")}
}

func (p *Places) loadOther(s *config.Loaded, place *HookPlace) {
	p.replaces(s, place)
	loaded, err := space.LoadForeign(place.Foreign)
	if f := place.count(s); f != nil {
		p.Counts = append(p.Counts, *f)
	}
	for _, n := range place.Notes {
		p.Remarks = append(p.Remarks, visible.OneLine(fmt.Sprintf("%s:%d: %s", ShownPath(s, n.File), n.Line, n.Message)))
	}
	switch {
	case err != nil && place.Strict:
		p.Err = errors.Join(p.Err, err)
	case err != nil:
		for _, problem := range space.Problems(err) {
			shown := *problem
			shown.Path = ShownPath(s, problem.Path)
			p.Unread = append(p.Unread, visible.OneLine(shown.Error()))
		}
	default:
		p.All = append(p.All, loaded)
	}
}
