package space

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
)

// Options are the operator's word on what directories may do. A nil *Options is valid.
type Options struct {
	// Trust is the record of trusted directories. Defaults to none: nothing of a project
	// or a space runs a program.
	Trust *Trust
	// Disable keeps hooks from running: all of those that files declare. Gates that ask
	// a person stay.
	Disable bool
	// DisableIDs does so for hooks by their ids, as listings have them.
	DisableIDs []string
	// NoCommands keeps commands and workers from running, whoever declares them. Gates
	// are closed.
	NoCommands bool
	// Declare are the options of declared hooks: the project, the environment, what is
	// secret, where webhooks may go, the logger. Its Prefix and Trust are the host's;
	// Confine is asked about what projects and spaces run, and told by [Confined] what
	// was granted.
	Declare declare.Options
	// Every is how often [Lease.Watch] looks for changes. Defaults to a second.
	Every time.Duration
}

// Host installs directories into agents. Make one with [NewHost].
type Host struct {
	opts Options

	mu     sync.Mutex
	grants map[origin]hook.Capability
	ids    map[string]string // of spaces: where each is from
	count  map[string]int
}

type origin struct {
	kind hook.OriginKind
	name string
}

// NewHost makes a host.
func NewHost(opts *Options) *Host {
	h := &Host{grants: make(map[origin]hook.Capability), ids: make(map[string]string), count: make(map[string]int)}
	if opts != nil {
		h.opts = *opts
	}
	if h.opts.Every <= 0 {
		h.opts.Every = time.Second
	}
	return h
}

// Grants tells what an origin may contribute: put it into [hook.RuntimeOptions] of the
// agents that the host installs into.
func (h *Host) Grants(o hook.Origin) hook.Capability {
	h.mu.Lock()
	defer h.mu.Unlock()
	return hook.DefaultGrants(o) | h.grants[origin{o.Kind, o.Name}]
}

// Target is what a space is installed into.
type Target struct {
	// Hooks is the hook runtime of an agent.
	Hooks *hook.Runtime
	// Skills is the agent's catalog. Defaults to none: skills are left out.
	Skills *skill.Catalog
	// Subagents is the agent's extension. Defaults to none: agents are left out.
	Subagents *subagent.Extension
	// Build makes an agent of a declaration, with the extension that has its own hooks.
	// It is required where there are Subagents.
	Build func(ctx context.Context, task *subagent.Task, d *subagent.Declaration, own belay.Extension) (*belay.Agent, error)
}

// Note says that a hook does not run, or not all of it, and why.
type Note struct {
	// ID is that of the hook.
	ID string `json:"id"`
	// File and Line are where it stands.
	File string `json:"file"`
	Line int    `json:"line"`
	// Closed says that it is a gate, which denies.
	Closed bool `json:"closed,omitempty"`
	// Reason says why, and what to do.
	Reason string `json:"reason"`
}

// Standing is what a directory may do at present.
type Standing struct {
	// Trusted says that its programs may run. What the operator has is trusted as it is.
	Trusted bool
	// Record is what was trusted, if anything was.
	Record *Record
	// Reason says why it is not trusted, and what to do.
	Reason string
}

// Standing tells what a directory may do at present.
func (h *Host) Standing(s *Space) (Standing, error) {
	if s.Origin.Kind == hook.OriginHost || s.Origin.Kind == hook.OriginOperator {
		return Standing{Trusted: true}, nil
	}
	command := "belay trust"
	if s.Origin.Kind == hook.OriginSpace {
		command += " " + s.Dir
	}
	if h.opts.Trust == nil {
		return Standing{Reason: "nothing of a project or a space is trusted here"}, nil
	}
	r, err := h.opts.Trust.Lookup(s.Dir)
	if err != nil {
		return Standing{Reason: err.Error()}, err
	}
	st := Standing{Record: r}
	switch {
	case !r.holds(s):
		st.Reason = fmt.Sprintf("its files are not trusted yet: look at them, then run `%s`", command)
	case r.Hash != s.Hash:
		st.Reason = fmt.Sprintf("its files have changed since they were trusted: `%s --diff` shows how, and `%s` trusts them again", command, command)
	default:
		st.Trusted = true
	}
	return st, nil
}

// may reports whether the standing has a grant.
func (st *Standing) may(kind hook.OriginKind, grant string) bool {
	if kind == hook.OriginHost || kind == hook.OriginOperator {
		return true
	}
	return st.Trusted && st.Record != nil && slices.Contains(st.Record.Grants, grant)
}

// capabilities are those that were granted.
func (st *Standing) capabilities() hook.Capability {
	if !st.Trusted || st.Record == nil {
		return 0
	}
	var all hook.Capability
	for _, name := range st.Record.Grants {
		if c, err := hook.ParseCapabilities(name); err == nil {
			all |= c
		}
	}
	return all
}

// plan is what would become of the hooks of a space.
type plan struct {
	space    *Space
	standing Standing
	hooks    []*declare.Declaration            // of the space
	own      map[string][]*declare.Declaration // of its agents
	notes    []Note
}

// plan decides which hooks of a space run.
func (h *Host) plan(s *Space) (*plan, error) {
	standing, err := h.Standing(s)
	if err != nil {
		return nil, err
	}
	p := &plan{space: s, standing: standing, own: make(map[string][]*declare.Declaration)}
	for _, d := range s.Hooks {
		p.hooks = append(p.hooks, h.judge(p, d))
	}
	for name, hooks := range s.own {
		for _, d := range hooks {
			p.own[name] = append(p.own[name], h.judge(p, d))
		}
	}
	return p, nil
}

// judge decides about a hook. It returns the declaration, or a changed copy.
func (h *Host) judge(p *plan, d *declare.Declaration) *declare.Declaration {
	kind, id := p.space.Origin.Kind, label(d, p.space.Prefix())
	note := func(closed bool, format string, args ...any) {
		p.notes = append(p.notes, Note{ID: id, File: d.File, Line: d.Line, Closed: closed, Reason: fmt.Sprintf(format, args...)})
	}
	off := func() *declare.Declaration {
		c := *d
		c.Options.Disabled = true
		return &c
	}
	if d.Options.Disabled {
		return d
	}
	asks := d.Action != nil && d.Action.Name == "approve"
	switch {
	case (h.opts.Disable || slices.Contains(h.opts.DisableIDs, id)) && !asks:
		note(false, "it is switched off by the operator")
		return off()
	case slices.Contains(h.opts.DisableIDs, id):
		note(false, "it asks a person, so it stays though it is switched off")
	}
	gate := isGate(d)
	runs := d.Kind == hook.HandlerCommand || d.Kind == hook.HandlerWorker
	switch {
	case runs && h.opts.NoCommands:
		note(gate, "%s", noCommands)
	case runs && !p.standing.Trusted:
		note(gate, "%s", p.standing.Reason)
	case d.Kind == hook.HandlerWebhook && !p.standing.may(kind, GrantWebhook):
		note(gate, "%s", h.missing(p, GrantWebhook))
	default:
		return h.limit(p, d, note)
	}
	if !gate {
		return off()
	}
	return h.limit(p, d, func(bool, string, ...any) {}) // it stays, and is closed
}

const noCommands = "the operator has switched commands off"

// missing says that a grant is missing, and how to give it.
func (h *Host) missing(p *plan, grant string) string {
	command := "belay trust"
	if p.space.Origin.Kind == hook.OriginSpace {
		command += " " + p.space.Dir
	}
	return fmt.Sprintf("it needs the grant %s: look at it, then run `%s --grant %s`", grant, command, grant)
}

// limit takes from a hook what was not granted: an answer beyond that fails, and a gate
// whose answer fails is closed.
func (h *Host) limit(p *plan, d *declare.Declaration, note func(bool, string, ...any)) *declare.Declaration {
	have := hook.DefaultGrants(p.space.Origin) | p.standing.capabilities()
	extra := d.Options.Capabilities &^ have &^ hook.NoCapability
	if extra == 0 {
		return d
	}
	c := *d
	if c.Options.Capabilities &= have; c.Options.Capabilities == 0 {
		c.Options.Capabilities = hook.NoCapability
	}
	for _, name := range extra.Names() {
		note(isGate(d), "%s", h.missing(p, name))
	}
	if !isGate(d) {
		c.Options.Disabled = true
	}
	return &c
}

// isGate reports whether a hook stands in the way of something, and is closed when it
// fails.
func isGate(d *declare.Declaration) bool {
	wire, err := belay.Wire(d.Phase)
	return err == nil && wire.Kind() == hook.Gate && wire.DefaultFailure() == hook.Closed
}

// set makes subscriptions of hooks of a space.
func (h *Host) set(s *Space, hooks []*declare.Declaration, check *seal, hash string) (*declare.Set, error) {
	opts := h.opts.Declare
	opts.Prefix = s.Prefix()
	opts.Trust = func(_ context.Context, d *declare.Declaration) error { return h.trusted(s, d, check, hash) }
	if confine := opts.Confine; confine != nil {
		if s.Origin.Kind == hook.OriginOperator || s.Origin.Kind == hook.OriginHost {
			opts.Confine = nil
		} else {
			opts.Confine = func(ctx context.Context, d *declare.Declaration, run *declare.Execution) error {
				st, err := h.Standing(s)
				if err != nil {
					return err
				}
				var granted []string
				if st.Record != nil && st.Trusted {
					granted = st.Record.Grants
				}
				return confine(context.WithValue(ctx, confinedKey{}, granted), d, run)
			}
		}
	}
	return declare.New(hooks, s.Origin, &opts)
}

type confinedKey struct{}

// Confined tells a Confine function what was granted to the directory of the hook that
// it is asked about.
func Confined(ctx context.Context) (grants []string) {
	grants, _ = ctx.Value(confinedKey{}).([]string)
	return grants
}

// trusted says why a program of a hook may not run, each time that it would. What was
// changed since then is not trusted, even if nobody has noticed yet.
func (h *Host) trusted(s *Space, d *declare.Declaration, check *seal, hash string) error {
	if h.opts.NoCommands && d.Kind != hook.HandlerWebhook {
		return errors.New(noCommands)
	}
	if s.Origin.Kind == hook.OriginHost || s.Origin.Kind == hook.OriginOperator {
		return nil
	}
	now, err := check.now()
	if err != nil {
		return fmt.Errorf("the files of %s cannot be read, so nobody knows what they say: %s", s.Label(), reason(err))
	}
	seen := *s
	seen.Hash = now
	st, err := h.Standing(&seen)
	switch {
	case err != nil:
		return err
	case !st.Trusted:
		return fmt.Errorf("hook %s: %s", label(d, s.Prefix()), st.Reason)
	case now != hash: // what was loaded and what would run do not belong together
		return fmt.Errorf("hook %s: its files have changed since they were loaded: load them again", label(d, s.Prefix()))
	case d.Kind == hook.HandlerWebhook && !st.may(s.Origin.Kind, GrantWebhook):
		return errors.New(h.missing(&plan{space: s}, GrantWebhook))
	}
	return nil
}
