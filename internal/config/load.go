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

// Source is where a value comes from.
type Source struct {
	// Kind is default, system, user, project, environment, flag or kept. "kept" means a
	// value that was stored, for example with a turn.
	Kind string `json:"kind"`
	// Where is the file and line, the variable, the flag or the turn that has the value.
	Where string `json:"where,omitempty"`
}

func (s Source) String() string {
	if s.Where == "" {
		return s.Kind
	}
	return s.Where
}

// Loaded holds the effective settings and their sources.
type Loaded struct {
	Config

	// Project is the directory that the agent works in. Belay searches upwards from the
	// working directory for a directory with a settings file or hooks. If there is none, it
	// searches for a directory that contains .belay. If there is none either, Project is
	// the working directory.
	Project string
	// UserDir is the directory of the user's settings, or "" if there is no home directory.
	UserDir string
	// SystemDir is the directory of the machine's settings.
	SystemDir string
	// SystemFile, UserFile and ProjectFile are the files that were read, or "".
	SystemFile, UserFile, ProjectFile string
	// Deprecated says for each setting with an old name where it is and what to write instead.
	Deprecated []string
	// Spaces are directories of spaces that the program itself loads. Load does not set it.
	Spaces []string

	dir  string // see At
	from map[string]Source
	// beforePlan is the mode that the weaker settings set, if the mode is plan.
	beforePlan string
	lines      map[string]string // file and line of each rule and guard; the key is its Where
	environ    []string

	passwordFiles []string
}

// Options say where to search. A nil *Options is valid.
type Options struct {
	// Dir is where the upward search for the project starts. Defaults to the working
	// directory.
	Dir string
	// UserDir is the directory for the user's settings of all programs. Defaults to
	// os.UserConfigDir.
	UserDir string
	// SystemDir is the directory of the machine's settings. Defaults to [SystemDir].
	SystemDir string
	// Environ are the environment variables. Defaults to os.Environ.
	Environ []string
}

// SystemDir returns the directory of the machine's settings, which apply to all users. It
// returns "" on systems without such a directory.
func SystemDir() string {
	if runtime.GOOS == "windows" {
		return ""
	}
	return "/etc/belay"
}

// UserPath returns the path of the user's settings file.
func UserPath(userDir string) string { return filepath.Join(userDir, "belay", Name) }

// Load reads the settings. The error names every mistake, one per line. The settings without
// the mistakes are returned with it.
func Load(opts *Options) (*Loaded, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.UserDir == "" {
		o.UserDir, _ = os.UserConfigDir() // ignore errors: without a home directory there is no user's file
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	l := &Loaded{Project: dir, dir: o.Dir, from: make(map[string]Source), lines: make(map[string]string), environ: o.Environ}
	l.Hooks.AllowCommands = true
	l.Serve.Workers = 4
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
	if l.TokenFile != "" {
		l.TokenFile = absolute(l.TokenFile, l.Project)
	}
	for _, dirs := range [][]string{l.Permit.Roots, l.Sandbox.Write} {
		for i := range dirs {
			dirs[i] = absolute(dirs[i], l.Project)
		}
	}
	l.fillIn()
	return l, errors.Join(problems...)
}

// fillIn sets the defaults of settings that are zero.
func (l *Loaded) fillIn() {
	l.Limits.Steps = cmp.Or(l.Limits.Steps, 100)
	l.Limits.Parallel = cmp.Or(l.Limits.Parallel, 16)
	l.Limits.ResultCharacters = cmp.Or(l.Limits.ResultCharacters, 50_000)
	l.Limits.Tool = cmp.Or(l.Limits.Tool, 5*time.Minute)
	l.Limits.Idle = cmp.Or(l.Limits.Idle, 5*time.Minute)
	l.Approvals.OnAsk = cmp.Or(l.Approvals.OnAsk, "wait")
	l.Sandbox.Mode = cmp.Or(l.Sandbox.Mode, SandboxAuto)
	l.Snapshots = cmp.Or(l.Snapshots, SnapshotsAll)
	l.Memory.Mode = cmp.Or(l.Memory.Mode, MemoryOff)
	l.Serve.Listen = cmp.Or(l.Serve.Listen, "127.0.0.1:7717")
	l.Serve.MaxBody = cmp.Or(l.Serve.MaxBody, 1_000_000)
	l.Serve.Connections = cmp.Or(l.Serve.Connections, 4096)
	l.Serve.Rate = cmp.Or(l.Serve.Rate, 500)
	l.Serve.Streams = cmp.Or(l.Serve.Streams, 2000)
	l.Approvals.Expiry = cmp.Or(l.Approvals.Expiry, 24*time.Hour)
}

// From returns the source of a setting. Settings of a provider have paths too, such as
// providers.openai.url.
func (l *Loaded) From(path string) Source {
	if from, ok := l.from[path]; ok {
		return from
	}
	return Source{Kind: "default"}
}

// At returns a file or a directory that a flag or a variable names. A relative path begins at
// Options.Dir.
func (l *Loaded) At(name string) string {
	if l.dir == "" || name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(l.dir, name)
}

// Value returns a pointer to the value of a setting, or nil.
func (l *Loaded) Value(path string) any {
	for _, f := range fields() {
		if f.path == path {
			return f.value(&l.Config)
		}
	}
	return nil
}

// Override sets the value that a flag has.
func (l *Loaded) Override(path, flag, word string) error {
	return l.Overrule(path, "--"+flag, word)
}

// Overrule sets a value that a program gives. It has the precedence of a flag. Errors and
// listings show the text in where as the source.
func (l *Loaded) Overrule(path, where, word string) error {
	if !slices.Contains(Paths(), path) {
		return fmt.Errorf("%s: there is no setting %q%s", where, path, near.Hint(path, Paths()))
	}
	err := l.set(path, Source{"flag", where}, func(into any) error { return assign(into, word) })
	switch {
	case err != nil:
	case path == "store" && !IsDSN(l.Store):
		l.Store, err = filepath.Abs(l.At(l.Store))
	case path == "model":
		err = l.checkProvider()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

// Recall sets a value that was stored, for example with a turn.
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

// set changes a value. It returns an error if this source must not change the value.
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
	if path == "mode" && changed.Mode == planMode && l.Mode != planMode && l.from[path].Kind != "default" {
		l.beforePlan = l.Mode
	}
	if path == "store" && hasPassword(changed.Store) {
		if file := map[string]string{"system": l.SystemFile, "user": l.UserFile}[from.Kind]; file != "" {
			l.passwordFiles = append(l.passwordFiles, file)
		}
	}
	l.Config = changed
	l.from[path] = from
	return nil
}

// planMode is the name of the mode from which an approved plan leads back.
const planMode = "plan"

// ModeAfterPlan returns the mode that the settings give a session whose plan was approved: the
// mode itself, or if that is plan, the mode of the weaker settings. It is "" if no setting
// gives one.
func (l *Loaded) ModeAfterPlan() string {
	if l.Mode != planMode {
		return l.Mode
	}
	return l.beforePlan
}

// forProject returns an error for a setting that a project's file must not have.
func (l *Loaded) forProject(f *field, changed *Config) error {
	elsewhere := fmt.Sprintf("put it into the user's %s", Name)
	if f.inFiles == nil {
		elsewhere += " or set " + Variable(f.path)
	}
	switch {
	case f.private != "":
		return fmt.Errorf("a project cannot decide %s: %s", f.private, elsewhere)
	case f.looser != nil && f.looser(changed, &l.Config):
		return fmt.Errorf("a project may make this setting stricter but not looser: %s", elsewhere)
	case f.path == "store" && IsDSN(changed.Store):
		return fmt.Errorf("a project cannot decide on which server sessions are kept: %s", elsewhere)
	case f.path == "store" && !filepath.IsLocal(changed.Store):
		return fmt.Errorf("%q is outside the project: %s", changed.Store, elsewhere)
	default:
		return nil
	}
}

// Environment returns the value of an environment variable, such as a key, or "".
func (l *Loaded) Environment(name string) string {
	for _, e := range l.environ {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// otherVariables begin with BELAY_ but are not settings.
var otherVariables = []string{
	"BELAY_PROJECT_DIR", "BELAY_SESSION", "BELAY_PHASE", "BELAY_DEMO_DIR", "BELAY_TOKEN",
}

// unknownVariables returns an error for each BELAY_ variable that is not a setting.
// Otherwise a mistyped limit would silently have no effect. It ignores otherVariables, empty
// variables, and variables for tests, whose names contain TEST.
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
		for _, f := range fields() { // some variables do not follow the naming scheme
			if Variable(f.path) != name && name == named(f.path) {
				hint = fmt.Sprintf(" (did you mean %q?)", Variable(f.path))
			}
		}
		problems = append(problems, fmt.Errorf("%s: there is no such setting%s", name, hint))
	}
	return errors.Join(problems...)
}

// likeVariable suggests a similar variable. It compares names without the prefix BELAY_.
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
			continue // an empty variable counts as not set
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

// findUp searches a directory and its parents for a project. A directory with settings or
// hooks wins over one that only contains .belay. So a .belay that only has a store does not
// hide the settings of a parent.
func (l *Loaded) findUp(start string) string {
	for _, is := range []func(dir string) bool{
		func(dir string) bool {
			return isFile(filepath.Join(dir, Name)) || isDir(filepath.Join(dir, ".belay", "hooks")) && (dir == start || l.ofProject(dir))
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

// ofProject reports whether the .belay in a directory makes that directory a project.
// This is not so in three directories: in the home directory, because one task that ran
// there would make all of it a project; in the directory of the user's settings; and in a
// directory that all users share, because anybody can create .belay there.
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

func (l *Loaded) home() string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	if home := l.Environment(name); home != "" {
		return filepath.Clean(home)
	}
	home, _ := os.UserHomeDir() // "" if there is none
	return home
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isFile reports whether a file exists. It also returns true if permission is denied, so
// that reading the file reports the error.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() || errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist)
}
