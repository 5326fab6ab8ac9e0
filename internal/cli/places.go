package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/internal/wholefile"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/sandbox"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/subagent"
)

// places are the directories that have hooks, skills and agents: the machine's, the
// user's, the project's, and spaces. They were read, and nothing of them runs.
type places struct {
	host *space.Host
	all  []*space.Space
	err  error // what is wrong with them
}

// openPlaces reads the directories.
func (a *app) openPlaces(ctx context.Context, s *config.Loaded) *places {
	p := &places{host: a.newHost(ctx, s)}
	for _, dir := range []string{s.SystemDir, s.UserDir} {
		if dir != "" {
			p.load(dir, hook.OriginOperator)
		}
	}
	if dir := projectPlace(s); staysInside(s.Project, dir) {
		p.load(dir, hook.OriginProject)
	} else {
		p.err = fmt.Errorf("%s: it leads out of the project, so its hooks are not there: put them into the project", dir)
	}
	registered, err := registeredHere(s)
	if err != nil {
		p.err = errors.Join(p.err, err)
	}
	for _, r := range registered {
		if r.gone() {
			p.err = errors.Join(p.err, fmt.Errorf("space %s: %s is gone, and it may have had a gate: put it back, or run `belay space unload %s`", r.name(), r.Dir, r.name()))
			continue
		}
		p.load(r.Dir, hook.OriginSpace)
	}
	return p
}

// registeredHere are the spaces that are loaded in the project, each once.
func registeredHere(s *config.Loaded) ([]registered, error) {
	all, err := readRegistry(s)
	var here []registered
	for _, r := range all {
		if r.in(s.Project) && !slices.ContainsFunc(here, func(o registered) bool { return o.Dir == r.Dir }) {
			here = append(here, r)
		}
	}
	return here, err
}

// spacesHere are the spaces that are loaded in the project, as far as they can be read: what is
// wrong with them is told by whoever begins an agent.
func spacesHere(s *config.Loaded) []*space.Space {
	list, _ := registeredHere(s)
	var all []*space.Space
	for _, r := range list {
		if loaded, _ := space.Load(r.Dir, hook.OriginSpace); loaded.Manifest.ID != "" {
			all = append(all, loaded)
		}
	}
	return all
}

// projectPlace is the directory of the project's own hooks.
func projectPlace(s *config.Loaded) string { return filepath.Join(s.Project, ".belay") }

// load reads a directory. One that is not there has nothing, unless it is a space.
func (p *places) load(dir string, kind hook.OriginKind) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && kind != hook.OriginSpace {
		return
	}
	loaded, err := space.Load(dir, kind)
	p.all, p.err = append(p.all, loaded), errors.Join(p.err, err)
	if kind == hook.OriginSpace {
		p.err = errors.Join(p.err, unfit(loaded))
	}
}

// unfit says which agents of a space cannot be had here.
func unfit(s *space.Space) error {
	var problems []error
	for _, d := range s.Agents {
		if why := unusable(d); why != "" {
			problems = append(problems, fmt.Errorf("%s: %s", d.Path, why))
		}
	}
	return errors.Join(problems...)
}

// of is the directory that a file is in.
func (p *places) of(file string) *space.Space {
	for _, s := range p.all {
		if actual, err := filepath.EvalSymlinks(file); err == nil {
			if rel, err := filepath.Rel(s.Dir, actual); err == nil && filepath.IsLocal(rel) {
				return s
			}
		}
	}
	return nil
}

// newHost makes what says which hooks run.
func (a *app) newHost(ctx context.Context, s *config.Loaded) *space.Host {
	opts := &space.Options{
		NoCommands: !s.Hooks.AllowCommands,
		Declare: declare.Options{
			Project: s.Project, Environ: a.hookEnvironment(s), Secrets: providerKeys(s), Allowlist: s.Hooks.WebhookAllowlist, Logger: a.hookLogger(s),
			Confine: a.confineHook(ctx, s), Transport: transportOf(s),
		},
	}
	if s.UserDir != "" {
		opts.Trust = openTrust(s)
	}
	for _, id := range s.Hooks.Disable {
		if all, isSwitch := hookSwitch(id); isSwitch {
			opts.Disable = opts.Disable || all
		} else {
			opts.DisableIDs = append(opts.DisableIDs, id)
		}
	}
	return space.NewHost(opts)
}

// hookSwitch tells a word of hooks.disable that means all hooks, or none, from an id.
func hookSwitch(word string) (all, isSwitch bool) {
	switch strings.ToLower(word) {
	case "all", "1", "true", "yes":
		return true, true
	case "0", "false", "no", "none":
		return false, true
	default:
		return false, false
	}
}

// hookEnvironment is what hooks may be given of the environment: not the keys of
// providers, whatever their variables are called.
func (a *app) hookEnvironment(s *config.Loaded) []string {
	environ := a.environ
	if environ == nil {
		environ = os.Environ()
	}
	return slices.DeleteFunc(slices.Clone(environ), holdsKey(s))
}

func openTrust(s *config.Loaded) *space.Trust {
	return space.OpenTrust(filepath.Join(s.UserDir, "trust"))
}

// confineHook has the commands of projects and spaces run in the sandbox: they may write
// in the project and to temporary files, and use the network if that was granted. What the
// operator has runs as it is.
func (a *app) confineHook(ctx context.Context, s *config.Loaded) func(context.Context, *declare.Declaration, *declare.Execution) error {
	return func(run context.Context, _ *declare.Declaration, e *declare.Execution) error {
		box := a.sandbox(ctx, s)
		if box == nil {
			if s.Sandbox.Mode == config.SandboxRequire {
				return fmt.Errorf("%s wants commands confined, and this machine has no sandbox", s.From("sandbox.mode"))
			}
			return nil
		}
		argv, err := box.Command(sandbox.Policy{
			Write:   present([]string{s.Project, os.TempDir()}),
			Protect: slices.Concat(steering(s.Project, new(permit.Explanation)), []string{filepath.Join(s.Project, ".git")}, ownFiles(s)),
			Hide:    keyFiles(s),
			Network: slices.Contains(space.Confined(run), space.GrantNetwork),
			Bounds:  boundsOf(s),
		}, e.Argv)
		if err != nil {
			return fmt.Errorf("it cannot be confined: %w", err)
		}
		e.Argv = argv
		return nil
	}
}

// installPlaces installs the contents of the places into an agent, until the returned function is
// called. Meanwhile changed files are loaded, and people are told what comes of it.
func (a *app) installPlaces(ctx context.Context, p *places, agent *belay.Agent, skills *skill.Catalog, subagents *subagent.Extension, declared *declaredAgents) (stop func() error, err error) {
	watch, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var leases []*space.Lease
	var watching sync.WaitGroup
	stop = func() error {
		cancel()
		watching.Wait()
		var problems []error
		for _, l := range slices.Backward(leases) {
			problems = append(problems, l.Unload(context.WithoutCancel(ctx)))
		}
		return errors.Join(problems...)
	}
	known := unloaded(skills)
	for _, place := range p.all {
		into := &space.Target{Hooks: agent.Hooks(), Skills: skills}
		if !ofOperator(place) { // whose are there already
			into.Servers = declared.servers
		}
		if place.Origin.Kind == hook.OriginSpace { // those of the user and the project are known already
			into.Subagents = subagents
			into.Build = func(_ context.Context, task *subagent.Task, d *subagent.Declaration, own belay.Extension) (*belay.Agent, error) {
				return declared.build(d, task.Store, own)
			}
		}
		lease, err := p.host.Install(ctx, place, into)
		if err != nil {
			return nil, errors.Join(usage("%w", err), stop())
		}
		leases = append(leases, lease)
		a.tellNotes(lease.Notes())
		a.tellProblems(declared.settings, place.SkillProblems())
		changes := &reloads{app: a, settings: declared.settings, lease: lease, notes: lease.Notes()}
		watching.Go(func() { lease.Watch(watch, changes.told) })
	}
	watching.Go(func() { a.watchSkills(watch, declared.settings, skills, known) })
	return stop, nil
}

// tellNotes shows which hooks and servers do not run.
func (a *app) tellNotes(notes []space.Note) {
	for _, n := range notes {
		a.remarkf("%s", a.onErr.dim(noteLine(n)))
	}
}

// noteLine says that a hook or a server does not run, and why.
func noteLine(n space.Note) string {
	what := "does not run"
	switch {
	case n.Closed:
		what = "is closed"
	case n.Limited:
		what = "may not say all"
	}
	kind := "hook"
	if n.Phase == "" {
		kind = "mcp server"
	}
	return visible.All(fmt.Sprintf("%s %s %s: %s", kind, n.ID, what, n.Reason))
}

// hookLog is the name of the file that hooks log to, beside the store.
const hookLog = "hooks.log"

// hookLogger is where hooks log to: a file, for there may be nobody at the terminal, or a
// chat that has it. With --debug it is standard error.
func (a *app) hookLogger(s *config.Loaded) *slog.Logger {
	if a.debug {
		return a.logger()
	}
	return slog.New(slog.NewJSONHandler(&lateFile{path: filepath.Join(s.Home(), hookLog)}, nil))
}

// lateFile is a file that is made when there is something to write to it.
type lateFile struct {
	path string
	mu   sync.Mutex
}

func (f *lateFile) Write(line []byte) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return 0, err
	}
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if n, err = file.Write(line); err != nil {
		return n, fmt.Errorf("log: %w", err)
	}
	return n, nil
}

// registered is a space that is loaded with every agent.
type registered struct {
	Dir string `json:"dir"`
	// ID is that of its manifest when it was loaded. Older files do not have it.
	ID string `json:"id,omitempty"`
	// Project is the only project that has it; empty means all.
	Project string `json:"project,omitempty"`
}

func (r registered) in(project string) bool {
	return r.Project == "" || r.Project == project || r.Project == realDir(project)
}

// gone reports whether its directory is there no more.
func (r registered) gone() bool {
	_, err := os.Stat(r.Dir)
	return errors.Is(err, fs.ErrNotExist)
}

// name is what people call it by.
func (r registered) name() string { return cmp.Or(r.ID, r.Dir) }

func registryFile(s *config.Loaded) string { return filepath.Join(s.UserDir, "spaces.json") }

// readRegistry reads which spaces are loaded.
func readRegistry(s *config.Loaded) ([]registered, error) {
	if s.UserDir == "" {
		return nil, nil
	}
	file := registryFile(s)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("spaces: %w", err)
	}
	var list []registered
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: it is damaged, so nobody knows which spaces there are: mend it, or remove it and load them again: %w", file, err)
	}
	return list, nil
}

// writeRegistry keeps which spaces are loaded.
func writeRegistry(s *config.Loaded, list []registered) (err error) {
	if s.UserDir == "" {
		return errors.New("spaces: there is no directory for the user's settings: set HOME")
	}
	slices.SortFunc(list, func(a, b registered) int {
		return cmp.Or(strings.Compare(a.Dir, b.Dir), strings.Compare(a.Project, b.Project))
	})
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("spaces: %w", err)
	}
	if err := os.MkdirAll(s.UserDir, 0o700); err != nil {
		return fmt.Errorf("spaces: %w", err)
	}
	if err := wholefile.Write(registryFile(s), append(text, '\n')); err != nil {
		return fmt.Errorf("spaces: %w", err)
	}
	return nil
}
