package space

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
)

// Options are the operator's settings for what directories may do. A nil *Options is valid.
type Options struct {
	// Trust has the records of trusted directories. Defaults to none: then no project or
	// space can run a program.
	Trust *Trust
	// Disable switches off all hooks that files declare, except hooks with the action
	// approve, which ask a person.
	Disable bool
	// DisableIDs switches off the hooks with these ids, with the same exception. Use the ids
	// that listings show.
	DisableIDs []string
	// NoCommands switches off all commands and workers of all directories. Gates that need
	// them deny.
	NoCommands bool
	// Declare are the options of declared hooks: the project, the environment, secrets, the
	// webhook allowlist and the logger. MCP servers of projects and spaces get the same
	// environment. The host sets Prefix and Trust. Confine is called for the programs of
	// projects and spaces. Inside Confine, [Confined] returns the grants.
	Declare declare.Options
	// Trial is for programs that only try hooks. Declare.Confine is called also for the
	// programs of the host, the operator and the user, and no webhook is called: it fails, or
	// denies if it is a gate, as if it were not trusted. Defaults to false.
	Trial bool
	// Every is how often [Lease.Watch] checks for changes. Defaults to a second.
	Every time.Duration
}

// Host installs directories into agents. Make one with [NewHost].
type Host struct {
	opts Options

	mu     sync.Mutex
	grants map[origin]hook.Capability
	dirs   map[origin]string // the directory of each origin
	count  map[origin]int
}

type origin struct {
	kind hook.OriginKind
	name string
}

// NewHost returns a host.
func NewHost(opts *Options) *Host {
	h := &Host{grants: make(map[origin]hook.Capability), dirs: make(map[origin]string), count: make(map[origin]int)}
	if opts != nil {
		h.opts = *opts
	}
	if h.opts.Every <= 0 {
		h.opts.Every = time.Second
	}
	return h
}

// Grants returns what an origin may contribute. Set it as [hook.RuntimeOptions].Grants of
// the agents that the host installs into.
func (h *Host) Grants(o hook.Origin) hook.Capability {
	h.mu.Lock()
	defer h.mu.Unlock()
	return hook.DefaultGrants(o) | h.grants[origin{o.Kind, o.Name}]
}

// Target is the agent that a space is installed into.
type Target struct {
	// Hooks is the hook runtime of an agent.
	Hooks *hook.Runtime
	// Skills is the agent's skill catalog. Defaults to none: skills are not installed.
	Skills *skill.Catalog
	// Servers is the agent's MCP extension. Defaults to none: MCP servers are not
	// installed.
	Servers *mcptool.Extension
	// Subagents is the agent's subagent extension. Defaults to none: agents are not
	// installed.
	Subagents *subagent.Extension
	// Build makes an agent from a declaration. The agent must have the extension own, which
	// contains the agent's own hooks. Build is required if Subagents is set.
	Build func(ctx context.Context, task *subagent.Task, d *subagent.Declaration, own belay.Extension) (*belay.Agent, error)
	// Idle starts a worker only at its first call. It is for programs that only list hooks.
	Idle bool
}

// Note explains why a hook or an MCP server does not run, or is limited.
type Note struct {
	// ID and Phase identify the hook. For a server, ID is its name, and Phase is empty.
	ID    string `json:"id"`
	Phase string `json:"phase,omitempty"`
	// File and Line say where the hook or server is declared.
	File string `json:"file"`
	Line int    `json:"line"`
	// Closed means that the hook is a gate that now denies. Limited means that the hook is
	// a gate that runs without some of the capabilities that it asks for. If an answer
	// needs a missing capability, the gate denies.
	Closed  bool `json:"closed,omitempty"`
	Limited bool `json:"limited,omitempty"`
	// Reason says why, and what to do.
	Reason string `json:"reason"`
}

// Standing is what a directory may do now.
type Standing struct {
	// Trusted means that the directory's programs may run. Directories of the operator are
	// always trusted.
	Trusted bool
	// Record is the trust record, or nil if there is none.
	Record *Record
	// Reason says why the directory is not trusted, and what to do.
	Reason string
}

func (s *Space) trustCommand() string {
	if s.foreign != nil {
		return s.foreign.Trust
	}
	if s.Origin.Kind == hook.OriginSpace {
		return "belay trust " + s.Dir
	}
	return "belay trust"
}

// Standing returns what a directory may do now.
func (h *Host) Standing(s *Space) (Standing, error) {
	if s.Origin.Kind == hook.OriginHost || s.Origin.Kind == hook.OriginOperator {
		return Standing{Trusted: true}, nil
	}
	command := s.trustCommand()
	if h.opts.Trust == nil {
		return Standing{Reason: "this program has no trust records, so programs of projects and spaces do not run"}, nil
	}
	r, err := h.opts.Trust.Lookup(s.Dir)
	if err != nil {
		return Standing{Reason: err.Error()}, err
	}
	st := Standing{Record: r}
	switch {
	case !r.holds(s):
		st.Reason = fmt.Sprintf("its files are not trusted yet: check them, then run %#q", command)
	case r.Hash != s.Hash:
		st.Reason = fmt.Sprintf("its files have changed since they were trusted: run %#q to see the changes, and %#q to trust them again", command+" --diff", command)
	default:
		st.Trusted = true
	}
	return st, nil
}

// grants returns the names of the grants, in order.
func (st *Standing) grants() []string {
	if !st.Trusted || st.Record == nil {
		return nil
	}
	return st.Record.Grants
}

// may reports whether a directory of this kind has a grant.
func (st *Standing) may(kind hook.OriginKind, grant string) bool {
	if kind == hook.OriginHost || kind == hook.OriginOperator {
		return true
	}
	return slices.Contains(st.grants(), grant)
}

func (st *Standing) capabilities() hook.Capability {
	var all hook.Capability
	for _, name := range st.grants() {
		if c, err := hook.ParseCapabilities(name); err == nil {
			all |= c
		}
	}
	return all
}

// plan says which hooks and servers of a space run.
type plan struct {
	space    *Space
	standing Standing
	hooks    []*declare.Declaration            // hooks of the space
	own      map[string][]*declare.Declaration // hooks of the agents of the space, by agent
	servers  []mcptool.Server
	notes    []Note
}

// plan decides which hooks and servers of a space run. It returns an error if a gate that
// was trusted no longer exists, and the directory is not trusted now.
func (h *Host) plan(s *Space) (*plan, error) {
	if s.faults != nil {
		return nil, s.faults
	}
	standing, err := h.Standing(s)
	if err != nil {
		return nil, err
	}
	if r := standing.Record; r.holds(s) && !standing.Trusted && !h.opts.Disable {
		if lost := r.lost(s); len(lost) > 0 {
			return nil, fmt.Errorf("%s was trusted with the gate %s, but this gate no longer exists: run `%s --diff` to see the changes, and `%s` to accept them", s.Label(), strings.Join(lost, ", "), s.trustCommand(), s.trustCommand())
		}
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
	p.untie(p.hooks, s.Hooks)
	for name, hooks := range s.own {
		p.untie(p.own[name], hooks)
	}
	h.judgeServers(p)
	return p, nil
}

// untie removes order constraints that refer to hooks which do not run. Otherwise the
// remaining hooks could not run either.
func (p *plan) untie(judged, declared []*declare.Declaration) {
	off := make(map[string]bool)
	for i, d := range judged {
		if d.Options.Disabled && !declared[i].Options.Disabled {
			off[d.Phase+" "+d.ID] = true
			off[d.Phase+" "+label(d, p.space.Prefix())] = true
		}
	}
	for i, d := range judged {
		gone := func(id string) bool { return off[d.Phase+" "+id] }
		if !slices.ContainsFunc(d.Options.After, gone) && !slices.ContainsFunc(d.Options.Before, gone) {
			continue
		}
		c := *d
		c.Options.After, c.Options.Before = slices.DeleteFunc(slices.Clone(d.Options.After), gone), slices.DeleteFunc(slices.Clone(d.Options.Before), gone)
		judged[i] = &c
	}
}

// unstarted handles workers that did not start. Their gates stay and fail when they are
// called. Their other hooks do not run.
func (p *plan) unstarted(err error) {
	why := make(map[*declare.Declaration]error)
	for _, e := range joined(err) {
		if failed, ok := errors.AsType[*declare.WorkerError](e); ok {
			for _, d := range failed.Hooks {
				why[d] = failed.Err
			}
		}
	}
	for i, d := range p.hooks {
		if d.Options.Disabled || why[d] == nil {
			continue
		}
		gate := isGate(d) && !d.Options.Shadow
		tolerated := d.Options.Failure != (hook.Failure{}) && d.Options.Failure != hook.Closed
		p.notes = append(p.notes, Note{
			ID: label(d, p.space.Prefix()), Phase: d.Phase, File: d.File, Line: d.Line, Closed: gate && !tolerated, Reason: fmt.Sprintf("its worker does not start: %v", why[d]),
		})
		if !gate {
			c := *d
			c.Options.Disabled = true
			p.hooks[i] = &c
		}
	}
	p.untie(p.hooks, p.space.Hooks)
}

// joined returns the errors that err joins, or only err.
func joined(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return []error{err}
}

// judge decides whether a hook runs. It returns the declaration, or a copy that is disabled
// or limited.
func (h *Host) judge(p *plan, d *declare.Declaration) *declare.Declaration {
	kind, id := p.space.Origin.Kind, label(d, p.space.Prefix())
	note := func(closed bool, format string, args ...any) {
		p.notes = append(p.notes, Note{ID: id, Phase: d.Phase, File: d.File, Line: d.Line, Closed: closed, Reason: fmt.Sprintf(format, args...)})
	}
	off := func() *declare.Declaration {
		limited, _ := h.limit(p, d) // a hook with a capability that nobody granted cannot be installed
		c := *limited
		c.Options.Disabled = true
		return &c
	}
	if d.Options.Disabled {
		return d
	}
	asks := d.Action != nil && d.Action.Name == "approve"
	switch {
	case (h.opts.Disable || slices.Contains(h.opts.DisableIDs, id)) && !asks:
		note(false, "the operator has switched this hook off")
		return off()
	case slices.Contains(h.opts.DisableIDs, id):
		note(false, "the operator has switched this hook off, but it stays active because it asks a person")
	}
	gate := isGate(d) && !d.Options.Shadow
	runs := d.Kind == hook.HandlerCommand || d.Kind == hook.HandlerWorker
	switch {
	case runs && h.opts.NoCommands:
		note(gate, "%s", noCommands)
	case runs && !p.standing.Trusted:
		if f := p.space.foreign; f != nil && !f.Strict && !p.standing.Record.holds(p.space) {
			gate = false // otherwise a project with files of another agent could not be used before it is trusted
		}
		note(gate, "%s", p.standing.Reason)
	case d.Kind == hook.HandlerWebhook && !p.standing.may(kind, GrantWebhook):
		note(gate, "%s", h.lacks(&p.standing, p.space, GrantWebhook))
	case d.Kind == hook.HandlerWebhook && h.unlisted(d) != nil:
		note(gate, "%s", h.unlisted(d))
	default:
		limited, extra := h.limit(p, d)
		for _, name := range extra {
			note(false, "%s", h.missing(p.space, name))
			p.notes[len(p.notes)-1].Limited = gate
		}
		return limited
	}
	if !gate {
		return off()
	}
	limited, _ := h.limit(p, d) // the gate stays, and denies when it is called
	return limited
}

// unlisted returns an error if a webhook's URL is not on the allowlist.
func (h *Host) unlisted(d *declare.Declaration) error {
	if ok, err := declare.Allowed(h.opts.Declare.Allowlist, d.Webhook.URL); err != nil || ok {
		return err
	}
	host := d.Webhook.URL
	if u, err := url.Parse(host); err == nil {
		host = u.Host
	}
	return fmt.Errorf("the URL of this webhook is not on the operator's allowlist: add %s to hooks.webhook_allowlist in your user settings, or to the variable BELAY_WEBHOOK_ALLOWLIST", host)
}

const noCommands = "the operator has switched off all commands"

// missing returns a text that says which grant is missing and how to give it.
func (h *Host) missing(s *Space, grant string) string {
	return fmt.Sprintf("the grant %s is missing: check the files, then run `%s --grant %s`", grant, s.trustCommand(), grant)
}

// lacks returns why a directory may not use a grant. If it had the grant before its files
// changed, trusting the files again is enough.
func (h *Host) lacks(st *Standing, s *Space, grant string) string {
	if h.opts.Trust == nil || !st.Trusted && st.Record.holds(s) && slices.Contains(st.Record.Grants, grant) {
		return st.Reason
	}
	return h.missing(s, grant)
}

// limit removes capabilities that were not granted. If an answer of a gate uses a removed
// capability, the answer fails and the gate denies. If a hook that is not a gate loses a
// capability, limit disables it.
func (h *Host) limit(p *plan, d *declare.Declaration) (limited *declare.Declaration, extra []string) {
	have := hook.DefaultGrants(p.space.Origin) | p.standing.capabilities()
	beyond := d.Options.Capabilities &^ have &^ hook.NoCapability
	if beyond == 0 {
		return d, nil
	}
	c := *d
	if c.Options.Capabilities &= have; c.Options.Capabilities == 0 {
		c.Options.Capabilities = hook.NoCapability
	}
	if !isGate(d) {
		c.Options.Disabled = true
	}
	return &c, beyond.Names()
}

// isGate reports whether a hook is at a gate that fails closed by default, and whether the
// gate waits for it.
func isGate(d *declare.Declaration) bool {
	if d.Detached {
		return false
	}
	for _, p := range belay.Phases() {
		if p.Name() == d.Phase {
			return p.Info().Kind == hook.Gate && p.Info().Failure == hook.Closed
		}
	}
	return false
}

// set makes subscriptions from the hooks of a space.
func (h *Host) set(s *Space, hooks []*declare.Declaration, check *seal, hash string) (*declare.Set, error) {
	opts := h.opts.Declare
	opts.Prefix = s.Prefix()
	opts.Trust = func(_ context.Context, d *declare.Declaration) error {
		if d.Kind != hook.HandlerWebhook {
			return h.trusted(s, check, hash, true, "")
		}
		if err := h.trusted(s, check, hash, false, GrantWebhook); err != nil {
			return err
		}
		if err := h.unlisted(d); err != nil || !h.opts.Trial {
			return err
		}
		return errors.New("hooks are only tried here, so webhooks are not called")
	}
	opts.Confine = h.confine(s)
	return declare.New(hooks, s.Origin, &opts)
}

// confine returns the Confine function for the programs of a directory. It returns nil if
// they are not confined.
func (h *Host) confine(s *Space) func(context.Context, *declare.Declaration, *declare.Execution) error {
	confine := h.opts.Declare.Confine
	private := s.Origin.Kind == hook.OriginOperator || s.Origin.Kind == hook.OriginHost || s.foreign != nil && s.foreign.Private
	if confine == nil || private && !h.opts.Trial {
		return nil
	}
	if private {
		return confine
	}
	return func(ctx context.Context, d *declare.Declaration, run *declare.Execution) error {
		st, err := h.Standing(s)
		if err != nil {
			return err
		}
		return confine(context.WithValue(ctx, confinedKey{}, st.grants()), d, run)
	}
}

type confinedKey struct{}

// Confined returns the grants of the directory of the current hook. Use it in a Confine
// function.
func Confined(ctx context.Context) (grants []string) {
	grants, _ = ctx.Value(confinedKey{}).([]string)
	return grants
}

// trusted returns an error if a program of a directory must not run, or if a URL must not
// be called. It is called before every run and every call. grant is the grant that is
// needed, or "". trusted checks the files each time, so it notices every change.
func (h *Host) trusted(s *Space, check *seal, hash string, runs bool, grant string) error {
	if h.opts.NoCommands && runs {
		return errors.New(noCommands)
	}
	if s.Origin.Kind == hook.OriginHost || s.Origin.Kind == hook.OriginOperator {
		return nil
	}
	now, err := check.now()
	if err != nil {
		return fmt.Errorf("cannot read the files of %s, so they are not trusted: %s", s.Label(), reason(err))
	}
	seen := *s
	seen.Hash = now
	st, err := h.Standing(&seen)
	switch {
	case err != nil:
		return err
	case !st.Trusted && grant != "":
		return errors.New(h.lacks(&st, &seen, grant))
	case !st.Trusted:
		return errors.New(st.Reason)
	case now != hash: // the loaded hooks do not match the files
		return errors.New("its files have changed since they were loaded: load them again")
	case grant != "" && !st.may(s.Origin.Kind, grant):
		return errors.New(h.missing(s, grant))
	}
	return nil
}
