package permit

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// laterFiles are files that other programs run or read automatically. Such programs are
// direnv, editors and programs that start tool servers.
var laterFiles = wordSet(".envrc .mcp.json .exrc .nvimrc .nvim.lua .vimrc .dir-locals.el .devcontainer.json .autoenv .autoenv.zsh .gdbinit .lldbinit .pre-commit-config.yaml")

// laterBelow are files of the same kind as laterFiles, but only in certain directories. A
// name that ends with a slash means the whole directory.
var laterBelow = wordSet(".vscode/tasks.json .vscode/launch.json .vscode/mcp.json .zed/tasks.json .zed/debug.json .fleet/run.json .cursor/mcp.json .cursor/hooks.json " +
	".zed/settings.json .vscode/settings.json .idea/workspace.xml .gemini/settings.json .codex/config.toml .roo/mcp.json .codex/hooks.json .codex/hooks/ .cursor/hooks/ .gemini/hooks/ .github/hooks/ .copilot/config.json .copilot/hooks/ .idea/runConfigurations/ .devcontainer/ .helix/ .husky/")

// laterUnmade are the names of those files in laterFiles and laterBelow that are
// protected even before they exist. Until then, the sandbox puts an empty directory in
// the place of each file, which does no harm.
var laterUnmade = wordSet(".envrc .mcp.json tasks.json .exrc .nvimrc .nvim.lua .vimrc .dir-locals.el .devcontainer.json .autoenv .autoenv.zsh mcp.json hooks.json launch.json")

// runsLater reports whether a path is a file that another program runs automatically.
func runsLater(parts []string) bool {
	for i, part := range parts {
		plain := plainName(part)
		last := i == len(parts)-1
		if last && strings.HasSuffix(plain, ".code-workspace") {
			return true
		}
		if !strings.HasPrefix(plain, ".") {
			continue
		}
		switch {
		case last && laterFiles[plain], laterBelow[plain+"/"]:
			return true
		case last:
		case laterBelow[plain+"/"+plainName(parts[i+1])+"/"]:
			return true
		case laterBelow[plain+"/"+plainName(parts[i+1])] && i == len(parts)-2, plain == ".idea" && plainName(parts[i+1]) == "runconfigurations":
			return true
		}
	}
	return false
}

// heldBy returns the names that other programs look for in a directory with this name,
// such as tasks.json in .vscode. It returns none if the programs use the whole directory.
func heldBy(name string) []string {
	var names []string
	for _, below := range laterSorted {
		if holder, rest, _ := strings.Cut(below, "/"); holder == name && rest != "" {
			names = append(names, strings.TrimSuffix(rest, "/"))
		}
	}
	return names
}

var laterSorted = slices.Sorted(maps.Keys(laterBelow))

// becomes records a write if a directory gets a name under which other programs look for
// files to run, as in mv x .vscode.
func (c *invoked) becomes(from, to []arg) {
	for _, t := range c.few(to) {
		for _, name := range c.heldIn(t) {
			if slices.ContainsFunc(from, func(f arg) bool { return c.mayHold(f, name) }) {
				c.write(under(t, literal(name)))
			}
		}
	}
}

// heldIn is like heldBy, for the directory that a word names.
func (c *invoked) heldIn(dir arg) []string {
	if !dir.known || dir.pipe {
		return nil
	}
	names := heldBy(plainName(path.Base(path.Clean(dir.text))))
	for _, s := range c.spots(dir, reads) {
		names = append(names, heldBy(plainName(path.Base(s.path)))...)
	}
	return names
}

// mayHold reports whether a directory may contain a file with this name when the command
// runs.
func (c *invoked) mayHold(dir arg, name string) bool {
	if dir.pattern || !c.exists(dir) || c.moved != "" || c.exists(under(dir, literal(name))) {
		return true
	}
	return slices.ContainsFunc(c.spots(dir, reads), func(s spot) bool { return s.inside && c.wroteBelow(s.rel) })
}

// fillsHolder records that the command puts files with unknown names into a directory
// where other programs may look for files to run.
func (c *invoked) fillsHolder(dir arg) {
	for _, name := range c.heldIn(dir) {
		c.write(under(dir, literal(name)))
	}
}

// RunsLater returns the files and directories of the project that git or other programs
// run automatically: the directory of git's hooks, the scripts that hooks call, tasks of
// editors and so on. A sandbox should protect them. The result also has the most common
// of these files if they do not exist yet but their parent directory does.
func (f *Floor) RunsLater() []string {
	var paths []string
	add := func(name string) {
		_, err := os.Lstat(name)
		_, holder := os.Lstat(filepath.Dir(name))
		if err == nil || holder == nil && laterUnmade[filepath.Base(name)] {
			paths = append(paths, name)
		}
	}
	project := filepath.FromSlash(f.project.path)
	for _, names := range []map[string]bool{laterFiles, laterBelow} {
		for name := range names {
			add(filepath.Join(project, filepath.FromSlash(name)))
		}
	}
	for _, r := range f.hooks {
		if _, inside := f.project.holds(r.path); inside {
			add(filepath.FromSlash(r.path))
		}
	}
	slices.Sort(paths)
	return paths
}

// RebasePlans returns the directories where git keeps the next steps of an unfinished
// rebase, am, cherry-pick or revert. Only git may change them.
func (f *Floor) RebasePlans() []string {
	var paths []string
	for _, name := range []string{"rebase-merge", "rebase-apply", "sequencer"} {
		plan := filepath.Join(filepath.FromSlash(f.project.path), ".git", name)
		if _, err := os.Lstat(plan); err == nil {
			paths = append(paths, plan)
		}
	}
	return paths
}

// findHooks finds the directory of git's hooks, if it is not .git/hooks. It also finds
// the scripts of the project that hooks call.
func (f *Floor) findHooks() {
	dirs := []string{path.Join(f.project.path, ".git", "hooks")}
	for _, dir := range f.hooksPaths() {
		r, err := newRoot(dir)
		if err != nil || r.path == f.project.path {
			continue
		}
		if path.Base(r.path) == "_" { // scripts in this directory and in its parent call each other
			r.path = path.Dir(r.path)
		}
		f.hooks = append(f.hooks, r)
		dirs = append(dirs, r.path)
	}
	for _, dir := range dirs {
		entries, err := os.ReadDir(filepath.FromSlash(dir))
		if err != nil || len(entries) > mostOfMany {
			continue
		}
		for _, e := range entries {
			if e.Type().IsRegular() && path.Ext(e.Name()) != ".sample" {
				f.calledBy(path.Join(dir, e.Name()))
			}
		}
	}
}

// calledBy adds the files of the project that a hook script names to f.hooks.
func (f *Floor) calledBy(hook string) {
	info, err := os.Stat(filepath.FromSlash(hook))
	if err != nil || info.Size() > longestScript {
		return
	}
	data, err := os.ReadFile(filepath.FromSlash(hook))
	if err != nil {
		return
	}
	for word := range strings.FieldsFuncSeq(string(data), func(r rune) bool { return strings.ContainsRune(" \t\n\r;|&()<>\"'`=", r) }) {
		word = strings.TrimPrefix(strings.TrimPrefix(word, "$PWD/"), "$(git rev-parse --show-toplevel)/")
		if len(f.hooks) >= mostOfMany || word == "" || strings.ContainsAny(word, "$*?[{\\") || path.IsAbs(word) || !strings.ContainsAny(word, "/.") {
			continue
		}
		s := f.locateFrom(filepath.FromSlash(f.project.path), filepath.FromSlash(word))
		if info, err := os.Stat(filepath.FromSlash(s.path)); err == nil && info.Mode().IsRegular() && s.inside && path.Base(s.path) != "package.json" {
			f.hooks = append(f.hooks, root{s.path})
		}
	}
}

// hooksPaths returns the values of core.hooksPath in git's settings, as absolute paths.
func (f *Floor) hooksPaths() []string {
	git := filepath.Join(filepath.FromSlash(f.project.path), ".git")
	files := []string{filepath.Join(git, "config"), filepath.Join(git, "config.worktree")}
	if f.home.path != "" {
		home := filepath.FromSlash(f.home.path)
		files = append(files, filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config", "git", "config"))
	}
	var dirs []string
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || info.Size() > longestPatch {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, dir := range hooksPathOf(string(data)) {
			if full, ok := f.expanded(dir); ok {
				if !filepath.IsAbs(full) {
					full = filepath.Join(filepath.FromSlash(f.project.path), full)
				}
				dirs = append(dirs, full)
			}
		}
	}
	return dirs
}

// hooksPathOf finds core.hooksPath in a git configuration file.
func hooksPathOf(text string) (dirs []string) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			name, rest, _ := strings.Cut(line[1:], "]")
			section, line = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(rest)
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section != "core" || !strings.EqualFold(strings.TrimSpace(key), "hookspath") {
			continue
		}
		if value = strings.Trim(strings.TrimSpace(value), `"`); value != "" {
			dirs = append(dirs, value)
		}
	}
	return dirs
}
