package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/guard"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/warmhook"
)

// remnant is something that Belay put on the machine.
type remnant struct {
	Kind   string `json:"kind"` // store, memory, cache, trust, tokens, spaces, sockets, hook, program
	Path   string `json:"path"`
	Remedy string `json:"remedy,omitempty"` // what a person must do, because Belay does not remove it

	remove func() error // nil: a person must do it
}

func (a *app) uninstallCommand() *cobra.Command {
	var dry, yes, asJSON bool
	var below string
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "List or remove everything that Belay put on this machine",
		Long: `Lists what Belay put on this machine, asks, and removes it: the stores of this project with their conversations, memories,
trust, tokens, sockets, its entries in the configuration of other agents, and the program that the install script copied. If
something cannot be removed, the program stays.

Belay does not know in which projects you used it. --below searches a directory for more of them: directories with .belay,
belay.yaml, or settings of other agents. An agent whose settings still run Belay blocks without the program. A store that you named
with --store or BELAY_STORE is listed if you name it again.

What you wrote yourself stays: settings, hooks, skills and agents. Listed, and not removed, are a database, a file that Belay did not
write although the settings name it as the store, and directories beside a store that is not in a directory .belay.

Stop all belay programs first. Belay notices only those that have one of the listed store files open, and then removes nothing. It
ends the workers of "belay hook" itself.`,
		Example: `  belay uninstall --dry-run
  belay uninstall --dry-run --below ~
  belay uninstall`,
		Args: arguments(0, 0, "uninstall takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.uninstall(cmd.Context(), below, dry, yes, asJSON)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only list")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().StringVar(&below, "below", "", "also search this directory for projects")
	jsonFlag(cmd, &asJSON, "print one JSON object per line")
	return cmd
}

func (a *app) uninstall(ctx context.Context, below string, dry, yes, asJSON bool) error {
	if asJSON && !dry {
		return usage("--json lists: add --dry-run")
	}
	settings, mistakes, err := a.settingsWithMistakes()
	if err != nil {
		return err
	}
	if mistakes != nil {
		a.warn(told(mistakes))
	}
	l, err := a.remnants(settings, mistakes, below)
	if err == nil && !dry && len(l.open) > 0 && endHookWorkers(ctx, l.open) {
		l, err = a.remnants(settings, mistakes, below)
	}
	if err != nil {
		return err
	}
	out := a.newList(asJSON, "KIND", "PATH", "")
	for _, r := range l.all {
		out.add(r, r.Kind, r.Path, r.Remedy)
	}
	if err := out.end("there is nothing of Belay on this machine"); err != nil {
		return err
	}
	if below == "" && slices.ContainsFunc(l.all, func(r remnant) bool { return r.Kind == "program" }) {
		a.warn("agents of other projects block without the program if their settings run \"belay hook\": --below DIR finds them")
	}
	if dry {
		return nil
	}
	if len(l.open) > 0 {
		return fmt.Errorf("nothing is removed: %s", strings.Join(l.openNow(), "; "))
	}
	return a.removeAll(ctx, settings, l.all, yes)
}

// removeAll removes what can be removed, if the user agrees.
func (a *app) removeAll(ctx context.Context, settings *config.Loaded, found []remnant, yes bool) error {
	var problems, stay []error
	for _, l := range found {
		if l.Kind == "hook" && l.remove == nil {
			stay = append(stay, fmt.Errorf("%s: %s", l.Path, l.Remedy))
		}
	}
	found = slices.DeleteFunc(found, func(l remnant) bool { return l.remove == nil })
	if len(found) == 0 {
		return nil
	}
	if err := a.agree(ctx, yes, "remove these for good, with all conversations?"); err != nil {
		return err
	}
	for _, l := range found {
		if l.Kind == "program" && len(problems)+len(stay) > 0 { // agents that still ask it would block without it
			problems = append(append(problems, stay...), fmt.Errorf("the program stays, because not everything was removed: solve the problems above, and run %q again", "belay uninstall"))
			break
		}
		if err := l.remove(); err != nil {
			problems = append(problems, err)
			continue
		}
		a.remarkf("removed %s", l.Path)
		if dir := filepath.Dir(l.Path); filepath.Base(dir) == ".belay" || dir == settings.UserDir {
			_ = os.Remove(dir) // fails if something of the user is left in it
		}
	}
	return errors.Join(problems...)
}

// remnants returns what Belay put on this machine for this user. mistakes are those of the settings.
func (a *app) remnants(settings *config.Loaded, mistakes error, below string) (*left, error) {
	l := new(left)
	projects := []string{settings.Project}
	if below != "" {
		dir, err := filepath.Abs(a.at(below)) // the names of caches depend on the whole path
		if err != nil {
			return nil, fmt.Errorf("--below: %w", err)
		}
		more, err := projectsBelow(dir)
		if err != nil {
			return nil, err
		}
		projects = append(projects, more...)
	}
	l.mistaken(settings, mistakes)
	l.stores(settings)
	for _, home := range homes(projects) {
		l.home(home)
	}
	for _, project := range projects[1:] {
		l.named(project, a.userDir, a.environ)
	}
	for _, project := range projects {
		l.dir("cache", assembly.CacheDir(project))
	}
	if dir := settings.UserDir; dir != "" {
		l.dir("trust", filepath.Join(dir, "trust"))
		l.dir("tokens", filepath.Join(dir, "tokens"))
		l.file("spaces", filepath.Join(dir, "spaces.json"))
	}
	if place := warmhook.Place(); place != "" {
		l.dir("sockets", place)
	}
	if err := l.setups(projects); err != nil {
		return nil, err
	}
	if self, err := os.Executable(); err == nil {
		l.all = append(l.all, program(self)...)
	}
	return l, nil
}

// homes returns the directories .belay of projects.
func homes(projects []string) []string {
	var all []string
	for _, project := range projects {
		all = append(all, filepath.Join(project, ".belay"))
	}
	return all
}

// projectsBelow returns the directories below dir that contain a directory .belay, settings, or a directory of another agent, which
// may be a link. Directories that cannot be read are skipped.
func projectsBelow(dir string) ([]string, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, usage("--below: %s is no directory", dir)
	}
	var agents []string
	for _, vendor := range dialect.Vendors() {
		setup, err := guard.SetupOf(vendor)
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(setup.Project, "/")
		agents = append(agents, name)
	}
	var found []string
	// With the separator, a link to a directory is searched too.
	err := filepath.WalkDir(dir+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what the user cannot read, Belay of the user did not write
		case entry.IsDir() && entry.Name() == ".belay":
			found = append(found, filepath.Dir(path))
			return fs.SkipDir
		case entry.Type().IsRegular() && entry.Name() == config.Name, slices.Contains(agents, entry.Name()):
			found = append(found, filepath.Dir(path))
		}
		return nil
	})
	slices.Sort(found)
	return slices.Compact(found), err
}

// stores adds the stores that settings name, and what is beside them.
func (l *left) stores(s *config.Loaded) {
	if config.IsDSN(s.Store) {
		l.keep("store", config.MaskDSN(s.Store), "drop the database yourself")
	} else {
		l.store("store", s.Store)
	}
	l.home(s.Home())
	if s.Memory.File != "" {
		l.store("memory", s.Memory.File)
	}
}

// mistaken adds the settings files with mistakes.
func (l *left) mistaken(s *config.Loaded, mistakes error) {
	for _, file := range []string{s.SystemFile, s.UserFile, s.ProjectFile} {
		if mistakes != nil && file != "" && strings.Contains(mistakes.Error(), file+":") {
			l.keep("store", file, "these settings have mistakes, so Belay may not find the store that they name: look for it yourself")
		}
	}
}

// named adds the stores that the settings of another project name. It only reads the settings. BELAY_STORE is about the project of
// the command, and not about this one.
func (l *left) named(project, userDir string, environ []string) {
	if !exists(filepath.Join(project, config.Name)) {
		return
	}
	if environ == nil {
		environ = os.Environ()
	}
	environ = slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, "BELAY_STORE=") })
	if s, err := config.Load(&config.Options{Dir: project, UserDir: userDir, Environ: environ}); s != nil {
		l.mistaken(s, err)
		l.stores(s)
	}
}

// setups adds the configurations of other agents, of projects and of the user, that run "belay hook".
func (l *left) setups(projects []string) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return fmt.Errorf("find the home directory: %w", err)
	}
	for _, vendor := range dialect.Vendors() {
		setup, err := guard.SetupOf(vendor)
		if err != nil {
			return err
		}
		l.setup(setup, filepath.Join(home, filepath.FromSlash(setup.User)))
		for _, project := range projects {
			l.setup(setup, filepath.Join(project, filepath.FromSlash(setup.Project)))
		}
	}
	return nil
}

// asksBelay matches the commands that Belay installs in settings of other agents.
var asksBelay = lazyregexp.New(`hook\s+--agent`)

// setup adds the configuration of another agent, if it runs "belay hook". One that cannot be read or changed is for a person.
func (l *left) setup(setup guard.Setup, file string) {
	text, err := readSetup(file)
	if errors.Is(err, syscall.ENOTDIR) {
		return // something else has the name of the agent's directory
	}
	if unread, ok := errors.AsType[*fs.PathError](err); ok {
		l.keep("hook", file, "Belay cannot read this ("+unread.Err.Error()+"): look whether it runs \"belay hook\", and remove that")
		return
	}
	if !asksBelay.Match(text) {
		return
	}
	switch after, err := setup.Uninstall(text); {
	case err != nil:
		l.keep("hook", file, "Belay cannot change this ("+oneLine(err.Error())+"): remove the entries with \"belay hook\" yourself")
	case bytes.Equal(text, after):
		l.keep("hook", file, "Belay did not write these entries with \"belay hook\": remove them yourself")
	default:
		l.add(remnant{Kind: "hook", Path: file, remove: func() error { return removeSetup(setup, file) }})
	}
}

// removeSetup removes Belay's entries from a configuration, and nothing else.
func removeSetup(setup guard.Setup, file string) error {
	if actual, err := filepath.EvalSymlinks(file); err == nil {
		file = actual
	}
	before, err := readSetup(file)
	if err != nil {
		return err
	}
	if before == nil {
		return nil
	}
	after, err := setup.Uninstall(before)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	switch {
	case bytes.Equal(before, after):
	case after == nil:
		err = os.Remove(file)
	default:
		err = writeSetup(file, after)
	}
	if err == nil && asksBelay.Match(after) {
		err = fmt.Errorf("%s: there are other entries with \"belay hook\": remove them yourself", file)
	}
	return err
}

// program returns this program and what the install script put beside it. A program below /usr belongs to a package. A program
// that has no manual page of the install script beside it belongs to the person who built or copied it. A package manager may have
// made links to what it installed: what counts is where they lead.
func program(self string) []remnant {
	self, err := filepath.EvalSymlinks(self) // macOS gives the name that the shell started
	if err != nil || filepath.Base(self) != "belay" || filepath.Base(filepath.Dir(self)) != "bin" {
		return nil
	}
	prefix := filepath.Dir(filepath.Dir(self))
	switch {
	case prefix == "/usr":
		return []remnant{{Kind: "program", Path: self, Remedy: "apt remove belay"}}
	case strings.Contains(filepath.ToSlash(self), "/Cellar/"):
		return []remnant{{Kind: "program", Path: self, Remedy: "brew uninstall belay"}}
	}
	share := filepath.Join(prefix, "share")
	if _, err := os.Lstat(filepath.Join(share, "man", "man1", "belay.1")); err != nil {
		return nil
	}
	pages := filepath.Join(share, "man", "man1", "belay*.1") // one line: there are more than a hundred
	all := []remnant{{Kind: "program", Path: pages, remove: func() error { return removePages(pages) }}}
	for _, file := range []string{
		filepath.Join(share, "bash-completion", "completions", "belay"), filepath.Join(share, "zsh", "site-functions", "_belay"),
		filepath.Join(share, "fish", "vendor_completions.d", "belay.fish"), self,
	} {
		if _, err := os.Lstat(file); err == nil {
			all = append(all, remnant{Kind: "program", Path: file, remove: func() error { return removeFile(file) }})
		}
	}
	return all
}

// removePages removes the manual pages of the program: belay.1, and belay-COMMAND.1. Others have another name.
func removePages(pattern string) error {
	files, err := filepath.Glob(pattern)
	problems := []error{err}
	for _, file := range files {
		if rest := strings.TrimPrefix(filepath.Base(file), "belay"); rest[0] == '.' || rest[0] == '-' {
			problems = append(problems, os.Remove(file))
		}
	}
	return errors.Join(problems...)
}
