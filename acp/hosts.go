package acp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/store/memstore"
)

// Hosts returns a source that makes a host for each session, as the command line does for each
// command. opts are options for all hosts, and may be nil. Dir is the directory of sessions
// that are listed without a directory. Approver, Servers and Store are not used: the sessions
// of one project share a store. The directories that an editor adds become Roots.
func Hosts(opts *host.Options) Source { //nolint:ireturn // a source is used through the interface
	h := &hosts{stores: make(map[string]*sharedStore)}
	if opts != nil {
		h.opts = *opts
	}
	h.opts.Approver, h.opts.Servers, h.opts.Store = nil, nil, nil
	return h
}

type hosts struct {
	opts host.Options

	mu     sync.Mutex
	stores map[string]*sharedStore
}

// sharedStore is a store that several sessions use.
type sharedStore struct {
	assembly.Store

	users int
}

// settings loads the settings of a directory.
func (h *hosts) settings(dir string) (*config.Loaded, error) {
	if dir == "" {
		dir = h.opts.Dir
	}
	settings, err := config.Load(&config.Options{Dir: dir, UserDir: h.opts.UserDir, Environ: h.opts.Environ})
	if err != nil {
		return nil, err
	}
	for _, s := range h.opts.Settings {
		if err := settings.Overrule(s.Path, s.From, s.Value); err != nil {
			return nil, err
		}
	}
	return settings, nil
}

// Ready returns why there is no model, or nil.
func (h *hosts) Ready(context.Context) error {
	settings, err := h.settings("")
	if err != nil {
		return nil //nolint:nilerr // opening a session reports mistakes in settings
	}
	return h.noModel(settings)
}

// noModel returns a NoModelError if the settings lead to no model.
func (h *hosts) noModel(settings *config.Loaded) error {
	if h.opts.Model != nil {
		return nil
	}
	if _, err := assembly.OpenModel(settings); err != nil {
		return &NoModelError{err}
	}
	return nil
}

// Sessions opens the store of a project. It makes no store: a project without one has no
// sessions.
func (h *hosts) Sessions(ctx context.Context, dir string) (belay.ListStore, string, func(), error) { //nolint:ireturn // the interface asks for it
	settings, err := h.settings(dir)
	if err != nil {
		return nil, "", nil, err
	}
	if _, err := os.Stat(settings.Store); !config.IsDSN(settings.Store) && errors.Is(err, fs.ErrNotExist) {
		return memstore.New(nil), settings.Project, func() {}, nil
	}
	store, done, err := h.open(ctx, settings)
	if err != nil {
		return nil, "", nil, err
	}
	return store, settings.Project, func() { _ = done() }, nil // ignore errors: the store was only read
}

// open opens the store of the settings, or shares the one that is open.
func (h *hosts) open(ctx context.Context, settings *config.Loaded) (assembly.Store, func() error, error) { //nolint:ireturn // which store it is, the DSN says
	h.mu.Lock()
	defer h.mu.Unlock()
	name := settings.Store
	shared := h.stores[name]
	if shared == nil {
		store, err := assembly.New(nil).OpenStore(context.WithoutCancel(ctx), settings)
		if err != nil {
			return nil, nil, err
		}
		shared = &sharedStore{Store: store}
		h.stores[name] = shared
	}
	shared.users++
	return shared.Store, sync.OnceValue(func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if shared.users--; shared.users > 0 {
			return nil
		}
		delete(h.stores, name)
		return shared.Close()
	}), nil
}

// Open makes the host of a session.
func (h *hosts) Open(ctx context.Context, p *Project) (_ *Workspace, err error) {
	settings, err := h.settings(p.Dir)
	if err != nil {
		return nil, err
	}
	if err := h.noModel(settings); err != nil {
		return nil, err
	}
	store, done, err := h.open(ctx, settings)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, done())
		}
	}()
	opts := h.opts
	opts.Dir, opts.Servers, opts.Store = p.Dir, p.Servers, store
	opts.Roots = append(slices.Clone(opts.Roots), p.Dirs...)
	opts.Notify = func(n host.Notice) {
		if h.opts.Notify != nil {
			h.opts.Notify(n)
		}
		if n.Warning {
			p.Notify(n.String())
		}
	}
	made, err := host.Open(ctx, &opts)
	if err != nil {
		return nil, err
	}
	w := &hosted{hosts: h, host: made, store: store, name: host.Main, session: p.Session}
	space, err := w.workspace(ctx, p, settings.Project)
	if err != nil {
		return nil, errors.Join(err, made.Close())
	}
	space.Close = func() error { return errors.Join(made.Close(), done()) }
	return space, nil
}

// hosted is the workspace of a session with a host.
type hosted struct {
	hosts   *hosts
	host    *host.Host
	store   assembly.Store
	name    string // of the agent
	session string
}

// workspace makes the agent of the session: the declared agent of a stored session, or the
// agent of the settings.
func (w *hosted) workspace(ctx context.Context, p *Project, project string) (*Workspace, error) {
	if p.Stored {
		info, _, err := inspect.FindSession(ctx, w.store, p.Session)
		if err != nil {
			return nil, err
		}
		if info.State.Agent != "" {
			w.name = info.State.Agent
		}
	}
	agent, err := w.host.Agent(ctx, w.name)
	if err != nil {
		return nil, err
	}
	space := &Workspace{
		Agent: agent, Store: w.store, Dir: project,
		Models: w.models, SetModel: w.setModel, Advise: w.advise, ReadFile: w.readFile, Window: w.window(),
	}
	space.Modes, space.Mode, space.SetMode = modes(), w.mode, w.setMode
	return space, nil
}

// modes are the permission modes that a user can choose in an editor. Unattended is for turns
// that nobody watches.
func modes() []Choice {
	var all []Choice
	for _, m := range permit.Modes() {
		if m.Name != permit.Unattended.Name {
			all = append(all, Choice{ID: m.Name, Name: m.Name, About: aboutMode(m)})
		}
	}
	return all
}

// aboutMode says which calls run in a mode without approval.
func aboutMode(m permit.Mode) string {
	switch {
	case m.Name == "plan":
		return "reads and makes a plan, which you approve before anything changes"
	case m.Auto == m.Ask:
		return fmt.Sprintf("runs calls up to zone %d (%s) and denies all others", m.Auto, m.Auto)
	default:
		return fmt.Sprintf("runs calls up to zone %d (%s) and asks about others", m.Auto, m.Auto)
	}
}

// mode returns the mode of the session.
func (w *hosted) mode() string {
	mode, err := w.host.ModeOf(w.name, w.session)
	if err != nil {
		return "" // never happens: the agent was made
	}
	return mode
}

func (w *hosted) setMode(mode string) error { return w.host.SetMode(w.name, w.session, mode) }

// window returns the size of the model's context.
func (w *hosted) window() int {
	model := w.hosts.opts.Model
	if model == nil {
		settings, err := w.host.Project().Settings()
		if err != nil {
			return 0
		}
		if model, err = assembly.OpenModel(settings); err != nil {
			return 0
		}
	}
	if info, ok := model.(belay.InfoModel); ok {
		return info.Info().Window
	}
	return 0
}

// models lists the models of providers that are set up.
func (w *hosted) models(ctx context.Context) ([]Choice, string, error) {
	if w.hosts.opts.Model != nil {
		return nil, "", nil
	}
	settings, err := w.host.Project().Settings()
	if err != nil {
		return nil, "", err
	}
	all, err := w.host.Project().Models()
	if err != nil {
		return nil, "", err
	}
	var choices []Choice
	for _, p := range all.Providers {
		if !p.Set || p.Status != inspect.Found {
			continue
		}
		for _, m := range p.Models {
			choices = append(choices, Choice{ID: m.Name, Name: m.Name})
		}
	}
	current := assembly.FullModelName(settings)
	if info, found, err := inspect.FindSession(ctx, w.store, w.session); err == nil && found && info.State.Model != "" {
		current = info.State.Model
	}
	return choices, current, nil
}

// setModel switches the model of the session.
func (w *hosted) setModel(ctx context.Context, session *belay.Session, name string) error {
	settings, err := w.host.Project().Settings()
	if err != nil {
		return err
	}
	choices, current, err := w.models(ctx)
	if err != nil {
		return err
	}
	if name != current && !slices.ContainsFunc(choices, func(c Choice) bool { return c.ID == name }) {
		return invalid("there is no model %q among those that are set up: `belay models` lists them", name)
	}
	model, err := assembly.FindModel(settings, name)
	if err != nil {
		return err
	}
	return session.SetModel(ctx, model)
}

// advise describes a call as the console does.
func (w *hosted) advise(ctx context.Context, q *belay.Question) (Advice, error) {
	described, err := w.host.Project().Approval(ctx, w.store, &q.Approval)
	if err != nil || described.Advice == nil {
		return Advice{}, err
	}
	return Advice{Why: described.Advice.Why, Run: described.Advice.Run, Pattern: described.Advice.Pattern}, nil
}

// longestShown is the longest file that is shown in a diff, in bytes.
const longestShown = 1 << 20

// readFile reads a file of the project for a diff, if the agent may read it.
func (w *hosted) readFile(ctx context.Context, path string) (string, bool) {
	settings, err := w.host.Project().Settings()
	if err != nil {
		return "", false
	}
	rel, err := filepath.Rel(settings.Project, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	if may, err := w.host.Project().MayRead(ctx, path); err != nil || !may {
		return "", false
	}
	root, err := os.OpenRoot(settings.Project)
	if err != nil {
		return "", false
	}
	defer func() { _ = root.Close() }() // ignore errors: the file was only read
	info, err := root.Stat(rel)
	if err != nil || !info.Mode().IsRegular() || info.Size() > longestShown {
		return "", false
	}
	data, err := root.ReadFile(rel)
	return string(data), err == nil && utf8.Valid(data)
}
