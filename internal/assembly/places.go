package assembly

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/vendorhook"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/sandbox"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/subagent"
)

// Places are the directories with hooks, skills and agents: those of the machine, the user,
// the project and the loaded spaces. They are read, but nothing in them runs yet.
type Places struct {
	Host *space.Host
	All  []*space.Space
	Err  error // the mistakes in their files
	// Unread are the mistakes in files of other agents, whose hooks do not run. Remarks are
	// notes on hooks of other agents.
	Unread, Remarks []string

	// Counts say how many hooks other agents' directories have, and how many of them run.
	Counts []OtherFile

	transcripts atomic.Pointer[vendorhook.Transcripts] // nil without a store
	wakes       vendorhook.Wakes
}

// transcript writes the transcript of a session for hooks of other agents.
func (p *Places) transcript(ctx context.Context, session string) (string, error) {
	if t := p.transcripts.Load(); t != nil {
		return t.File(ctx, session)
	}
	return "", nil
}

// useStore lets hooks of other agents read the transcript of their session. The returned
// function removes the files.
func (p *Places) useStore(s *config.Loaded, store belay.Store) (remove func() error) {
	t := vendorhook.NewTranscripts(filepath.Join(s.Home(), "transcripts"), RealDir(s.Project), store.Read)
	p.transcripts.Store(t)
	return t.Close
}

// OpenPlaces reads all places.
func (a *Assembler) OpenPlaces(ctx context.Context, s *config.Loaded) *Places {
	return a.openPlaces(ctx, s, nil)
}

// openPlaces is like OpenPlaces. If adjust is not nil, it may change hooks with the key
// dialect.
func (a *Assembler) openPlaces(ctx context.Context, s *config.Loaded, adjust func(*declare.Declaration)) *Places {
	p := new(Places)
	p.Host = a.newHost(ctx, s, func(d *declare.Declaration) error {
		_, err := speak(s, d, p.transcript)
		p.wakes.Use(d)
		if adjust != nil && err == nil {
			adjust(d)
		}
		return err
	})
	for _, line := range s.Deprecated {
		a.warn(line)
	}
	for _, dir := range []string{s.SystemDir, s.UserDir} {
		if dir != "" {
			p.load(s, dir, hook.OriginOperator)
		}
	}
	switch dir := ProjectPlace(s); {
	case a.Place != "":
		p.load(s, a.Place, hook.OriginProject)
	case staysInside(s.Project, dir):
		p.load(s, dir, hook.OriginProject)
	default:
		p.Err = fmt.Errorf("%s is a link that leads out of the project, so its hooks are not loaded: put the hooks into the project", dir)
	}
	registered, err := registeredHere(s)
	if err != nil {
		p.Err = errors.Join(p.Err, err)
	}
	for _, r := range registered {
		if r.Gone() {
			p.Err = errors.Join(p.Err, fmt.Errorf("space %s: %s no longer exists, and it may have had a gate: %s", r.name(), r.Dir, r.remedy()))
			continue
		}
		p.load(s, r.Dir, hook.OriginSpace)
	}
	p.loadOthers(s)
	return p
}

// ProjectPlace returns the directory of the project's hooks, skills and agents.
func ProjectPlace(s *config.Loaded) string { return filepath.Join(s.Project, ".belay") }

// load reads a directory. It skips a directory that does not exist, unless the directory is
// a space.
func (p *Places) load(s *config.Loaded, dir string, kind hook.OriginKind) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && kind != hook.OriginSpace {
		return
	}
	loaded, err := space.Load(dir, kind)
	p.All, p.Err = append(p.All, loaded), errors.Join(p.Err, err)
	if kind == hook.OriginSpace {
		p.Err = errors.Join(p.Err, UnfitAgents(loaded))
	}
	p.tellSpoken(s, loaded.Hooks)
}

// UnfitAgents returns the problems of a space's agents that Belay cannot use.
func UnfitAgents(s *space.Space) error {
	var problems []error
	for _, d := range s.Agents {
		if why := unusable(d); why != "" {
			problems = append(problems, fmt.Errorf("%s: %s", d.Path, why))
		}
	}
	return errors.Join(problems...)
}

// Of returns the place that contains a file, or nil.
func (p *Places) Of(file string) *space.Space {
	var found *space.Space
	for _, s := range p.All {
		if actual, err := filepath.EvalSymlinks(file); err == nil {
			if rel, err := filepath.Rel(s.Dir, actual); err == nil && filepath.IsLocal(rel) && (found == nil || len(s.Dir) > len(found.Dir)) {
				found = s // a plugin is inside of the directory of its agent
			}
		}
	}
	return found
}

// NewHost returns the host that decides which hooks of the places may run.
func (a *Assembler) NewHost(ctx context.Context, s *config.Loaded) *space.Host {
	return a.newHost(ctx, s, func(d *declare.Declaration) error { _, err := speak(s, d, nil); return err })
}

func (a *Assembler) newHost(ctx context.Context, s *config.Loaded, speak func(*declare.Declaration) error) *space.Host {
	opts := &space.Options{
		NoCommands: !s.Hooks.AllowCommands, Trial: a.Trial,
		Declare: declare.Options{
			Project: s.Project, Environ: a.hookEnvironment(s), Secrets: hostSecrets(s), Allowlist: s.Hooks.WebhookAllowlist, Logger: a.hookLogger(s),
			Confine: a.confineHook(ctx, s), Transport: transportOf(s), Speak: speak,
		},
	}
	if s.UserDir != "" {
		opts.Trust = OpenTrust(s)
	}
	for _, id := range s.Hooks.Disable {
		if all, isSwitch := HookSwitch(id); isSwitch {
			opts.Disable = opts.Disable || all
		} else {
			opts.DisableIDs = append(opts.DisableIDs, id)
		}
	}
	return space.NewHost(opts)
}

// HookSwitch reports whether a word in hooks.disable is a switch for all hooks instead of
// an id. all is true if the switch disables all hooks.
func HookSwitch(word string) (all, isSwitch bool) {
	switch strings.ToLower(word) {
	case "all", "1", "true", "yes":
		return true, true
	case "0", "false", "no", "none":
		return false, true
	default:
		return false, false
	}
}

// hookEnvironment returns the variables that hooks may get. It leaves out variables with
// keys of providers or tokens of belay serve.
func (a *Assembler) hookEnvironment(s *config.Loaded) []string {
	return slices.DeleteFunc(slices.Clone(a.environ()), holdsKey(s))
}

// OpenTrust opens the records of the directories that the user has trusted.
func OpenTrust(s *config.Loaded) *space.Trust {
	return space.OpenTrust(filepath.Join(s.UserDir, "trust"))
}

// confineHook returns a function that makes the commands of projects and spaces run in
// the sandbox. These commands may write to the project and to temporary files. They may
// use the network only with a grant. Commands of the operator are not confined. If this
// machine has no sandbox, the commands run without one, unless the settings require it.
func (a *Assembler) confineHook(ctx context.Context, s *config.Loaded) func(context.Context, *declare.Declaration, *declare.Execution) error {
	return func(run context.Context, _ *declare.Declaration, e *declare.Execution) (err error) {
		box := a.sandbox(ctx, s)
		if a.Trial {
			return trial(box, s, e)
		}
		if box == nil {
			if s.Sandbox.Mode == config.SandboxRequire {
				return fmt.Errorf("%s requires a sandbox for commands, and this machine has none", s.From("sandbox.mode"))
			}
			return nil
		}
		network := slices.Contains(space.Confined(run), space.GrantNetwork)
		e.Note = "hooks of a project run in a sandbox, where they can change only the project and temporary files"
		if !network {
			e.Note += ", and have no network (`belay trust DIR --grant network`)"
		}
		e.Argv, err = boxed(box, s, sandbox.Policy{
			Write:   Existing([]string{s.Project, os.TempDir()}),
			Protect: slices.Concat(steering(s.Project, new(permit.Explanation)), []string{filepath.Join(s.Project, ".git")}, ownFiles(s)),
			Hide:    hidden(s),
			Network: network,
			Bounds:  boundsOf(s),
		}, e.Argv)
		return err
	}
}

// trial makes a program run so that it can change only temporary files.
func trial(box *sandbox.Sandbox, s *config.Loaded, e *declare.Execution) (err error) {
	if box == nil {
		return errors.New("programs are tried only in a sandbox, and there is none")
	}
	e.Argv, err = boxed(box, s, sandbox.Policy{Write: Existing([]string{os.TempDir()}), Protect: append([]string{s.Project}, ownFiles(s)...), Hide: hidden(s), Bounds: boundsOf(s)}, e.Argv)
	return err
}

// CanTry reports whether this machine has a sandbox in which programs can be tried: see
// [Options].Trial.
func (a *Assembler) CanTry(ctx context.Context, s *config.Loaded) bool {
	return a.sandbox(ctx, s) != nil
}

// installPlaces installs the contents of the places into an agent. Until stop is called, it
// also loads files that change, and reports the result.
func (a *Assembler) installPlaces(ctx context.Context, p *Places, agent *belay.Agent, skills *skill.Catalog, subagents *subagent.Extension, declared *declaredAgents) (stop func() error, err error) {
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
	for _, place := range p.All {
		into := &space.Target{Hooks: agent.Hooks(), Skills: skills}
		if !ofOperator(place) { // useMCP already started the servers of the operator
			into.Servers = declared.servers
		}
		if place.Origin.Kind == hook.OriginSpace { // the agents of the user and the project are already known
			into.Subagents = subagents
			into.Build = func(_ context.Context, task *subagent.Task, d *subagent.Declaration, own belay.Extension) (*belay.Agent, error) {
				return declared.build(d, task.Store, own)
			}
		}
		lease, err := p.Host.Install(ctx, place, into)
		if err != nil {
			return nil, errors.Join(mistake("%w", err), stop())
		}
		leases = append(leases, lease)
		a.ReportPlace(place, lease.Notes())
		a.ReportSkillProblems(declared.settings, place.SkillProblems())
		changes := &reloads{from: a, settings: declared.settings, lease: lease, notes: lease.Notes()}
		watching.Go(func() { lease.Watch(watch, changes.told) })
	}
	watching.Go(func() { a.watchSkills(watch, declared.settings, skills, known) })
	return stop, nil
}

// ReportPlace reports the hooks and servers of a place that do not run or are limited. If
// the hooks of another agent are not trusted, one line is enough.
func (a *Assembler) ReportPlace(place *space.Space, notes []space.Note) {
	if place.Foreign() == nil {
		a.ReportNotes(notes)
		return
	}
	count := make(map[string]int)
	for _, n := range notes {
		if !n.Closed && !n.Limited {
			count[n.Reason]++
		}
	}
	told := make(map[string]bool)
	for _, n := range notes {
		switch {
		case n.Closed || n.Limited || count[n.Reason] < 2:
			a.remark(noteLine(n))
		case !told[n.Reason]:
			told[n.Reason] = true
			kind := "hook or server"
			if len(place.Servers) == 0 {
				kind = "hook"
			} else if len(place.Hooks) == 0 {
				kind = "MCP server"
			}
			a.remark(visible.All(fmt.Sprintf("%s of %s do not run: %s", visible.Counted(count[n.Reason], kind), place.Origin.Name, n.Reason)))
		}
	}
}

// ReportNotes reports the hooks and servers that do not run or are limited.
func (a *Assembler) ReportNotes(notes []space.Note) {
	for _, n := range notes {
		a.remark(noteLine(n))
	}
}

// noteLine returns a line that says that a hook or a server does not run or is limited,
// and why.
func noteLine(n space.Note) string {
	what := "does not run"
	switch {
	case n.Closed:
		what = "is closed (it denies)"
	case n.Limited:
		what = "is limited"
	}
	kind := "hook"
	if n.Phase == "" {
		kind = "mcp server"
	}
	return visible.All(fmt.Sprintf("%s %s %s: %s", kind, n.ID, what, n.Reason))
}
