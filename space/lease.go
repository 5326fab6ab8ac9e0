package space

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
)

// Lease is an installed directory. Use it to reload and to unload the directory.
type Lease struct {
	host *Host
	into Target

	change sync.Mutex    // locked during Reload and Unload
	over   chan struct{} // closed when Unload begins

	mu       sync.Mutex
	now      *installed
	ending   bool // Unload has begun
	unloaded bool
	leaving  sync.WaitGroup // replaced versions that turns still use
	leftover []error        // errors of replaced versions
}

// installed is one version of a directory, installed in an agent.
type installed struct {
	plan   *plan
	check  *seal
	set    *declare.Set
	hooks  *hook.Lease
	skills *belay.Lease
	agents *belay.Lease
	// servers are the installed MCP servers.
	servers *belay.Lease
}

// Install installs all of a directory or nothing. It starts the workers of trusted hooks
// before anything becomes visible. If a worker does not start, its gates deny and its other
// hooks do not run. [Lease.Notes] lists the hooks that do not run.
func (h *Host) Install(ctx context.Context, s *Space, into *Target) (*Lease, error) {
	if into == nil || into.Hooks == nil {
		return nil, errors.New("install a space: Target.Hooks is nil: pass the agent's hook runtime")
	}
	if into.Subagents != nil && into.Build == nil {
		return nil, errors.New("install a space: Target.Build is nil: set it, because Target.Subagents is set")
	}
	l := &Lease{host: h, into: *into, over: make(chan struct{})}
	next, err := l.prepare(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := h.enter(s, next.plan); err != nil {
		return nil, errors.Join(err, next.set.Close())
	}
	if err := l.bring(ctx, next, nil); err != nil {
		h.leave(s)
		return nil, errors.Join(err, next.set.Close())
	}
	l.now = next
	return l, nil
}

// enter records that a directory is installed, and its grants. Grants belong to an origin.
// So two spaces with the same id cannot be installed in one host, and two projects cannot
// either.
func (h *Host) enter(s *Space, p *plan) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := origin{s.Origin.Kind, s.Origin.Name}
	switch other := h.dirs[o]; {
	case s.Origin.Kind == hook.OriginOperator || s.Origin.Kind == hook.OriginHost || other == "" || other == s.Dir:
	case s.Origin.Kind == hook.OriginSpace:
		return fmt.Errorf("install a space: %s and %s both have the id %q: change the id in one manifest", other, s.Dir, s.Manifest.ID)
	default:
		return fmt.Errorf("install a project: the project %s is already installed in this host: use another host for %s", other, s.Dir)
	}
	h.dirs[o] = s.Dir
	h.count[o]++
	h.grants[o] = p.standing.capabilities()
	return nil
}

func (h *Host) leave(s *Space) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := origin{s.Origin.Kind, s.Origin.Name}
	if h.count[o]--; h.count[o] <= 0 {
		delete(h.count, o)
		delete(h.dirs, o)
		delete(h.grants, o)
	}
}

// prepare makes the next version, but does not make it visible. It checks the hooks and
// starts the workers of trusted hooks. If a worker does not start, Install continues without
// it, but Reload fails and the installed version stays in use.
func (l *Lease) prepare(ctx context.Context, s *Space) (*installed, error) {
	p, err := l.host.plan(s)
	if err != nil {
		return nil, fmt.Errorf("install %s: %w", s.Label(), err)
	}
	next := &installed{plan: p, check: &seal{cover: s.coverage(), last: s.read}}
	if next.set, err = l.host.set(s, p.hooks, next.check, s.Hash); err != nil {
		return nil, fmt.Errorf("install %s: %w", s.Label(), err)
	}
	if err := l.tryOwn(next); err != nil {
		return nil, errors.Join(fmt.Errorf("install %s: %w", s.Label(), err), next.set.Close())
	}
	if p.standing.Trusted && !l.into.Idle && !l.host.opts.NoCommands && !l.host.opts.Disable {
		if err := next.set.Start(ctx); err != nil {
			if l.now != nil || ctx.Err() != nil {
				return nil, errors.Join(fmt.Errorf("install %s: %w", s.Label(), err), next.set.Close())
			}
			return l.without(next, err)
		}
	}
	return next, nil
}

// without prepares a directory again, without the workers that did not start. The other
// workers start at their first call.
func (l *Lease) without(next *installed, failed error) (*installed, error) {
	next.plan.unstarted(failed)
	if err := next.set.Close(); err != nil {
		return nil, err
	}
	var err error
	if next.set, err = l.host.set(next.plan.space, next.plan.hooks, next.check, next.plan.space.Hash); err != nil {
		return nil, fmt.Errorf("install %s: %w", next.plan.space.Label(), err)
	}
	return next, nil
}

// tryOwn checks the hooks that agents declare: it makes them and closes them.
func (l *Lease) tryOwn(next *installed) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(next.plan.own)) {
		set, err := l.host.set(next.plan.space, next.plan.own[name], next.check, next.plan.space.Hash)
		if err != nil {
			problems = append(problems, fmt.Errorf("agent %q: %w", name, err))
			continue
		}
		problems = append(problems, set.Close())
	}
	return errors.Join(problems...)
}

// bring makes the prepared version visible and removes the old one. If it fails, it
// restores the old version.
func (l *Lease) bring(ctx context.Context, next, old *installed) (err error) {
	s := next.plan.space
	var undo []func()
	defer func() {
		if err != nil {
			for _, f := range slices.Backward(undo) {
				f()
			}
			err = fmt.Errorf("install %s: %w", s.Label(), err)
		}
	}()
	if l.into.Subagents != nil {
		if old != nil && old.agents != nil {
			_ = old.agents.Close()                                                                    // Close never fails here
			undo = append(undo, func() { old.agents, _ = l.into.Subagents.Add(l.subagents(old)...) }) // no error: these agents were valid before
		}
		if made := l.subagents(next); len(made) > 0 {
			if next.agents, err = l.into.Subagents.Add(made...); err != nil {
				return err
			}
			undo = append(undo, func() { _ = next.agents.Close() })
		}
	}
	if l.into.Servers != nil && !l.into.Idle {
		var before *belay.Lease
		if old != nil {
			before = old.servers
		}
		if next.servers, err = l.into.Servers.Replace(ctx, before, l.host.servers(next.plan, next.check)...); err != nil {
			return err
		}
		undo = append(undo, func() {
			if old == nil {
				_ = next.servers.Close() // Close never fails here
				return
			}
			old.servers, _ = l.into.Servers.Replace(ctx, next.servers, l.host.servers(old.plan, old.check)...) // no error: these servers were valid before
		})
	}
	if old != nil {
		next.hooks, err = old.hooks.Replace(next.set.Subscriptions()...)
	} else {
		next.hooks, err = l.into.Hooks.Install(next.set.Subscriptions()...)
	}
	if err != nil {
		return err
	}
	if source := s.Skills(); source != nil && l.into.Skills != nil && s.Origin.Kind == hook.OriginSpace {
		next.skills = l.into.Skills.AddSource(ctx, source)
	}
	if old != nil && old.skills != nil {
		_ = old.skills.Close() // Close never fails here
	}
	return nil
}

func (l *Lease) subagents(in *installed) []subagent.Subagent {
	var all []subagent.Subagent
	for _, d := range in.plan.space.Agents {
		all = append(all, subagent.Subagent{
			Name: d.Name, Description: d.Description,
			Factory: d.Factory(func(ctx context.Context, task *subagent.Task, d *subagent.Declaration) (*belay.Agent, error) {
				own, err := l.host.agentHooks(in.plan, d.Name, in.check)
				if err != nil {
					return nil, err
				}
				agent, err := l.into.Build(ctx, task, d, own)
				if err != nil {
					return nil, errors.Join(err, own.Close(ctx))
				}
				return agent, nil
			}),
		})
	}
	return all
}

// AgentHooks returns an extension with the hooks that an agent of the directory declares.
// Add it to the agent. Closing the agent closes the extension. If one of the hooks has a
// mistake, AgentHooks returns an error, because the agent must not run without the hook.
func (h *Host) AgentHooks(s *Space, agent string) (belay.CloseExtension, []Note, error) { //nolint:ireturn // callers need the interface
	p, err := h.plan(s)
	if err != nil {
		return nil, nil, err
	}
	own, err := h.agentHooks(p, agent, &seal{cover: s.coverage(), last: s.read})
	if err != nil {
		return nil, nil, err
	}
	if err := h.enter(s, p); err != nil { // no other directory must get these grants
		return nil, nil, errors.Join(fmt.Errorf("the hooks of agent %q: %w", agent, err), own.set.Close())
	}
	own.leave = sync.OnceFunc(func() { h.leave(s) })
	return own, p.notes, nil
}

func (h *Host) agentHooks(p *plan, agent string, check *seal) (*ownHooks, error) {
	if err := p.space.broken[agent]; err != nil {
		return nil, fmt.Errorf("the hooks of agent %q: %w", agent, err)
	}
	set, err := h.set(p.space, p.own[agent], check, p.space.Hash)
	if err != nil {
		return nil, fmt.Errorf("the hooks of agent %q: %w", agent, err)
	}
	return &ownHooks{agent, set, func() {}}, nil
}

// ownHooks is an extension with the hooks that an agent declares.
type ownHooks struct {
	agent string
	set   *declare.Set
	leave func() // ends what enter has begun
}

// Name returns the name that errors use.
func (o *ownHooks) Name() string { return "hooks of " + o.agent }

// Hooks returns the subscriptions.
func (o *ownHooks) Hooks() []hook.Subscription { return o.set.Subscriptions() }

// Close stops the workers of the hooks.
func (o *ownHooks) Close(context.Context) error {
	err := o.set.Close()
	o.leave()
	return err
}

// prefixed is a skill source that adds the id of the space to skill ids.
type prefixed struct {
	skill.Source
	space string
}

// Read reads a skill by its id, with or without the prefix.
func (p prefixed) Read(ctx context.Context, id, section string) (skill.Reading, error) {
	own, _ := strings.CutPrefix(id, p.space+"/")
	reading, err := p.Source.Read(ctx, own, section)
	if errors.Is(err, skill.ErrNotFound) && own != id {
		return p.Source.Read(ctx, id, section)
	}
	return reading, err
}

// List lists the skills with prefixed ids.
func (p prefixed) List(ctx context.Context) ([]*skill.Skill, error) {
	given, err := p.Source.List(ctx)
	all := make([]*skill.Skill, 0, len(given))
	for _, s := range given {
		if s == nil {
			continue
		}
		c := *s
		if id := c.ID; id == "" {
			c.ID = p.space + "/" + c.Name
		} else if !strings.HasPrefix(id, p.space+"/") {
			c.ID = p.space + "/" + id
		}
		all = append(all, &c)
	}
	return all, err
}

// Space returns the installed space.
func (l *Lease) Space() *Space {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.plan.space
}

// Notes returns why hooks and servers do not run, or are limited.
func (l *Lease) Notes() []Note {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.now.plan.notes)
}

// ErrUnloaded means that the lease was unloaded.
var ErrUnloaded = errors.New("the space was unloaded")

// Reload reads the directory again, checks it, starts its workers, and then replaces the
// installed version. If Reload fails, the installed version stays in use. Running turns
// keep the old version until they end. Reload does not wait for them.
func (l *Lease) Reload(ctx context.Context) error {
	l.change.Lock()
	defer l.change.Unlock()
	if l.ending {
		return ErrUnloaded
	}
	old := l.now
	s, err := old.plan.space.again()
	if err != nil {
		return fmt.Errorf("reload %s: the loaded version stays: %w", old.plan.space.Label(), err)
	}
	if s.Manifest.ID != old.plan.space.Manifest.ID {
		return fmt.Errorf("reload %s: the loaded version stays in use: the id in the manifest is now %q: unload the space, and load it again", old.plan.space.Label(), s.Manifest.ID)
	}
	next, err := l.prepare(ctx, s)
	if err != nil {
		return fmt.Errorf("reload %s: the loaded version stays: %w", old.plan.space.Label(), err)
	}
	if gone := missing(old.plan.space.Gates(), s.Gates()); len(gone) > 0 && !next.plan.standing.Trusted {
		return errors.Join(fmt.Errorf("reload %s: the loaded version stays in use: the gate %s was removed, and this change is not trusted: run `%s` to accept it", s.Label(), strings.Join(gone, ", "), s.trustCommand()), next.set.Close())
	}
	before := l.host.grant(s, next.plan.standing.capabilities())
	if err := l.bring(ctx, next, old); err != nil {
		l.host.grant(s, before)
		return errors.Join(fmt.Errorf("reload %s: the loaded version stays: %w", old.plan.space.Label(), err), next.set.Close())
	}
	l.mu.Lock()
	l.now = next
	l.mu.Unlock()
	l.leaving.Go(func() { // ends when no turn uses the old version any more
		err := errors.Join(old.hooks.Drain(context.WithoutCancel(ctx)), old.set.Close())
		l.mu.Lock()
		defer l.mu.Unlock()
		l.leftover = append(l.leftover, err)
	})
	return nil
}

func (h *Host) grant(s *Space, c hook.Capability) (before hook.Capability) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := origin{s.Origin.Kind, s.Origin.Name}
	before, h.grants[o] = h.grants[o], c
	return before
}

// Changed reports whether the files or the permissions of the directory differ from the
// installed version. It returns true if they cannot be read.
func (l *Lease) Changed() bool {
	l.mu.Lock()
	now := l.now
	l.mu.Unlock()
	s := now.plan.space
	hash, err := now.check.now()
	if err != nil || hash != s.Hash {
		return true
	}
	st, err := l.host.Standing(s)
	return err != nil || st.Trusted != now.plan.standing.Trusted || !slices.Equal(st.grants(), now.plan.standing.grants())
}

// looks returns a text that identifies the current files and permissions of the directory.
func (l *Lease) looks() string {
	l.mu.Lock()
	now := l.now
	l.mu.Unlock()
	hash, err := now.check.now()
	if err != nil {
		return err.Error()
	}
	seen := *now.plan.space
	seen.Hash = hash
	st, err := l.host.Standing(&seen)
	return fmt.Sprint(hash, err, st.Trusted, st.grants())
}

// Watch reloads the directory when its files have changed. It waits until the files did not
// change during one interval. Watch calls told after each reload, with the reload's error
// or nil. After a failed reload it waits for the next change. If the files return to the
// installed version, Watch does not reload, and calls told with nil. Watch ends when ctx
// ends or the lease is unloaded.
func (l *Lease) Watch(ctx context.Context, told func(error)) {
	tick := time.NewTicker(l.host.opts.Every)
	defer tick.Stop()
	var failed, before string
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.over:
			return
		case <-tick.C:
		}
		if !l.Changed() {
			if failed != "" {
				failed = ""
				told(nil)
			}
			continue
		}
		now := l.looks()
		if now == failed || now != before { // the files may still be changing
			before = now
			continue
		}
		err := l.Reload(ctx)
		if errors.Is(err, ErrUnloaded) || ctx.Err() != nil {
			return
		}
		if failed = ""; err != nil {
			failed = now
		}
		told(err)
	}
}

// Unload removes everything and waits until no turn uses it. Then no hook, skill, agent,
// server, worker or process of the directory is left. If ctx ends first, new turns no
// longer see the directory, but processes may be left: call Unload again.
func (l *Lease) Unload(ctx context.Context) error {
	l.change.Lock()
	defer l.change.Unlock()
	if !l.ending {
		l.ending = true
		close(l.over)
	}
	now := l.now
	if now.agents != nil {
		_ = now.agents.Close() // Close never fails here
	}
	if now.skills != nil {
		_ = now.skills.Close() // Close never fails here
	}
	if now.servers != nil {
		_ = now.servers.Close() // Close never fails here
	}
	if err := now.hooks.Drain(ctx); err != nil {
		return fmt.Errorf("unload %s: %w", now.plan.space.Label(), err)
	}
	if l.into.Servers != nil {
		if err := l.into.Servers.Drain(ctx); err != nil {
			return fmt.Errorf("unload %s: %w", now.plan.space.Label(), err)
		}
	}
	gone := make(chan struct{})
	go func() { // ends when no turn uses a replaced version
		l.leaving.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
		return fmt.Errorf("unload %s: running turns still use an older version: call Unload again later: %w", now.plan.space.Label(), context.Cause(ctx))
	}
	err := now.set.Close()
	if !l.unloaded {
		l.unloaded = true
		l.host.leave(now.plan.space)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err = errors.Join(append(l.leftover, err)...); err != nil {
		return fmt.Errorf("unload %s: %w", now.plan.space.Label(), err)
	}
	return nil
}
