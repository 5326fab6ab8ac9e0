package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/permit"
)

// Source is where a value came from.
type Source struct {
	// Kind is default, system, user, project, environment, flag or kept.
	Kind string `json:"kind"`
	// Where is the file with its line, the variable, the flag or the turn.
	Where string `json:"where,omitempty"`
}

func (s Source) String() string {
	if s.Where == "" {
		return s.Kind
	}
	return s.Where
}

// Loaded is the effective configuration.
type Loaded struct {
	Config

	// Project is the directory that the agent works in. It is the nearest
	// directory, from the working directory upwards, that has a settings file or
	// hooks; else the nearest with a directory .belay; else the working directory.
	Project string
	// UserDir is the directory of the user's settings; empty if there is no home.
	UserDir string
	// SystemDir is the directory of the machine's settings.
	SystemDir string
	// SystemFile, UserFile and ProjectFile are the files that were read; empty if
	// there is none.
	SystemFile, UserFile, ProjectFile string

	from    map[string]Source
	lines   map[string]string // sources of rules, by position
	environ []string
}

// Options are the places to search. A nil *Options is valid.
type Options struct {
	// Dir is where the search for the project's file starts, going up. Defaults to
	// the working directory.
	Dir string
	// UserDir is the user's directory for settings of all programs. Defaults to
	// os.UserConfigDir.
	UserDir string
	// SystemDir is the directory of the machine's settings. Defaults to
	// [SystemDir].
	SystemDir string
	// Environ are the variables. Defaults to os.Environ.
	Environ []string
}

// SystemDir returns the directory of a machine's settings for all users. Some systems
// have none.
func SystemDir() string {
	if runtime.GOOS == "windows" {
		return ""
	}
	return "/etc/belay"
}

// UserPath returns the path of the user's file in the user's configuration
// directory.
func UserPath(userDir string) string { return filepath.Join(userDir, "belay", Name) }

// Load reads the configuration. The error names every mistake, one to a line.
func Load(opts *Options) (*Loaded, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.UserDir == "" {
		o.UserDir, _ = os.UserConfigDir() // without a home there is no user's file
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	l := &Loaded{Project: dir, from: make(map[string]Source), lines: make(map[string]string), environ: o.Environ}
	l.Hooks.AllowCommands = true
	l.Mode, l.Store = permit.Standard.Name, filepath.Join(".belay", "belay.db")
	for _, f := range fields() {
		l.from[f.path] = Source{Kind: "default"}
	}
	var problems []error
	if l.SystemDir = cmp.Or(o.SystemDir, SystemDir()); l.SystemDir != "" {
		if path := filepath.Join(l.SystemDir, Name); isFile(path) {
			l.SystemFile = path
			problems = append(problems, l.readFile(path, "system"))
		}
	}
	if o.UserDir != "" {
		l.UserDir = filepath.Dir(UserPath(o.UserDir))
		if path := UserPath(o.UserDir); isFile(path) {
			l.UserFile = path
			problems = append(problems, l.readFile(path, "user"))
		}
	}
	l.Project = l.findUp(dir)
	if path := filepath.Join(l.Project, Name); isFile(path) && path != l.UserFile {
		l.ProjectFile = path
		problems = append(problems, l.readFile(path, "project"))
	}
	problems = append(problems, l.readEnvironment(), l.checkRules())
	if err := l.checkProvider(); err != nil {
		problems = append(problems, fmt.Errorf("%s: model: %w", l.From("model"), err))
	}
	l.Store = located(l.Store, l.Project)
	l.placeMemory()
	for _, dirs := range [][]string{l.Permit.Roots, l.Sandbox.Write} {
		for i := range dirs {
			dirs[i] = absolute(dirs[i], l.Project)
		}
	}
	l.fillIn()
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return l, nil
}

// fillIn sets the defaults of settings that are missing or zero.
func (l *Loaded) fillIn() {
	l.Limits.Steps = cmp.Or(l.Limits.Steps, 100)
	l.Limits.Parallel = cmp.Or(l.Limits.Parallel, 16)
	l.Limits.ResultCharacters = cmp.Or(l.Limits.ResultCharacters, 50_000)
	l.Limits.Tool = cmp.Or(l.Limits.Tool, 5*time.Minute)
	l.Limits.Idle = cmp.Or(l.Limits.Idle, 5*time.Minute)
	l.Approvals.OnAsk = cmp.Or(l.Approvals.OnAsk, "wait")
	l.Sandbox.Mode = cmp.Or(l.Sandbox.Mode, SandboxAuto)
	l.Memory.Mode = cmp.Or(l.Memory.Mode, MemoryOff)
	l.Approvals.Expiry = cmp.Or(l.Approvals.Expiry, 24*time.Hour)
}

// From returns the source of a setting's value. Settings of a provider have
// paths too: providers.openai.url.
func (l *Loaded) From(path string) Source {
	if from, ok := l.from[path]; ok {
		return from
	}
	return Source{Kind: "default"}
}

// Value returns the value of a setting for display.
func (l *Loaded) Value(path string) any {
	for _, f := range fields() {
		if f.path == path {
			return f.value(&l.Config)
		}
	}
	return nil
}

// Override sets a value that a flag gave.
func (l *Loaded) Override(path, flag, word string) error {
	return l.Overrule(path, "--"+flag, word)
}

// Overrule sets a value that a program gave. Errors and listings name where it is from. It counts as a flag does.
func (l *Loaded) Overrule(path, where, word string) error {
	if !slices.Contains(Paths(), path) {
		return fmt.Errorf("%s: there is no setting %q%s", where, path, near.Hint(path, Paths()))
	}
	err := l.set(path, Source{"flag", where}, func(into any) error { return assign(into, word) })
	switch {
	case err != nil:
	case path == "store" && !IsDSN(l.Store):
		l.Store, err = filepath.Abs(l.Store)
	case path == "model":
		err = l.checkProvider()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

// Recall sets a value that was stored elsewhere, such as with a turn.
func (l *Loaded) Recall(path, where, word string) error {
	err := l.set(path, Source{"kept", where}, func(into any) error { return assign(into, word) })
	if path == "model" && err == nil {
		err = l.checkProvider()
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", path, where, err)
	}
	return nil
}

// set changes a value, unless this source must not change it.
func (l *Loaded) set(path string, from Source, read func(into any) error) error {
	at := slices.IndexFunc(fields(), func(f field) bool { return f.path == path })
	f := fields()[at]
	changed := l.Config
	if err := read(f.value(&changed)); err != nil {
		return err
	}
	if f.check != nil {
		if err := f.check(&changed); err != nil {
			return err
		}
	}
	switch from.Kind {
	case "project":
		if err := l.forProject(&f, &changed); err != nil {
			return err
		}
	case "environment", "flag":
		if f.inFiles != nil && f.inFiles(&changed) != "" {
			return errors.New(f.inFiles(&changed))
		}
	}
	if before := l.from[path]; addsUp(f.value(&changed)) && before.Where != "" {
		from.Where = before.Where + ", " + from.Where
	}
	l.Config = changed
	l.from[path] = from
	return nil
}

// forProject rejects settings that a project's file must not have.
func (l *Loaded) forProject(f *field, changed *Config) error {
	elsewhere := fmt.Sprintf("put it into the user's %s", Name)
	if f.inFiles == nil {
		elsewhere += " or set " + Variable(f.path)
	}
	switch {
	case f.private != "":
		return fmt.Errorf("a project cannot decide %s: %s", f.private, elsewhere)
	case f.looser != nil && f.looser(changed, &l.Config):
		return fmt.Errorf("a project may tighten it but not loosen it: %s", elsewhere)
	case f.path == "store" && IsDSN(changed.Store):
		return fmt.Errorf("a project cannot decide on which server sessions are kept: %s", elsewhere)
	case f.path == "store" && !filepath.IsLocal(changed.Store):
		return fmt.Errorf("%q is outside the project: %s", changed.Store, elsewhere)
	default:
		return nil
	}
}

// Environment returns a variable of the environment that the settings were read
// from, such as a key.
func (l *Loaded) Environment(name string) string {
	for _, e := range l.environ {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// otherVariables begin like settings but are not: variables for hooks, and
// switches of other parts.
var otherVariables = []string{
	"BELAY_PROJECT_DIR", "BELAY_SESSION", "BELAY_PHASE", "BELAY_DEMO_DIR",
}

// unknownVariables rejects variables that look like settings but are not: a
// mistyped limit would have no effect. Variables for tests are ignored.
func (l *Loaded) unknownVariables() error {
	known := slices.Clone(otherVariables)
	for _, f := range fields() {
		known = append(known, Variable(f.path))
	}
	for _, v := range l.providerVariables() {
		known = append(known, v.variable)
	}
	var problems []error
	for _, e := range l.environ {
		name, word, _ := strings.Cut(e, "=")
		if word == "" || !strings.HasPrefix(name, "BELAY_") || strings.Contains(name, "TEST") || slices.Contains(known, name) {
			continue
		}
		hint := likeVariable(name, known)
		for _, f := range fields() { // some do not follow the naming scheme
			if Variable(f.path) != name && name == named(f.path) {
				hint = fmt.Sprintf(" (did you mean %q?)", Variable(f.path))
			}
		}
		problems = append(problems, fmt.Errorf("%s: there is no such setting%s", name, hint))
	}
	return errors.Join(problems...)
}

// likeVariable suggests the variable that was meant. It ignores the common prefix.
func likeVariable(name string, known []string) string {
	const all = "BELAY_"
	var bare []string
	for _, k := range known {
		bare = append(bare, strings.TrimPrefix(k, all))
	}
	if like := near.Names(strings.TrimPrefix(name, all), bare, 1); len(like) > 0 {
		return fmt.Sprintf(" (did you mean %q?)", all+like[0])
	}
	return ""
}

func (l *Loaded) readEnvironment() error {
	problems := []error{l.unknownVariables()}
	for _, f := range fields() {
		name := Variable(f.path)
		word := l.Environment(name)
		if word == "" {
			continue // empty counts as not set
		}
		if err := l.set(f.path, Source{"environment", name}, func(into any) error { return assign(into, word) }); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	for _, v := range l.providerVariables() {
		if word := l.Environment(v.variable); word != "" {
			if err := l.setProvider(v, word); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", v.variable, err))
			}
		}
	}
	return errors.Join(problems...)
}

// findUp searches for a project in a directory and its parents: a directory with settings
// or hooks, or else one with a directory .belay. So a .belay with only a store does not
// hide settings in a parent.
func (l *Loaded) findUp(start string) string {
	for _, is := range []func(dir string) bool{
		func(dir string) bool {
			return isFile(filepath.Join(dir, Name)) || isDir(filepath.Join(dir, ".belay", "hooks"))
		},
		func(dir string) bool { return dir == start && isDir(filepath.Join(dir, ".belay")) || l.ofProject(dir) },
	} {
		for dir := start; ; {
			if is(dir) {
				return dir
			}
			above := filepath.Dir(dir)
			if above == dir {
				break
			}
			dir = above
		}
	}
	return start
}

// ofProject reports whether a directory is a project because of its .belay. The home
// directory is not: one task run there would make all of it a project. Neither is the
// directory of the user's settings, nor a directory that all users share, where anybody
// can create .belay.
func (l *Loaded) ofProject(dir string) bool {
	belay := filepath.Join(dir, ".belay")
	if !isDir(belay) || dir == l.home() {
		return false
	}
	if rel, err := filepath.Rel(belay, l.UserDir); err == nil && l.UserDir != "" && filepath.IsLocal(rel) {
		return false
	}
	info, err := os.Stat(dir)
	return err == nil && info.Mode()&fs.ModeSticky == 0
}

// home returns the user's home directory, or "".
func (l *Loaded) home() string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	if home := l.Environment(name); home != "" {
		return filepath.Clean(home)
	}
	home, _ := os.UserHomeDir() // without one there is none
	return home
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isFile reports whether a file exists. It returns true on other errors, so that
// reading reports them.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() || errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist)
}
